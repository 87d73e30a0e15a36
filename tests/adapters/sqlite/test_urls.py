"""What a `sqlite://` URL names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.errors import InvalidNameError, InvalidValueError, StorageUnavailableError
from batchstate.times import wall_clock
from batchstate.urls import open_storage
from batchstate_sqlite import SQLiteStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from batchstate.entities import Batch


def opened(url: str, queue: str = "q") -> SQLiteStorage:
    """Open a URL as every program does."""
    store = open_storage(url, queue=queue)
    assert isinstance(store, SQLiteStorage)
    return store


def test_three_slashes_name_a_relative_path_and_four_an_absolute_one(
    path: Path, create: Callable[..., Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both name the same file when the program stands in its folder."""
    monkeypatch.chdir(path.parent)
    with opened(f"sqlite:///{path.name}") as store:
        create(store)
    with opened(f"sqlite:///{path}") as store:
        assert list(store.get_batches(["b1"])) == ["b1"]
        assert store.database.path == str(path)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_no_path_is_a_database_in_memory(url: str, create: Callable[..., Batch]) -> None:
    """Each such URL opened is a database of its own."""
    with opened(url) as store, opened(url) as other:
        create(store)
        assert store.database.path == ":memory:"
        assert other.get_batches(["b1"]) == {}


def test_a_storage_opened_by_url_closes_its_database(path: Path) -> None:
    """The database belongs to the storage."""
    store = opened(f"sqlite:///{path}")
    store.close()
    with pytest.raises(StorageUnavailableError, match="is closed"):
        store.list_queues()


def test_options_are_read_from_the_query(path: Path) -> None:
    """`synchronous` in any case, `timeout` as seconds or as a duration."""
    with (
        opened(f"sqlite:///{path}?synchronous=normal&timeout=0.05") as store,
        store.database.transaction() as cursor,
    ):
        assert cursor.execute("PRAGMA synchronous").fetchone() == (1,)
        with pytest.raises(StorageUnavailableError, match=r"for all of 0\.05 s"), store.database.transaction():
            pass
    with (
        opened(f"sqlite:///{path}?timeout=70ms") as store,
        store.database.transaction(),
        pytest.raises(StorageUnavailableError, match=r"for all of 0\.07 s"),
        store.database.transaction(),
    ):
        pass


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("sqlite://batches.db", "has no host.*three slashes"),
        ("sqlite://user:secret@/batches.db", "has no host"),
        ("sqlite:///b.db?synchronous=off", "option 'synchronous'"),
        ("sqlite:///b.db?timeout=soon", "timeout is unreadable"),
        ("sqlite:///b.db?timeout=-1", "timeout must be 0 or more"),
        ("sqlite:///b.db?journal=delete", "option 'journal'.*options are: adopt, synchronous, timeout"),
    ],
)
def test_a_wrong_url_is_refused_before_a_file_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, complaint: str
) -> None:
    """The error says what is wrong, without the secret, and nothing is left in the folder."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValueError, match=complaint) as caught:
        opened(url)
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_queue_is_refused_before_a_file_is_made(path: Path) -> None:
    """The queue's name is looked at first."""
    with pytest.raises(InvalidNameError):
        opened(f"sqlite:///{path}", queue="a\nb")
    with pytest.raises(InvalidNameError):
        SQLiteStorage(path, "")
    assert not path.exists()


def test_a_storage_says_what_it_is(path: Path) -> None:
    """Its representation names the queue and the file; its clock is this machine's unless one is given."""
    with opened(f"sqlite:///{path}") as store:
        assert repr(store) == f"<SQLiteStorage of queue 'q' in {path}>"
        assert repr(store.database) == f"<SQLiteDatabase {path}>"
        assert store.clock is wall_clock
