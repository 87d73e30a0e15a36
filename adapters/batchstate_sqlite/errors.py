"""The one place where SQLite's errors become ours."""

from __future__ import annotations

import sqlite3
from typing import Final

from batchstate.errors import BatchStateError, CorruptRowError, StorageUnavailableError, TooLargeError

__all__ = ["NOTHING_WRITTEN", "READING", "UNKNOWN", "is_busy", "translated"]

NOTHING_WRITTEN: Final = "nothing of this step was written"
UNKNOWN: Final = "whether this step was written is unknown"
READING: Final = "it was only being read"

_UNAVAILABLE: Final = {
    sqlite3.SQLITE_BUSY: "is busy",
    sqlite3.SQLITE_LOCKED: "is busy",
    sqlite3.SQLITE_FULL: "cannot grow, the disk is full",
    sqlite3.SQLITE_READONLY: "cannot be written: it, its folder or its disk is read-only, or it was moved",
    sqlite3.SQLITE_PERM: "cannot be reached for lack of permission",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; its folder must exist, and you must be allowed to write in it",
    sqlite3.SQLITE_IOERR: "failed in input or output",
    sqlite3.SQLITE_PROTOCOL: "is busy beyond what SQLite's locking can order",
    sqlite3.SQLITE_NOMEM: "could not be served for want of memory",
    sqlite3.SQLITE_INTERRUPT: "was interrupted",
}
_DAMAGED: Final = {
    sqlite3.SQLITE_CORRUPT: "is damaged; stop writing, copy it away, and try `PRAGMA integrity_check` and `.recover`",
    sqlite3.SQLITE_NOTADB: "is no SQLite database; is the path right?",
    sqlite3.SQLITE_ERROR: "does not have the tables that batchstate made in it; were they changed by other means?",
    sqlite3.SQLITE_CONSTRAINT: "has tables with constraints that batchstate did not make",
    sqlite3.SQLITE_MISMATCH: "has tables with types that batchstate did not make",
    sqlite3.SQLITE_FORMAT: "has a format that SQLite cannot read",
}


def is_busy(error: sqlite3.Error) -> bool:
    """Answer whether the same call may succeed as soon as somebody else is done."""
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translated(error: sqlite3.Error, name: str, known: str) -> BatchStateError | sqlite3.Error:
    """Answer our error for one of SQLite's, to be raised `from` it.

    What SQLite did not say itself, such as a misuse of its module, is a fault of this program and
    is answered as it is.

    Args:
        error: what SQLite raised.
        name: what to call the file.
        known: what is known about the store now, as the end of a sentence.
    """
    code = _primary(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL) and known == UNKNOWN:
        known = NOTHING_WRITTEN  # a commit that had to wait or found no room was undone
    if code in _UNAVAILABLE:
        return StorageUnavailableError(f"{name} {_UNAVAILABLE[code]} ({error}); {known}")
    if code in _DAMAGED:
        return CorruptRowError(f"{name} {_DAMAGED[code]} ({error}); {known}", key=name)
    if code == sqlite3.SQLITE_TOOBIG:
        return TooLargeError(f"{name} cannot hold a row of this size ({error}); {known}")
    return error


def _primary(error: sqlite3.Error) -> int:
    """Answer the primary result code, which is the low byte of the extended one; -1 where SQLite gave none."""
    code: int = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else -1
