"""The memory adapter keeps the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from batchstate.storage import AtomicCreates, AtomicMoves, SnapshotListing
from batchstate.testing import ExplorerContract, Harness, JobContract, JobExplorerContract, StorageContract
from batchstate.wire import BatchRow
from batchstate_memory import MemoryStorage, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Sequence


class MemoryHarness(Harness):
    """A store in this process's memory."""

    capabilities = frozenset({AtomicMoves, AtomicCreates, SnapshotListing})
    sees_rows = True
    scale = 5_000
    schedules = 50
    steps = 20_000

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()

    @override
    def open(self, queue: str = "q") -> MemoryStorage:
        return MemoryStorage(queue, self.store, clock=self.clock)

    @override
    def plant(self, queue: str, batch_id: str, values: Sequence[object]) -> None:
        self.store.rows(queue).batches[batch_id] = BatchRow._make(values)

    @override
    def lose(self, queue: str, batch_id: str) -> None:
        del self.store.rows(queue).batches[batch_id]


class BlindMemoryStorage(MemoryStorage):
    """A storage whose put does not see the row, as on a backend without transactions."""

    sees_rows = False


class BlindMemoryHarness(MemoryHarness):
    """The same with storages that put records without seeing the row."""

    sees_rows = False
    scale = 600

    @override
    def open(self, queue: str = "q") -> BlindMemoryStorage:
        return BlindMemoryStorage(queue, self.store, clock=self.clock)


class TestMemory(StorageContract, ExplorerContract):
    """The contract on memory."""

    @pytest.fixture
    def harness(self) -> MemoryHarness:
        """Open an empty store."""
        return MemoryHarness()


@pytest.mark.measured_elsewhere
class TestBlindMemory(StorageContract, ExplorerContract):
    """The contract on memory where puts do not see the row: stale records come about that purges and readers meet."""

    @pytest.fixture
    def harness(self) -> BlindMemoryHarness:
        """Open an empty store."""
        return BlindMemoryHarness()


class TestMemoryJobs(JobContract, JobExplorerContract):
    """The claim half's contract on memory."""

    @pytest.fixture
    def harness(self) -> MemoryHarness:
        """Open an empty store."""
        return MemoryHarness()
