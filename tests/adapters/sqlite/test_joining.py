"""Working inside a transaction of the user's own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate import BatchQueue, Done, open_queue
from batchstate.errors import InvalidValueError, StorageUnavailableError, UnsupportedFormatError
from batchstate.job_calls import Claiming
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.transition import transition
from batchstate_sqlite import SQLiteStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from batchstate.entities import Batch


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file that has the user's table, and ours beside it."""
    with closing(sqlite3.connect(path, timeout=0.05)) as connection:
        connection.execute("CREATE TABLE changes (id TEXT)")
        SQLiteStorage(path, "q", adopt=True).close()
        yield connection


def rows_in(path: Path) -> tuple[list[str], list[str]]:
    """Answer the user's rows and our batches, as another process sees them."""
    with closing(sqlite3.connect(path)) as connection, SQLiteStorage(path, "q") as store:
        theirs = [name for (name,) in connection.execute("SELECT id FROM changes")]
        return theirs, [batch.id for batch in list_by_states(store, ["queued", "testing"])]


def test_both_are_committed_together(path: Path, connection: sqlite3.Connection, create: Callable[..., Batch]) -> None:
    """Nobody sees the batch before the user's commit, and everybody sees both after it."""
    store = SQLiteStorage.joining(connection, "q")
    connection.execute("INSERT INTO changes VALUES ('c1')")
    batch = create(store)
    transition(store, batch, "testing")
    assert [found.id for found in find_by_request_id(store, "r-b1").batches] == ["b1"]
    assert rows_in(path) == ([], [])
    connection.commit()
    assert rows_in(path) == (["c1"], ["b1"])


def test_both_are_undone_together(path: Path, connection: sqlite3.Connection, create: Callable[..., Batch]) -> None:
    """A rollback takes our writes with the user's, also where ours came first and began the transaction."""
    store = SQLiteStorage.joining(connection, "q")
    create(store)
    connection.execute("INSERT INTO changes VALUES ('c1')")
    connection.rollback()
    assert rows_in(path) == ([], [])


def test_a_write_of_ours_that_fails_leaves_the_users_in_place(
    path: Path, connection: sqlite3.Connection, create: Callable[..., Batch]
) -> None:
    """What a failed step had done is undone, the user's rows are not, and the transaction goes on."""
    store = SQLiteStorage.joining(connection, "q")
    connection.execute("INSERT INTO changes VALUES ('c1')")
    with pytest.raises(ZeroDivisionError), store.database.transaction() as cursor:  # noqa: PT012 - both belong to it
        cursor.execute("INSERT INTO batchstate_retired VALUES ('q', 1, 'half')")
        _ = 1 / 0
    create(store, "b2")
    connection.commit()
    assert rows_in(path) == (["c1"], ["b2"])
    assert connection.execute("SELECT count(*) FROM batchstate_retired").fetchone() == (0,)


def test_a_user_who_read_before_another_wrote_is_told(
    path: Path, connection: sqlite3.Connection, create: Callable[..., Batch]
) -> None:
    """A transaction that began by reading cannot write any more once another wrote: retryable, nothing written."""
    connection.isolation_level = None
    store = SQLiteStorage.joining(connection, "q")
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM changes").fetchall()
    with SQLiteStorage(path, "q") as other:
        create(other)
    with pytest.raises(StorageUnavailableError, match="nothing of this step was written"):
        create(store, "b2")
    connection.execute("ROLLBACK")
    assert rows_in(path) == ([], ["b1"])


def test_the_connection_stays_the_users(connection: sqlite3.Connection) -> None:
    """Its row factory is theirs, ours does not mind it, and closing the storage leaves it open."""
    connection.row_factory = sqlite3.Row
    with SQLiteStorage.joining(connection, "q") as store:
        assert store.list_queues() == []
    assert connection.execute("SELECT 1 AS one").fetchone()["one"] == 1


