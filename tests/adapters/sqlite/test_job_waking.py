"""Who waits for jobs in this process is told of what this process does, and of nothing that is not committed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate.job_storage import Wakeable
from batchstate_sqlite import SQLiteStorage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStorage]:
    """Open a storage."""
    with SQLiteStorage(path, "q", adopt=True) as store:
        yield store


@pytest.fixture
def nudged(store: SQLiteStorage) -> Iterator[list[str]]:
    """Listen, and note each time."""
    assert isinstance(store, Wakeable)
    told: list[str] = []
    forget = store.listen(lambda: told.append("nudge"))
    yield told
    forget()


def test_what_may_make_jobs_claimable_is_told(store: SQLiteStorage, nudged: list[str]) -> None:
    """Adding and settling are told of, claiming is not."""
    store.add_jobs([NewJob("j1", "1")])
    assert len(nudged) == 1
    store.claim_jobs(Claiming("c1", 1, 1_000, "m"))
    assert len(nudged) == 1
    store.settle_jobs("c1", [Settling("j1", "release")], keep_done=0)
    assert len(nudged) == 2


def test_another_storage_of_the_same_file_tells_as_well(path: Path, nudged: list[str], tmp_path: Path) -> None:
    """By whatever name it was opened, and not one of another file."""
    link = tmp_path / "link.db"
    link.symlink_to(path)
    for other in (link, tmp_path / "other.db"):
        with SQLiteStorage(other, "q") as store:
            store.add_jobs([NewJob(f"from {other.name}", "1")])
    assert len(nudged) == 1


def test_who_forgets_is_told_nothing(store: SQLiteStorage) -> None:
    """After the end of listening no call comes."""
    told: list[str] = []
    store.listen(lambda: told.append("nudge"))()
    store.add_jobs([NewJob("j1", "1")])
    assert told == []


def test_nobody_is_told_of_what_may_be_rolled_back(path: Path, store: SQLiteStorage, nudged: list[str]) -> None:
    """A job added in the user's transaction is found by looking, after the commit."""
    with closing(sqlite3.connect(path)) as connection:
        SQLiteStorage.joining(connection, "q").add_jobs([NewJob("j1", "1")])
        assert nudged == []
        connection.commit()
    assert store.count_claimable(1) == 1
