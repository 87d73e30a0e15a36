"""How rows are fetched and decoded, whatever stands in them."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, TypeVar

from batchstate.errors import CorruptRowError, UnsupportedFormatError
from batchstate.wire import decode_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from batchstate.entities import Batch
    from batchstate.storage import Unreadable

__all__ = ["at_one_instant", "decoded", "fetched"]

T = TypeVar("T")


def at_one_instant(cursor: sqlite3.Cursor, work: Callable[[sqlite3.Cursor], T]) -> T:
    """Answer what `work` reads, in however many statements, as it was at one instant."""
    cursor.execute("SAVEPOINT batchstate_reading")
    try:
        return work(cursor)
    finally:
        cursor.execute("RELEASE batchstate_reading")


def fetched(cursor: sqlite3.Cursor, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
    """Answer all rows of a statement, those too in which another program left a text that is no UTF-8."""
    try:
        return cursor.execute(statement, values).fetchall()
    except sqlite3.OperationalError as error:
        if hasattr(error, "sqlite_errorcode"):
            raise
    # The module itself gave up on a text, and with it on all rows. Bytes in its place are refused
    # row by row, when the row is decoded.
    connection = cursor.connection
    usual = connection.text_factory
    connection.text_factory = _tolerant
    try:
        return cursor.execute(statement, values).fetchall()
    finally:
        connection.text_factory = usual


def _tolerant(text: bytes) -> str | bytes:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


def decoded(row: Sequence[Any], queue: str) -> Batch | Unreadable:
    """Answer the batch of a row, or the error that names a row which cannot be read."""
    try:
        return decode_batch(row, queue)
    except (CorruptRowError, UnsupportedFormatError) as error:
        return error
