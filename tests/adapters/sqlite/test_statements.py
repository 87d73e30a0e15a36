"""Every statement is a search by key, and none of them grows with the number of items."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from batchstate.creation import create_many
from batchstate.entities import Association, Batch
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.transition import transition_many
from batchstate_sqlite import SQLiteDatabase, SQLiteStorage, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = 40_000
HARMLESS = ("SCAN k VIRTUAL TABLE", "SCAN found", "SCAN new", "SCAN CONSTANT ROW")
"""The keys that are given, the queues found so far, the one record to put, and no table at all."""


@pytest.fixture
def database() -> Iterator[SQLiteDatabase]:
    """Open a database in memory, which has one connection."""
    database = SQLiteDatabase()
    yield database
    database.close()


@pytest.mark.parametrize("name", statements.__all__)
def test_a_statement_searches_by_key(database: SQLiteDatabase, name: str) -> None:
    """No statement goes through a whole table or sorts what it found; `scan` stays within its queue too."""
    statement: str = getattr(statements, name)
    values = [""] * statement.count("?")
    plan = database.read(lambda cursor: cursor.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall())
    steps = [detail for *_, detail in plan]
    assert [step for step in steps if "SCAN" in step and not step.startswith(HARMLESS)] == []
    assert [step for step in steps if "TEMP B-TREE" in step] == []


def test_the_statements_know_a_full_scan_when_they_see_one(database: SQLiteDatabase) -> None:
    """The plan of a statement without a key does say so, in the words that the test above looks for."""
    statement = "EXPLAIN QUERY PLAN SELECT * FROM batchstate_batches WHERE state = ?"
    [(*_, step)] = database.read(lambda cursor: cursor.execute(statement, ("queued",)).fetchall())
    assert step.startswith("SCAN")
    assert not step.startswith(HARMLESS)


def test_no_table_has_a_secondary_index(database: SQLiteDatabase) -> None:
    """There are no indexes but those of primary keys."""
    names = database.read(
        lambda cursor: cursor.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
    )
    assert [name for (name,) in names if not name.startswith("sqlite_autoindex_")] == []


def test_any_number_of_items_stays_below_999_parameters(database: SQLiteDatabase) -> None:
    """40,000 batches of one request are created, moved, listed and found where a statement may have 999 parameters."""
    database.read(lambda cursor: cursor.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999))
    with SQLiteStorage(database, "q") as store:
        batches = create_many(store, [Batch(f"b{n}", "q", "queued", request_ids=("r",)) for n in range(MANY)])
        moved = transition_many(store, [batch for batch in batches if isinstance(batch, Batch)], "testing")
        assert sum(isinstance(batch, Batch) for batch in moved) == MANY
        assert len(list_by_states(store, ["testing"])) == MANY
        found = find_by_request_id(store, "r")
        assert (len(found.batches), found.stale) == (MANY, 0)
        assert len(store.get_records([("testing", f"b{n}") for n in range(MANY)])) == MANY


def test_one_batch_may_have_more_requests_than_a_transaction_has_items() -> None:
    """A batch of 20,000 requests is created whole."""
    with SQLiteStorage(":memory:", "q") as store:
        [batch] = create_many(store, [Batch("b1", "q", "queued", request_ids=tuple(f"r{n}" for n in range(20_000)))])
        assert isinstance(batch, Batch)
        assert store.list_associations("r19999") == [Association("q", "r19999", "b1")]


def test_queues_are_found_by_skipping_from_one_to_the_next(database: SQLiteDatabase) -> None:
    """The names of the queues cost a search each, however many batches they have."""
    for queue in ("a", "b", "ä", "B"):
        with SQLiteStorage(database, queue) as store:
            create_many(store, [Batch(f"b{n}", queue, "queued") for n in range(3_000)])
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    database.read(lambda cursor: cursor.connection.set_progress_handler(count, 100))
    with SQLiteStorage(database, "a") as store:
        assert store.list_queues() == ["B", "a", "b", "ä"]
    assert steps < 10
