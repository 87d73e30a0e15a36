"""The statements of the job tables search by key, and what a step costs does not grow with what waits."""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate_sqlite import SQLiteDatabase, SQLiteStorage, job_statements

if TYPE_CHECKING:
    from collections.abc import Iterator

STATEMENTS = [name for name in dir(job_statements) if name.isupper() and not name.startswith("_")]

GIVEN = ("SCAN k VIRTUAL TABLE", "SCAN json_each VIRTUAL TABLE", "SCAN (subquery")
"""The jobs that the caller or a claim names, and rows that were found by key already."""

SORTS = {"HELD_JOBS_AFTER"}
"""Lists what all claims hold in the order of groups: as much as workers hold, and never asked for by a step."""

WAITING = 100_000


@pytest.fixture
def database() -> Iterator[SQLiteDatabase]:
    """Open a database in memory, which has one connection."""
    database = SQLiteDatabase()
    yield database
    database.close()


@pytest.fixture
def store(database: SQLiteDatabase) -> SQLiteStorage:
    """Open a storage of queue `q`."""
    return SQLiteStorage(database, "q")


def jobs(first: int, count: int, group: str = "") -> list[NewJob]:
    """Answer so many jobs to add."""
    return [NewJob(f"job-{number:06}", '{"n":1}', group) for number in range(first, first + count)]


def claiming(number: int, limit: int = 50) -> Claiming:
    """Answer a claim to make."""
    return Claiming(f"claim-{number}", limit, 30_000, f"mark-{number}")


@contextmanager
def counted(database: SQLiteDatabase) -> Iterator[list[int]]:
    """Count what SQLite does meanwhile, in hundreds of its instructions."""
    count = [0]

    def one_more() -> int:
        count[0] += 1
        return 0

    database.read(lambda cursor: cursor.connection.set_progress_handler(one_more, 100))
    yield count
    database.read(lambda cursor: cursor.connection.set_progress_handler(None, 0))


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_searches_by_key(database: SQLiteDatabase, name: str) -> None:
    """No statement goes through a table, and but for one that is no step's none sorts what it found."""
    statement: str = getattr(job_statements, name)
    values = ["[]"] * statement.count("?")
    plan = database.read(lambda cursor: cursor.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall())
    steps = [detail for *_, detail in plan]
    assert [step for step in steps if "SCAN" in step and not step.startswith(GIVEN)] == []
    assert [step for step in steps if "TEMP B-TREE" in step and name not in SORTS] == []


def test_a_claim_and_its_settling_cost_the_same_whatever_waits(database: SQLiteDatabase, store: SQLiteStorage) -> None:
    """Claiming and settling fifty costs with 100,000 waiting what it costs with 100."""
    costs = []
    for number, more in enumerate((100, WAITING)):
        store.add_jobs(jobs(number * WAITING, more))
        with counted(database) as count:
            claimed = store.claim_jobs(claiming(number))
            assert claimed is not None
            settled = store.settle_jobs(
                claimed.batch.id, [Settling(job.id, "complete") for job in claimed.jobs], keep_done=1000
            )
        assert settled.outcomes == ("completed",) * 50
        costs.append(count[0])
    few, many = costs
    assert many <= few * 1.1


def test_looking_for_work_costs_the_same_whatever_waits(database: SQLiteDatabase, store: SQLiteStorage) -> None:
    """Counting what one claim could take, and sweeping where nothing lapsed, look at no job that waits or is held."""
    store.add_jobs(jobs(0, 5_000))
    for number in range(40):
        store.claim_jobs(claiming(number))
    with counted(database) as count:
        assert store.count_claimable(50) == 50
        assert not store.sweep_jobs(100, max_stalls=1).returned
    assert count[0] < 10


def test_extending_a_claim_writes_one_row(database: SQLiteDatabase, store: SQLiteStorage) -> None:
    """Extending a claim of 500 jobs changes a single row, and so does extending it again."""
    store.add_jobs(jobs(0, 500))
    store.claim_jobs(claiming(1, 500))
    changes = database.read(lambda cursor: cursor.connection.total_changes)
    for _ in range(2):
        assert store.extend_claim("claim-1", 60_000).held == 500
    assert database.read(lambda cursor: cursor.connection.total_changes) - changes == 2


def test_claiming_and_settling_fifty_take_few_statements(database: SQLiteDatabase, store: SQLiteStorage) -> None:
    """The number of statements is that of one job's, whatever the size of the claim."""
    store.add_jobs(jobs(0, 200))
    statements: list[str] = []
    database.read(lambda cursor: cursor.connection.set_trace_callback(statements.append))
    counts = []
    for number, limit in ((1, 1), (2, 50)):
        statements.clear()
        claimed = store.claim_jobs(claiming(number, limit))
        assert claimed is not None
        store.settle_jobs(claimed.batch.id, [Settling(job.id, "complete") for job in claimed.jobs], keep_done=1000)
        counts.append(len(statements))
    assert counts[0] == counts[1]
    assert counts[1] < 40


def test_any_number_of_jobs_stays_below_999_parameters(database: SQLiteDatabase, store: SQLiteStorage) -> None:
    """40,000 jobs are added, and 5,000 of them claimed, extended, swept, settled, loaded and removed."""
    database.read(lambda cursor: cursor.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999))
    many = jobs(0, 40_000)
    assert store.add_jobs(many) == ["added"] * 40_000
    claimed = store.claim_jobs(claiming(1, 5_000))
    assert claimed is not None
    assert len(claimed.jobs) == 5_000
    assert store.extend_claim("claim-1", 60_000).held == 5_000
    settlings = [Settling(job.id, "retry", "later", 1_000) for job in claimed.jobs[:2_500]]
    settlings += [Settling(job.id, "complete") for job in claimed.jobs[2_500:]]
    settled = store.settle_jobs("claim-1", settlings, keep_done=1_000)
    assert settled.outcomes == ("retried",) * 2_500 + ("completed",) * 2_500
    assert settled.finished
    assert len(store.get_jobs(job.id for job in many)) == 37_500
    assert store.remove_jobs([job.id for job in many[30_000:]]) == [None] * 10_000
    counts = store.count_jobs()
    assert (counts.waiting, counts.scheduled, counts.active) == (25_000, 2_500, 0)


def test_a_claim_keeps_the_list_of_its_jobs_as_long_as_it_lasts(database: SQLiteDatabase, store: SQLiteStorage) -> None:
    """What a claim holds is listed once, and when it ends nothing of it is left but its batch."""
    store.add_jobs(jobs(0, 2))
    store.claim_jobs(claiming(1))

    def rows(table: str) -> list[tuple[object, ...]]:
        return database.read(lambda cursor: cursor.execute(f"SELECT * FROM {table}").fetchall())  # noqa: S608 - a constant

    assert rows("batchstate_claim_jobs") == [
        ("q", "claim-1", json.dumps(["job-000000", "job-000001"]).replace(" ", ""))
    ]
    store.settle_jobs("claim-1", [Settling("job-000000", "complete"), Settling("job-000001", "release")], keep_done=0)
    for table in ("claims", "claim_jobs", "leases", "records", "forgetting"):
        assert rows(f"batchstate_{table}") == []
