"""What the tests of the SQLite adapter share."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate.creation import create_batch
from batchstate.entities import Batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from batchstate.storage import Storage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's file is to be; there is none yet."""
    return tmp_path / "batches.db"


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[str]]:
    """Start a Python program, given as text with its arguments, that can import what this process can."""

    def start_program(program: str, *args: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, *map(str, args)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_program


@pytest.fixture
def run(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., str]:
    """Run such a program to its end, and answer what it printed."""

    def run_program(program: str, *args: object) -> str:
        with start(program, *args) as process:
            printed, complaints = process.communicate(timeout=60)
        assert process.returncode == 0, complaints
        return printed

    return run_program


@pytest.fixture
def create() -> Callable[..., Batch]:
    """Create a batch in state `queued` with a request of its own."""

    def create_one(store: Storage, batch_id: str = "b1", state: str = "queued") -> Batch:
        return create_batch(store, Batch(batch_id, store.queue, state, request_ids=(f"r-{batch_id}",)))

    return create_one


@pytest.fixture
def check_jobs() -> Callable[[Path], None]:
    """Check that the tables of jobs agree with each other: every job in exactly one place, and every count right."""

    def check(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            found = {what: connection.execute(statement).fetchall() for what, statement in TOLD_TWICE.items()}
            told = {what: connection.execute(statement).fetchall() for what, statement in TOLD_ONCE.items()}
        assert found == told

    return check


_JOBS = "SELECT \"group\", {} FROM batchstate_jobs WHERE place = '{}' ORDER BY 1, 2, 3"

TOLD_ONCE = {
    "line": _JOBS.format('"order", id', "waiting"),
    "scheduled": _JOBS.format('due_at, "order", id', "scheduled"),
    "dead": "SELECT \"order\", id FROM batchstate_jobs WHERE place = 'dead' ORDER BY 1",
    "dead since": "SELECT dead_at, \"order\", id FROM batchstate_jobs WHERE place = 'dead' ORDER BY 1, 2",
    "counts": """
        SELECT "group", sum(place = 'waiting'), sum(place = 'active'), sum(place = 'scheduled'), sum(place = 'dead')
        FROM batchstate_jobs WHERE place <> 'done' GROUP BY 1 ORDER BY 1
    """,
    "claims": """
        SELECT claim, count(*), count(*), 1 FROM batchstate_jobs WHERE place = 'active' GROUP BY 1 ORDER BY 1
    """,
    "attempts": """
        SELECT claim, id FROM batchstate_jobs WHERE place = 'active' ORDER BY 1, 2
    """,
    "ring": "SELECT name, turn FROM batchstate_groups WHERE turn IS NOT NULL ORDER BY 1",
    "servable": """
        SELECT name FROM batchstate_groups WHERE waiting > 0 AND paused IS NULL AND ceiling IS NULL ORDER BY 1
    """,
    "claimed": "SELECT id FROM batchstate_claims ORDER BY 1",
}
"""What the rows of jobs, groups and claims say."""

TOLD_TWICE = {
    "line": 'SELECT "group", "order", job_id FROM batchstate_line ORDER BY 1, 2',
    "scheduled": 'SELECT "group", due_at, "order", job_id FROM batchstate_scheduled ORDER BY 1, 2, 3',
    "dead": 'SELECT "order", job_id FROM batchstate_dead ORDER BY 1',
    "dead since": 'SELECT dead_at, "order", job_id FROM batchstate_dead_since ORDER BY 1, 2',
    "counts": """
        SELECT name, waiting, active, scheduled, dead FROM batchstate_groups
        WHERE waiting + active + scheduled + dead > 0 ORDER BY 1
    """,
    "claims": """
        SELECT c.id, c.held, (
            SELECT count(*) FROM batchstate_claim_jobs AS h, json_each(h.job_ids) AS k, batchstate_jobs AS j
            WHERE h.claim = c.id AND j.id = k.value AND j.claim = c.id AND j.place = 'active'
        ), (SELECT count(*) FROM batchstate_leases AS l WHERE l.claim = c.id AND l.filed_at = c.filed_at)
        FROM batchstate_claims AS c ORDER BY 1
    """,
    "attempts": """
        SELECT a.batch_id, a.request_id
        FROM batchstate_associations AS a JOIN batchstate_claims AS c ON c.id = a.batch_id
        WHERE a.outcome = '' ORDER BY 1, 2
    """,
    "ring": 'SELECT "group", turn FROM batchstate_ring ORDER BY 1',
    "servable": """
        SELECT name FROM batchstate_groups
        WHERE turn IS NOT NULL AND waiting > 0 AND paused IS NULL AND ceiling IS NULL ORDER BY 1
    """,
    "claimed": "SELECT batch_id FROM batchstate_records WHERE state = 'claimed' ORDER BY 1",
}
"""What the tables beside them say of the same, in the same order."""
