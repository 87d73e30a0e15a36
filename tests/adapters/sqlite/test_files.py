"""The file: made, brought up to date, or refused with nothing changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.errors import (
    BatchStateError,
    CorruptRowError,
    InvalidValueError,
    StorageUnavailableError,
    UnsupportedFormatError,
)
from batchstate.listing import list_by_states
from batchstate.transition import transition
from batchstate_sqlite import SQLiteDatabase, SQLiteStorage, schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from batchstate.entities import Batch

NEXT_STEP = ("ALTER TABLE batchstate_records ADD COLUMN note TEXT", "UPDATE batchstate_records SET note = 'upgraded'")


def ask(path: Path, question: str) -> list[tuple[object, ...]]:
    """Answer what SQLite itself says about a file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchall()


def do(path: Path, *statements: str) -> None:
    """Change a file by SQLite's own means."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_new_file_says_whose_it_is_and_keeps_a_write_ahead_log(path: Path) -> None:
    """A new file has our application ID, the present version of our tables, and journal mode WAL."""
    SQLiteDatabase(path).close()
    assert ask(path, "PRAGMA application_id") == [(schema.APPLICATION_ID,)]
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]
    assert ask(path, "SELECT version FROM batchstate_schema") == [(len(schema.STEPS),)]


@pytest.mark.parametrize(("synchronous", "level"), [("NORMAL", 1), ("FULL", 2), ("EXTRA", 3)])
def test_every_connection_waits_for_the_disk_as_told(path: Path, synchronous: str, level: int) -> None:
    """The option reaches each connection, not only the first; without it a commit waits for the disk."""
    database = SQLiteDatabase(path, synchronous=synchronous)  # type: ignore[arg-type]
    with closing(database), database.transaction() as cursor:
        assert cursor.execute("PRAGMA synchronous").fetchone() == (level,)
        assert database.read(lambda other: other.execute("PRAGMA synchronous").fetchone()) == (level,)


def test_a_commit_waits_for_the_disk_unless_told_otherwise(path: Path) -> None:
    """`FULL` is the default of the database and of the storage."""
    with SQLiteStorage(path, "q") as store, store.database.transaction() as cursor:
        assert cursor.execute("PRAGMA synchronous").fetchone() == (2,)
    with closing(SQLiteDatabase(path)) as database, database.transaction() as cursor:
        assert cursor.execute("PRAGMA synchronous").fetchone() == (2,)


def test_an_older_file_is_brought_up_to_date(
    path: Path, create: Callable[..., Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of an older version goes through the steps it lacks, and its rows stay."""
    with SQLiteStorage(path, "q") as store:
        create(store)
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, NEXT_STEP))
    with SQLiteStorage(path, "q") as store:
        [batch] = list_by_states(store, ["queued"])
        assert transition(store, batch, "testing").version == 2
    assert ask(path, "SELECT version FROM batchstate_schema") == [(len(schema.STEPS),)]
    assert ask(path, "SELECT count(*) FROM batchstate_records") == [(1,)]


