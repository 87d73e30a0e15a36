"""Threads share a database: connections are used by one at a time, kept, bounded, and closed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import TYPE_CHECKING

import pytest

from batchstate.errors import BatchStateError, StorageUnavailableError, VersionMismatchError
from batchstate.listing import list_by_states
from batchstate.transition import transition
from batchstate_sqlite import SQLiteDatabase, SQLiteStorage
from batchstate_sqlite.database import CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batchstate.entities import Batch

STATES = ("testing", "merging", "queued")


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, path: Path) -> Iterator[SQLiteStorage]:
    """Open a storage that all threads of a test share."""
    where = path if request.param == "file" else ":memory:"
    with SQLiteStorage(where, "q", synchronous="NORMAL", timeout="60s") as store:
        yield store


def open_files(path: Path) -> int:
    """Answer how many files of this database the process has open."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found += str(descriptor.readlink()).startswith(str(path))
        except FileNotFoundError:
            continue
    return found


def compete(store: SQLiteStorage, wins: int) -> int:
    """Move the batch until it was moved `wins` times by this thread, and answer how often it was not."""
    lost = 0
    while wins:
        batch = store.get_batches(["b1"])["b1"]
        assert not isinstance(batch, BatchStateError)
        try:
            transition(store, batch, STATES[batch.version % 3])
        except VersionMismatchError:
            lost += 1
        else:
            wins -= 1
    return lost


def test_sixteen_threads_lose_no_update(store: SQLiteStorage, create: Callable[..., Batch]) -> None:
    """16 threads move one batch 10 times each through one storage: its version tells of every move, once."""
    create(store)
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda _: compete(store, 10), range(16)))
    row = store.get_batches(["b1"])["b1"]
    assert not isinstance(row, BatchStateError)
    assert row.version == 161
    assert [batch.id for batch in list_by_states(store, [row.state])] == ["b1"]
    records = [record for state in STATES for record in store.list_records(state).items]
    assert [(record.state, record.version) for record in records] == [(row.state, 161)]


def test_readers_wait_for_no_writer(path: Path, create: Callable[..., Batch]) -> None:
    """While one thread is in a writing transaction, another reads what was committed before it."""
    with SQLiteStorage(path, "q") as store:
        create(store)
        with store.database.transaction() as cursor, ThreadPoolExecutor(1) as threads:
            cursor.execute("DELETE FROM batchstate_batches")
            assert list(threads.submit(store.get_batches, ["b1"]).result()) == ["b1"]
        assert store.get_batches(["b1"]) == {}


def test_a_writer_waits_for_the_writer_before_it(store: SQLiteStorage, create: Callable[..., Batch]) -> None:
    """A thread that comes while another writes waits, and does its work after that."""
    inside, proceed = Event(), Event()

    def write_slowly() -> None:
        with store.database.transaction() as cursor:
            inside.set()
            proceed.wait(60)
            cursor.execute("INSERT INTO batchstate_retired VALUES ('q', 1, 'slow')")

    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(write_slowly)
        inside.wait(60)
        quick = threads.submit(create, store)
        assert not quick.done()
        proceed.set()
        slow.result()
        assert quick.result().id == "b1"


def test_threads_that_end_leave_nothing_open(path: Path, create: Callable[..., Batch]) -> None:
    """After 50 threads, 10 at a time, no more files are open than the pool may have, and none after `close`."""
    with SQLiteStorage(path, "q", synchronous="NORMAL") as store:
        create(store)
        for _ in range(5):
            barrier = Barrier(10)

            def read(barrier: Barrier = barrier) -> None:
                barrier.wait()
                store.get_batches(["b1"])

            threads = [Thread(target=read) for _ in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert 0 < open_files(path) <= 3 * CONNECTIONS
    assert open_files(path) == 0


def test_one_thread_needs_one_connection(path: Path, create: Callable[..., Batch]) -> None:
    """Call after call goes over the connection that is there, and none is opened anew."""
    with SQLiteStorage(path, "q", synchronous="NORMAL") as store:
        create(store)
        before = open_files(path)
        seen = {store.database.read(lambda cursor: cursor.connection) for _ in range(20)}
        with store.database.transaction() as cursor:
            seen.add(cursor.connection)
        assert len(seen) == 1
        assert open_files(path) == before


def test_a_connection_that_never_comes_free_is_told(path: Path) -> None:
    """Who finds all connections in use for the whole of its patience gets a retryable error."""
    with SQLiteStorage(path, "q", timeout=0.05) as store:
        held, proceed = Barrier(CONNECTIONS + 1), Event()

        def hold() -> None:
            store.database.read(lambda _: (held.wait(60), proceed.wait(60)))

        with ThreadPoolExecutor(CONNECTIONS) as threads:
            holders = [threads.submit(hold) for _ in range(CONNECTIONS)]
            held.wait(60)
            with pytest.raises(StorageUnavailableError, match="all 8 connections"):
                store.get_batches(["b1"])
            proceed.set()
            for holder in holders:
                holder.result()
        assert store.get_batches(["b1"]) == {}


def test_an_interrupted_transaction_leaves_nothing(store: SQLiteStorage, create: Callable[..., Batch]) -> None:
    """Whatever is raised inside, also what is no `Exception`, undoes all of it, and the storage works on."""
    create(store)

    class Interruption(BaseException):
        pass

    with pytest.raises(Interruption), store.database.transaction() as cursor:  # noqa: PT012 - both belong to it
        cursor.execute("DELETE FROM batchstate_batches")
        raise Interruption
    assert list(store.get_batches(["b1"])) == ["b1"]
    create(store, "b2")


def test_closing_twice_is_harmless_and_use_after_it_is_told(store: SQLiteStorage, create: Callable[..., Batch]) -> None:
    """A closed storage says that it is closed, to readers and writers alike."""
    create(store)
    store.close()
    store.close()
    with pytest.raises(StorageUnavailableError, match="is closed"):
        store.get_batches(["b1"])
    with pytest.raises(StorageUnavailableError, match="is closed; nothing"):
        create(store, "b2")


def test_a_shared_database_stays_open_when_a_storage_is_closed(path: Path, create: Callable[..., Batch]) -> None:
    """A storage closes what it opened itself, not the database that was lent to it."""
    database = SQLiteDatabase(path)
    with SQLiteStorage(database, "q") as store:
        create(store)
    with SQLiteStorage(database, "q") as store:
        assert list(store.get_batches(["b1"])) == ["b1"]
    database.close()


def test_closing_while_others_work_lets_them_finish(path: Path) -> None:
    """A transaction under way when another thread closes the storage is committed, and its connection closed then."""
    store = SQLiteStorage(path, "q")
    with store.database.transaction() as cursor:
        store.close()
        cursor.execute("INSERT INTO batchstate_retired VALUES ('q', 1, 'late')")
    assert open_files(path) == 0
    with SQLiteStorage(path, "q") as store, store.database.transaction() as cursor:
        assert cursor.execute("SELECT batch_id FROM batchstate_retired").fetchall() == [("late",)]
