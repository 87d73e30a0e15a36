"""`SQLiteDatabase`: one file, or one database in memory, with what it takes to read it and to write to it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from batchstate.errors import InvalidValueError, StorageUnavailableError
from batchstate.times import Duration, milliseconds
from batchstate_sqlite import schema
from batchstate_sqlite.errors import NOTHING_WRITTEN, READING, UNKNOWN, is_busy, translated
from batchstate_sqlite.nudges import Nudges, nudges_of
from batchstate_sqlite.pool import Pool
from batchstate_sqlite.reads import at_one_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["MEMORY", "SQLiteDatabase", "Synchronous"]

Synchronous: TypeAlias = Literal["NORMAL", "FULL", "EXTRA"]
"""What a commit waits for, as SQLite's own pragma says it."""

T = TypeVar("T")

MEMORY: Final = ":memory:"

BEGIN: Final = "BEGIN IMMEDIATE"
"""Takes the right to write at once. A transaction that reads first and then finds that another wrote
meanwhile fails, and no waiting helps it."""

CONNECTIONS: Final = 8
"""How many connections to a file this process holds at most; only one of them writes at a time."""

NAP: Final = 0.02
"""How many seconds SQLite waits for another process before we look at the time. Its waits grow longer
and longer, so that under load the one who came first would be served last; ours begin anew."""


class SQLiteDatabase:
    """A SQLite file that any number of threads and processes work on, or a database in this process's memory.

    Args:
        path: of the file, made where there is none; `":memory:"` for a database of this process
            alone, which all its threads share.
        synchronous: `"FULL"` for what is acknowledged to be on disk; `"NORMAL"` to wait for the disk
            at checkpoints only; `"EXTRA"` for the folder's entry too.
        timeout: how long to wait for another who writes, as a `timedelta`, seconds or a text.
        adopt: whether to make our tables in a file that holds another application's.

    Raises:
        InvalidValueError: an argument makes no sense, or the file is another application's.
            Nothing was changed.
        UnsupportedFormatError: a newer batchstate made its tables. Nothing was changed.
        CorruptRowError: it is no SQLite database, or a damaged one. Nothing was changed.
        StorageUnavailableError: it cannot be opened or written, or stayed busy.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] = MEMORY,
        *,
        synchronous: Synchronous = "FULL",
        timeout: Duration = "5s",
        adopt: bool = False,
    ) -> None:
        if synchronous not in ("NORMAL", "FULL", "EXTRA"):
            msg = f"synchronous must be NORMAL, FULL or EXTRA, not {synchronous!r}"
            raise InvalidValueError(msg)
        text = os.fspath(path)
        if type(text) is not str or not text or "\0" in text:
            msg = f"a SQLite database is named by the path of its file, or {MEMORY}, not {text!r}"
            raise InvalidValueError(msg)
        self.in_memory = text == MEMORY
        self.path = text if self.in_memory else os.path.abspath(text)  # noqa: PTH100 - unlike Path.resolve it leaves links alone
        self.name = f"the SQLite database {self.path}"
        self._synchronous = synchronous
        self._patience = milliseconds(timeout, "timeout", zero=True) / 1000
        self._adopt = adopt
        self.nudges = Nudges() if self.in_memory else nudges_of(self.path)
        """Those who wait for jobs."""
        self._mode = "rwc"  # only the first opening makes a file: were it deleted since, a new one would have no tables
        self._pool = Pool(
            self.name, self._connect, most=1 if self.in_memory else CONNECTIONS, shared=not self.in_memory
        )
        self.longest_row = 0
        """The size of the largest row that this SQLite stores, in bytes."""
        self._make()

    def __repr__(self) -> str:
        return f"<SQLiteDatabase {self.path}>"

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """Give a cursor in a writing transaction, which is committed at the end, or undone where anything is raised.

        Raises:
            StorageUnavailableError: the database stayed busy, or failed; nothing was written unless
                the text says that this is unknown.
            CorruptRowError: it is damaged; nothing was written.
        """
        deadline = monotonic() + self._patience
        writing = self._pool.writing  # a fork gives the child another lock
        if not writing.acquire(timeout=self._patience):
            msg = f"{self.name} is busy: other threads wrote for all of {self._patience:g} s; {NOTHING_WRITTEN}"
            raise StorageUnavailableError(msg)
        known = NOTHING_WRITTEN
        try:
            connection = self._pool.borrow(deadline)
            try:
                cursor = connection.cursor()
                self._begin(cursor, deadline)
                yield cursor
                known = UNKNOWN
                cursor.execute("COMMIT")
            except BaseException:
                # Where even this fails, the pool closes the connection, which undoes the transaction.
                with suppress(sqlite3.Error):
                    connection.rollback()
                raise
            finally:
                self._pool.give_back(connection)
        except sqlite3.Error as error:
            raise translated(error, self.name, known) from error
        finally:
            writing.release()

    def _begin(self, cursor: sqlite3.Cursor, deadline: float) -> None:
        try:
            cursor.execute(BEGIN)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            _until_free(lambda: cursor.execute(BEGIN), deadline)

    def read(self, work: Callable[[sqlite3.Cursor], T]) -> T:
        """Answer what `work` reads in one statement; it is called again where the database was busy.

        Raises:
            StorageUnavailableError: the database stayed busy, or failed.
            CorruptRowError: it is damaged.
        """
        deadline = monotonic() + self._patience
        try:
            connection = self._pool.borrow(deadline)
            try:
                return _until_free(lambda: work(connection.cursor()), deadline)
            finally:
                self._pool.give_back(connection)
        except sqlite3.Error as error:
            raise translated(error, self.name, READING) from error

    def close(self) -> None:
        """Close all connections, those in use as soon as they are not. Twice is harmless."""
        self._pool.close()

    def _make(self) -> None:
        """Open the database for the first time: make it where there is none, and bring its tables up to date."""
        try:
            if self.read(lambda cursor: at_one_instant(cursor, self._needs_preparing)):
                self._use_wal()
                with self.transaction() as cursor:
                    schema.prepare(cursor, self.name, adopt=self._adopt)
            else:
                self._use_wal()
            self._mode = "rw"
            self.longest_row = self.read(lambda cursor: cursor.connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH))
        except sqlite3.Error as error:
            self.close()
            raise translated(error, self.name, NOTHING_WRITTEN) from error
        except BaseException:
            self.close()
            raise

    def _needs_preparing(self, cursor: sqlite3.Cursor) -> bool:
        return schema.needs_preparing(cursor, self.name, adopt=self._adopt)

    def _use_wal(self) -> None:
        if self.in_memory:
            return
        [mode] = self.read(lambda cursor: cursor.execute("PRAGMA journal_mode").fetchone())
        if mode != "wal":
            [mode] = self.read(lambda cursor: cursor.execute("PRAGMA journal_mode = WAL").fetchone())
        if mode != "wal":
            msg = f"{self.name} cannot keep a write-ahead log there (mode: {mode}); it needs a local disk"
            raise StorageUnavailableError(msg)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            MEMORY if self.in_memory else f"{Path(self.path).as_uri()}?mode={self._mode}",
            timeout=min(NAP, self._patience),
            isolation_level=None,
            check_same_thread=False,
            uri=not self.in_memory,
        )
        try:
            _until_free(
                lambda: connection.execute(f"PRAGMA synchronous = {self._synchronous}"), monotonic() + self._patience
            )
        except BaseException:
            connection.close()
            raise
        return connection


def _until_free(work: Callable[[], T], deadline: float) -> T:
    """Answer what `work` does; it is called again for as long as the database is busy, until `deadline`."""
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or monotonic() >= deadline:
                raise
