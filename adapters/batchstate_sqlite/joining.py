"""`JoinedConnection`: a transaction of the user's own, in which our writes are committed or undone with theirs."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from batchstate.errors import InvalidValueError
from batchstate_sqlite import schema
from batchstate_sqlite.errors import NOTHING_WRITTEN, READING, translated
from batchstate_sqlite.nudges import Nudges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["JoinedConnection"]

T = TypeVar("T")


class JoinedConnection:
    """A connection of the user's, in place of a `SQLiteDatabase`.

    It never commits. Where no transaction is open, a write begins one, which is the user's to end.
    Each write is a savepoint, so that one that fails leaves nothing behind and the transaction usable.

    Args:
        connection: to a database that has our tables. It is used by the thread that made it, and
            left open.

    Raises:
        InvalidValueError: the database has not our tables, or the connection does not give text as `str`.
        UnsupportedFormatError: a newer batchstate made the tables.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        if connection.text_factory is not str:
            msg = "the connection's text_factory must be str"
            raise InvalidValueError(msg)
        self._connection = connection
        self.name = "the database of your connection"
        self.path = "a connection"
        self.nudges = Nudges()
        """Nobody is told of what is not committed yet."""
        if self.read(lambda cursor: schema.needs_preparing(cursor, self.name, adopt=True)):
            msg = (
                "your database does not have batchstate's tables, or not the present ones: open it once with "
                "SQLiteStorage(path, queue, adopt=True)"
            )
            raise InvalidValueError(msg)
        self.longest_row = connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        """Give a cursor in the user's transaction; what is done with it is undone where anything is raised.

        Raises:
            StorageUnavailableError: the database is busy, or failed; nothing was written. A
                transaction that has read before it first writes is best begun with `BEGIN IMMEDIATE`.
        """
        cursor = self._cursor()
        try:
            if not self._connection.in_transaction:
                cursor.execute("BEGIN IMMEDIATE")
            cursor.execute("SAVEPOINT batchstate")
            try:
                yield cursor
            except BaseException:
                if self._connection.in_transaction:  # a full disk, for one, has undone all of it
                    cursor.execute("ROLLBACK TO batchstate")
                    cursor.execute("RELEASE batchstate")
                raise
            cursor.execute("RELEASE batchstate")
        except sqlite3.Error as error:
            raise translated(error, self.name, NOTHING_WRITTEN) from error

    def read(self, work: Callable[[sqlite3.Cursor], T]) -> T:
        """Answer what `work` reads; the user's own writes in this transaction are seen."""
        try:
            return work(self._cursor())
        except sqlite3.Error as error:
            raise translated(error, self.name, READING) from error

    def close(self) -> None:
        """Do nothing: the connection is the user's."""

    def _cursor(self) -> sqlite3.Cursor:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        return cursor