def test_a_database_without_our_tables_is_refused(tmp_path: Path) -> None:
    """The error says how they come to be there; a newer program's are refused as everywhere."""
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as connection:
        with pytest.raises(InvalidValueError, match="adopt=True"):
            SQLiteStorage.joining(connection, "q")
        connection.execute("CREATE TABLE batchstate_schema (version INTEGER)")
        connection.execute("INSERT INTO batchstate_schema VALUES (99)")
        with pytest.raises(UnsupportedFormatError):
            SQLiteStorage.joining(connection, "q")


def test_a_connection_that_gives_bytes_is_refused(connection: sqlite3.Connection) -> None:
    """Our names would not be found in them."""
    connection.text_factory = bytes
    with pytest.raises(InvalidValueError, match="text_factory"):
        SQLiteStorage.joining(connection, "q")


def jobs_in(path: Path) -> dict[str, str]:
    """Answer our jobs and their places, as another process sees them."""
    with open_queue("q", f"sqlite:///{path}") as q:
        return {job.id: job.place for place in ("waiting", "active", "dead") for job in q.jobs(place)}


def test_a_job_is_added_with_the_row_it_is_about(path: Path, connection: sqlite3.Connection) -> None:
    """The job is there as soon as the user's row is, and not before."""
    q = BatchQueue(SQLiteStorage.joining(connection, "q"))
    connection.execute("INSERT INTO changes VALUES ('c1')")
    assert q.add("c1", {"kind": "change"})
    assert q.get_job("c1").payload == {"kind": "change"}
    assert jobs_in(path) == {}
    connection.commit()
    assert rows_in(path)[0] == ["c1"]
    assert jobs_in(path) == {"c1": "waiting"}


def test_a_job_goes_with_the_row_it_is_about(path: Path, connection: sqlite3.Connection) -> None:
    """What is rolled back was never added, so that it can be added again."""
    q = BatchQueue(SQLiteStorage.joining(connection, "q"))
    connection.execute("INSERT INTO changes VALUES ('c1')")
    assert q.add("c1")
    assert not q.add("c1")
    connection.rollback()
    assert (rows_in(path)[0], jobs_in(path)) == ([], {})
    assert q.add("c1")


def test_a_job_is_done_with_the_rows_it_wrote(path: Path, connection: sqlite3.Connection) -> None:
    """Settled in the user's transaction, a job is done when what it wrote is there; a rollback leaves it held."""
    with open_queue("q", f"sqlite:///{path}") as worker:
        worker.add("c1")
        claim = worker.claim(1)
        assert claim is not None
        theirs = BatchQueue(SQLiteStorage.joining(connection, "q"))
        for end in (connection.rollback, connection.commit):
            connection.execute("INSERT INTO changes VALUES ('result of c1')")
            assert theirs.claim_of(claim.id).settle({"c1": Done()}).completed == ("c1",)
            assert jobs_in(path) == {"c1": "active"}
            end()
        assert (rows_in(path)[0], jobs_in(path)) == (["result of c1"], {})
        assert [attempt.outcome for attempt in worker.attempts("c1")] == ["completed"]


def test_a_lease_cannot_be_taken_in_the_users_transaction(path: Path, connection: sqlite3.Connection) -> None:
    """Nobody else would see it before the commit, so claiming, holding and extending say where to do it instead."""
    with open_queue("q", f"sqlite:///{path}") as worker:
        worker.add("c1")
        claim = worker.claim(1)
        assert claim is not None
        store = SQLiteStorage.joining(connection, "q")
        for call in (
            lambda: store.claim_jobs(Claiming("x", 1, 1_000, "m")),
            lambda: store.extend_claim(claim.id, 1_000),
            lambda: store.extend_job(claim.id, "c1", 1_000),
            lambda: store.take_hold(claim.id, "x", 1_000),
            lambda: store.extend_hold(claim.id, "x", 1_000),
        ):
            with pytest.raises(InvalidValueError, match="by a storage of its own"):
                call()
        assert not connection.in_transaction