def test_an_upgrade_is_done_once_and_whole_or_not_at_all(
    path: Path, create: Callable[..., Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the second statement of a step fails, the first is undone and the file is as old as before."""
    with SQLiteStorage(path, "q") as store:
        create(store)
    steps = schema.STEPS
    monkeypatch.setattr(schema, "STEPS", (*steps, (NEXT_STEP[0], "UPDATE batchstate_nothing SET a = 1")))
    with pytest.raises(CorruptRowError):
        SQLiteDatabase(path)
    assert ask(path, "SELECT version FROM batchstate_schema") == [(len(steps),)]
    monkeypatch.setattr(schema, "STEPS", (*steps, NEXT_STEP))
    for _ in range(2):
        SQLiteDatabase(path).close()
    assert ask(path, "SELECT note FROM batchstate_records") == [("upgraded",)]


def test_a_file_of_a_newer_program_is_refused(path: Path) -> None:
    """A version of the tables beyond ours is no version we write to."""
    SQLiteDatabase(path).close()
    do(path, "UPDATE batchstate_schema SET version = version + 1")
    with pytest.raises(UnsupportedFormatError, match="upgrade batchstate"):
        SQLiteDatabase(path)
    assert ask(path, "SELECT version FROM batchstate_schema") == [(len(schema.STEPS) + 1,)]


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE batches (id TEXT)", "PRAGMA application_id = 7", "PRAGMA user_version = 7"]
)
def test_another_applications_file_is_refused_and_not_changed(path: Path, statement: str) -> None:
    """Tables, an application ID or a user version that are not ours: the file's bytes stay as they are."""
    do(path, statement)
    before = path.read_bytes()
    with pytest.raises(InvalidValueError, match=r"another application's.*adopt=true"):
        SQLiteDatabase(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_another_applications_file_is_adopted_when_told(path: Path, create: Callable[..., Batch]) -> None:
    """With `adopt` our tables stand beside the others, whose rows and header stay; later it need not be said."""
    do(path, "CREATE TABLE batches (id TEXT)", "INSERT INTO batches VALUES ('theirs')", "PRAGMA user_version = 7")
    with SQLiteStorage(path, "q", adopt=True) as store:
        create(store)
    with SQLiteStorage(path, "q") as store:
        assert [batch.id for batch in list_by_states(store, ["queued"])] == ["b1"]
    assert ask(path, "SELECT id FROM batches") == [("theirs",)]
    assert ask(path, "PRAGMA user_version") == [(7,)]
    assert ask(path, "PRAGMA application_id") == [(0,)]


def test_a_file_that_is_no_database_is_refused_and_not_changed(path: Path) -> None:
    """A text file stays the text it is."""
    path.write_text("state: queued\n" * 1000)
    with pytest.raises(CorruptRowError, match="is no SQLite database"):
        SQLiteDatabase(path)
    assert path.read_text() == "state: queued\n" * 1000


def test_a_damaged_file_is_told(path: Path, create: Callable[..., Batch]) -> None:
    """A page overwritten with rubbish is an error that names the file and says what to do, and no retryable one."""
    with SQLiteStorage(path, "q") as store:
        for n in range(100):
            create(store, f"b{n}")
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    with (
        pytest.raises(CorruptRowError, match=r"is damaged.*integrity_check") as caught,
        SQLiteStorage(path, "q") as store,
    ):
        list_by_states(store, ["queued"])
    assert str(path) in str(caught.value)
    assert not caught.value.retryable
    assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)


def test_lost_tables_are_told(path: Path, create: Callable[..., Batch]) -> None:
    """A table that somebody dropped is an error of ours, from SQLite's."""
    with SQLiteStorage(path, "q") as store:
        create(store)
        do(path, "DROP TABLE batchstate_records")
        with pytest.raises(CorruptRowError, match="does not have the tables"):
            list_by_states(store, ["queued"])


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A path that cannot be opened is an error that says why, and is named."""
    with pytest.raises(StorageUnavailableError, match=r"nowhere/batches\.db cannot be opened; its folder must exist"):
        SQLiteDatabase(tmp_path / "nowhere" / "batches.db")


def test_a_deleted_file_is_not_quietly_made_anew(path: Path, create: Callable[..., Batch]) -> None:
    """A connection opened after the file was deleted finds no file, instead of an empty one."""
    with SQLiteStorage(path, "q") as store, store.database.transaction():
        path.unlink()
        with pytest.raises(StorageUnavailableError, match="cannot be opened"):
            store.get_batches(["b1"])
    assert not path.exists()
    with SQLiteStorage(path, "q") as store:
        create(store)


def test_a_relative_path_stays_the_same_file(
    path: Path, create: Callable[..., Batch], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that changes its folder later keeps to the file it opened."""
    monkeypatch.chdir(path.parent)
    with SQLiteStorage(path.name, "q") as store:
        create(store)
        monkeypatch.chdir("/")
        with store.database.transaction():  # so that reading takes another connection
            assert list(store.get_batches(["b1"])) == ["b1"]


def test_odd_characters_in_a_path_are_taken_as_they_are(tmp_path: Path, create: Callable[..., Batch]) -> None:
    """A path with what a URI would read as syntax names just that file."""
    path = tmp_path / "a b?mode=ro#é%20.db"
    with SQLiteStorage(path, "q") as store:
        create(store)
    assert path.exists()


def test_many_who_open_a_new_file_at_once_make_it_once(path: Path) -> None:
    """Eight threads, each with a database of its own, all come to one and the same set of tables."""
    barrier = Barrier(8)
    problems: list[BatchStateError] = []

    def open_it() -> None:
        barrier.wait()
        try:
            SQLiteDatabase(path, timeout="30s").close()
        except BatchStateError as problem:
            problems.append(problem)

    threads = [Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert ask(path, "SELECT version FROM batchstate_schema") == [(len(schema.STEPS),)]


def test_a_file_that_another_makes_meanwhile_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever two statements of opening another's making of the tables falls between, the file is opened."""
    connect = sqlite3.connect
    before = 0  # how many statements are run before the other opens the file

    def connect_beside_another(database: str, **options: Any) -> sqlite3.Connection:
        def run(_: str) -> None:
            nonlocal before
            before -= 1
            if before == 0:
                with monkeypatch.context() as patch, suppress(StorageUnavailableError):
                    patch.setattr(sqlite3, "connect", connect)
                    SQLiteDatabase(path, timeout="1ms").close()  # not where the file is locked just then

        connection: sqlite3.Connection = connect(database, **options)
        connection.set_trace_callback(run)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_beside_another)
    tries = 0
    while before <= 0:
        tries += 1
        before, path = tries, tmp_path / f"{tries}.db"
        SQLiteDatabase(path).close()
    assert tries > len(sum(schema.STEPS, ()))


@pytest.mark.parametrize("wrong", ["", "a\0b", b"bytes.db"])
def test_a_path_that_is_none_is_refused(wrong: str) -> None:
    """An empty path would be a database that nobody finds again."""
    with pytest.raises(InvalidValueError, match="path of its file"):
        SQLiteDatabase(wrong)


def test_an_unknown_way_to_wait_for_the_disk_is_refused(path: Path) -> None:
    """`synchronous` is one of three words, and no file is made before it is looked at."""
    with pytest.raises(InvalidValueError, match="NORMAL, FULL or EXTRA"):
        SQLiteDatabase(path, synchronous="OFF")  # type: ignore[arg-type]
    assert not path.exists()
