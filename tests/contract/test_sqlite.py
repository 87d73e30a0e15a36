"""The SQLite adapter keeps the contract, on a file and in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

from batchstate.storage import AtomicCreates, AtomicMoves, SnapshotListing
from batchstate.testing import ExplorerContract, Harness, JobContract, JobExplorerContract, StorageContract
from batchstate.wire import BatchRow
from batchstate_sqlite import SQLiteDatabase, SQLiteStorage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

REPLACE = """
    INSERT OR REPLACE INTO batchstate_batches (
        queue, mark, format, id, version, state, entered, created_at, updated_at, retired_at, marks, moves, requests,
        attributes
    ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class SQLiteHarness(Harness):
    """A database, and storages that share it."""

    capabilities = frozenset({AtomicMoves, AtomicCreates, SnapshotListing})
    sees_rows = True
    scale = 5_000
    schedules = 10

    def __init__(self, database: SQLiteDatabase) -> None:
        super().__init__()
        self.database = database

    @override
    def open(self, queue: str = "q") -> SQLiteStorage:
        return SQLiteStorage(self.database, queue, clock=self.clock)

    @override
    def plant(self, queue: str, batch_id: str, values: Sequence[object]) -> None:
        row = BatchRow._make(values)
        with self.database.transaction() as cursor:
            cursor.execute(REPLACE, (queue, row.mark, *row))

    @override
    def lose(self, queue: str, batch_id: str) -> None:
        with self.database.transaction() as cursor:
            cursor.execute("DELETE FROM batchstate_batches WHERE queue = ? AND id = ?", (queue, batch_id))


class FileHarness(SQLiteHarness):
    """A file that each storage opens for itself, as another process would."""

    def __init__(self, path: Path) -> None:
        super().__init__(SQLiteDatabase(path, synchronous="NORMAL"))

    @override
    def open(self, queue: str = "q") -> SQLiteStorage:
        return SQLiteStorage(self.database.path, queue, clock=self.clock, synchronous="NORMAL", timeout="30s")


class TestFile(StorageContract, ExplorerContract):
    """The contract on a file."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[FileHarness]:
        """Open an empty file."""
        harness = FileHarness(tmp_path / "batches.db")
        yield harness
        harness.database.close()


@pytest.mark.measured_elsewhere
class TestInMemory(StorageContract, ExplorerContract):
    """The contract on a database in memory."""

    @pytest.fixture
    def harness(self) -> Iterator[SQLiteHarness]:
        """Open an empty database."""
        harness = SQLiteHarness(SQLiteDatabase())
        yield harness
        harness.database.close()


class TestFileJobs(JobContract, JobExplorerContract):
    """The claim half's contract on a file."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[FileHarness]:
        """Open an empty file."""
        harness = FileHarness(tmp_path / "batches.db")
        yield harness
        harness.database.close()


@pytest.mark.measured_elsewhere
class TestInMemoryJobs(JobContract, JobExplorerContract):
    """The claim half's contract on a database in memory."""

    @pytest.fixture
    def harness(self) -> Iterator[SQLiteHarness]:
        """Open an empty database."""
        harness = SQLiteHarness(SQLiteDatabase())
        yield harness
        harness.database.close()
