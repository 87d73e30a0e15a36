"""A database that cannot be written now: a retryable error, nothing written, and all well afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate.errors import CorruptRowError, StorageUnavailableError, TooLargeError
from batchstate.listing import list_by_states
from batchstate.transition import transition
from batchstate_sqlite import SQLiteStorage
from batchstate_sqlite.errors import NOTHING_WRITTEN, UNKNOWN, translated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from batchstate.entities import Batch

FILL_THE_DISK = """
import resource, signal, sys
from batchstate.creation import create_batch
from batchstate.entities import Batch
from batchstate.errors import StorageUnavailableError
from batchstate_sqlite import SQLiteStorage

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SQLiteStorage(sys.argv[1], "q")
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
made = 0
try:
    while True:
        create_batch(store, Batch(f"b{made}", "q", "queued", attributes={"text": "x" * 5000}))
        made += 1
except StorageUnavailableError as error:
    print(made, error.retryable, error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
create_batch(store, Batch("after", "q", "queued"))
store.close()
"""


def test_a_busy_file_is_waited_for_and_then_told(path: Path, create: Callable[..., Batch]) -> None:
    """Another writes beyond the timeout: retryable, nothing written; and the same call works once that one is done."""
    with (
        SQLiteStorage(path, "q", timeout=0.1) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        batch = create(store)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailableError, match=r"is busy.*nothing of this step was written") as caught:
            transition(store, batch, "testing")
        assert caught.value.retryable
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        assert list_by_states(store, ["queued", "testing"]) == [batch]
        other.execute("COMMIT")
        assert transition(store, batch, "testing").version == 2


def test_a_busy_file_is_had_as_soon_as_it_is_free(path: Path, create: Callable[..., Batch]) -> None:
    """Who waits with patience gets its turn within moments of the other's end, not at the end of the patience."""
    with (
        SQLiteStorage(path, "q", timeout="60s") as store,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
    ):
        batch = create(store)
        other.execute("BEGIN IMMEDIATE")
        asked = 0

        def commit_when_asked_for_the_third_time(statement: str) -> None:
            nonlocal asked
            asked += statement == "BEGIN IMMEDIATE"
            if asked == 3:
                other.execute("COMMIT")

        store.database.read(lambda cursor: cursor.connection.set_trace_callback(commit_when_asked_for_the_third_time))
        assert transition(store, batch, "testing").version == 2
        assert asked >= 3


def test_busy_threads_are_waited_for_and_then_told(path: Path, create: Callable[..., Batch]) -> None:
    """The same where the one who writes is another thread of this process."""
    with SQLiteStorage(path, "q", timeout=0.05) as store:
        batch = create(store)
        with (
            store.database.transaction(),
            pytest.raises(StorageUnavailableError, match=r"other threads wrote for all of 0\.05 s"),
        ):
            transition(store, batch, "testing")
        assert transition(store, batch, "testing").version == 2


def test_a_full_disk_is_told_and_undone(create: Callable[..., Batch]) -> None:
    """No room for a step: retryable, all of the step undone, and the store works on when there is room again."""
    with SQLiteStorage(":memory:", "q") as store:
        batch = create(store)
        store.database.read(lambda cursor: cursor.execute("PRAGMA max_page_count = 1").fetchall())
        with pytest.raises(StorageUnavailableError, match=r"disk is full.*nothing of this step was written"):
            transition(store, batch, "testing", update={"text": "x" * 100_000})
        assert list_by_states(store, ["queued", "testing"]) == [batch]
        store.database.read(lambda cursor: cursor.execute("PRAGMA max_page_count = 1000000").fetchall())
        assert transition(store, batch, "testing").version == 2


def test_a_write_that_fails_on_the_disk_is_told_and_undone(path: Path, run: Callable[..., str]) -> None:
    """A real file that cannot grow any more: what was acknowledged is there, what was not is gone, and it goes on."""
    made, retryable, *_ = run(FILL_THE_DISK, path).split()
    assert retryable == "True"
    with SQLiteStorage(path, "q") as store:
        names = {batch.id for batch in list_by_states(store, ["queued"])}
    assert names == {*(f"b{n}" for n in range(int(made))), "after"}


def test_a_read_only_database_is_told(create: Callable[..., Batch]) -> None:
    """Reading goes on; a write is refused with the reason, and nothing was written."""
    with SQLiteStorage(":memory:", "q") as store:
        batch = create(store)
        store.database.read(lambda cursor: cursor.execute("PRAGMA query_only = 1").fetchall())
        with pytest.raises(StorageUnavailableError, match="read-only"):
            transition(store, batch, "testing")
        assert list_by_states(store, ["queued"]) == [batch]


def test_a_row_beyond_what_sqlite_holds_is_refused_alone(create: Callable[..., Batch]) -> None:
    """Too large is answered for that batch before any I/O, and costs its neighbours nothing."""
    with SQLiteStorage(":memory:", "q") as store:
        store._longest = 50_000  # the real limit takes a gigabyte
        large, small = create(store), create(store, "b2")
        bigger = [batch.with_attributes({"text": "é" * size}) for batch, size in ((large, 30_000), (small, 20_000))]
        refused, held = store.check_batches(bigger)
        assert isinstance(refused, TooLargeError)
        assert held is None


def test_what_a_failed_commit_has_done_is_called_unknown() -> None:
    """A commit that failed in I/O may be on disk; one that had to wait, or found no room, was undone."""
    for code, known in (
        (sqlite3.SQLITE_IOERR_FSYNC, UNKNOWN),
        (sqlite3.SQLITE_FULL, NOTHING_WRITTEN),
        (sqlite3.SQLITE_BUSY, NOTHING_WRITTEN),
    ):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = code
        answer = translated(error, "the file", UNKNOWN)
        assert isinstance(answer, StorageUnavailableError)
        assert str(answer).endswith(known)


def test_a_misuse_of_the_module_is_not_dressed_up() -> None:
    """What SQLite never said is a fault in the program, and is raised as it is; a damaged file is not retryable."""
    misuse = sqlite3.ProgrammingError("Cannot operate on a closed database.")
    assert translated(misuse, "the file", UNKNOWN) is misuse
    damaged = sqlite3.DatabaseError("database disk image is malformed")
    damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    assert isinstance(translated(damaged, "the file", UNKNOWN), CorruptRowError)
