"""What an adapter's author tells the contract suite: how to open the store under test, and what it can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from batchstate.testing.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.storage import Storage

__all__ = ["Harness"]


class Harness(ABC):
    """One store for one test, given by a fixture called `harness`.

        class SQLiteHarness(Harness):
            capabilities = frozenset({AtomicMoves, AtomicCreates, SnapshotListing})
            sees_rows = True

            def __init__(self, path: Path) -> None:
                super().__init__()
                self.path = path

            def open(self, queue: str = "q") -> Storage:
                return SQLiteStorage(queue, self.path, clock=self.clock)

            def plant(self, queue: str, batch_id: str, values: Sequence[object]) -> None: ...

            def lose(self, queue: str, batch_id: str) -> None: ...


        class TestSQLite(StorageContract):
            @pytest.fixture
            def harness(self, tmp_path: Path) -> Harness:
                return SQLiteHarness(tmp_path / "batches.db")

    Each test gets a harness of its own, on an empty store or an empty namespace of a shared one; the
    fixture clears it away. The storages that a test opens are closed by the suite.

    Attributes:
        capabilities: the optional protocols that its storages implement. It is compared with what
            they implement, so that none is lost silently.
        sees_rows: whether `put_records` sees the row, and so does nothing for an absent or retired
            batch.
        scale: how many rows the tests of large numbers may use. Servers take thousands, emulators
            hundreds.
        largest: how many bytes a row may have, `None` where there is no limit worth a test.
        examples: how many random cases a property is tried with.
        threads: how many threads the tests of races may use.
        steps: how many steps of the state machine a run takes at least.
        schedules: how many schedules of each of the explorer's scopes are drawn; the same in every run.
        checked_every: after one of how many tests the store is checked for broken promises: 1 is after each, 0 after
            none, for emulators on which a check takes longer than a test.
        clock: the clock that its storages are to be opened with.
    """

    capabilities: ClassVar[frozenset[type]] = frozenset()
    sees_rows: ClassVar[bool] = False
    scale: ClassVar[int] = 2_000
    largest: ClassVar[int | None] = None
    examples: ClassVar[int] = 25
    threads: ClassVar[int] = 8
    steps: ClassVar[int] = 1_000
    schedules: ClassVar[int] = 25
    checked_every: ClassVar[int] = 1

    def __init__(self) -> None:
        self.clock: ManualClock = ManualClock()

    @abstractmethod
    def open(self, queue: str = "q") -> Storage:
        """Open a storage of `queue` on this harness's store, with all its capabilities.

        Each call gives another one, as another process would have it: a client or connection may be
        shared, what a storage remembers may not.
        """

    @abstractmethod
    def plant(self, queue: str, batch_id: str, values: Sequence[object]) -> None:
        """Write the row of a batch as it is given, past all checks, over the one that is there.

        Its records, its associations and its place among the retired stay as they are.

        Args:
            queue: the queue.
            batch_id: the key to write it under; the same as in `values`.
            values: what `BatchRow` has, in its order, each of the type it has there, but not
                necessarily sensible: a text that is no JSON, a version of 0, a format of the future.
        """

    @abstractmethod
    def lose(self, queue: str, batch_id: str) -> None:
        """Delete the row of a batch and nothing else, as a store would that loses what it had acknowledged."""
