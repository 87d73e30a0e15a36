"""The tables, their version, and how a file comes to the present one.

The version stands in a table of ours and not in the header's `user_version`: a file may hold the
tables of the application beside ours (so that both change in one transaction), and `user_version` is
what applications number their own migrations with.

`batchstate_batches` is an ordinary table, since its rows take a kilobyte and more and a
`WITHOUT ROWID` table moves all of a row beyond a quarter of a page into overflow pages (updates were
measured 2 to 3 times slower). The others are nothing but their key, and so `WITHOUT ROWID`. There is
no secondary index: each listing has a table that is keyed by what it asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from batchstate.errors import InvalidValueError, UnsupportedFormatError
from batchstate_sqlite.job_schema import JOB_TABLES

if TYPE_CHECKING:
    from sqlite3 import Cursor

__all__ = ["APPLICATION_ID", "STEPS", "needs_preparing", "prepare"]

APPLICATION_ID: Final = 0x62746368
"""What the header of a file that batchstate made says it is: "btch"."""

STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE batchstate_schema (version INTEGER NOT NULL)",
        "INSERT INTO batchstate_schema (version) VALUES (0)",
        """
        CREATE TABLE batchstate_batches (
            queue TEXT NOT NULL,
            id TEXT NOT NULL,
            format INTEGER NOT NULL,
            version INTEGER NOT NULL,
            mark TEXT NOT NULL,
            state TEXT NOT NULL,
            entered INTEGER NOT NULL,
            created_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            retired_at INTEGER,
            marks TEXT NOT NULL,
            moves TEXT NOT NULL,
            requests TEXT NOT NULL,
            attributes TEXT NOT NULL,
            PRIMARY KEY (queue, id)
        )
        """,
        """
        CREATE TABLE batchstate_records (
            queue TEXT NOT NULL,
            state TEXT NOT NULL,
            batch_id TEXT NOT NULL,
            version INTEGER NOT NULL,
            PRIMARY KEY (queue, state, batch_id)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE batchstate_associations (
            queue TEXT NOT NULL,
            request_id TEXT NOT NULL,
            batch_id TEXT NOT NULL,
            outcome TEXT NOT NULL,
            PRIMARY KEY (queue, request_id, batch_id)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE batchstate_retired (
            queue TEXT NOT NULL,
            retired_at INTEGER NOT NULL,
            batch_id TEXT NOT NULL,
            PRIMARY KEY (queue, retired_at, batch_id)
        ) WITHOUT ROWID
        """,
    ),
    JOB_TABLES,
)
"""What makes version n of version n - 1. A step that was ever released is never changed again."""


def needs_preparing(cursor: Cursor, name: str, *, adopt: bool) -> bool:
    """Answer whether the tables are yet to be made or brought up to date. Reads only.

    Args:
        cursor: of a connection to the file, within a transaction: another process may make the
            tables between one of its statements and the next.
        name: what to call the file in an error.
        adopt: whether our tables may be made in a file that holds another application's.

    Raises:
        UnsupportedFormatError: a newer program made the tables.
        InvalidValueError: the file is another application's, and we were not told to adopt it.
    """
    version = _version(cursor)
    if version > len(STEPS):
        msg = (
            f"{name} has tables of version {version}, and this program knows them up to {len(STEPS)}: "
            "upgrade batchstate; nothing was changed"
        )
        raise UnsupportedFormatError(msg)
    if version == 0 and not adopt:
        _refuse_foreign(cursor, name)
    return version < len(STEPS)


def prepare(cursor: Cursor, name: str, *, adopt: bool) -> None:
    """Bring the tables up to date; to be called within a writing transaction. Arguments and errors as above."""
    if not needs_preparing(cursor, name, adopt=adopt):
        return  # another process was faster
    version = _version(cursor)
    if version == 0 and not _tables(cursor):
        cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for step in STEPS[version:]:
        for statement in step:
            cursor.execute(statement)
    cursor.execute("UPDATE batchstate_schema SET version = ?", (len(STEPS),))


def _version(cursor: Cursor) -> int:
    """Answer the version of our tables, 0 where there are none."""
    if "batchstate_schema" not in _tables(cursor):
        return 0
    [version] = cursor.execute("SELECT version FROM batchstate_schema").fetchone()
    return int(version)


def _tables(cursor: Cursor) -> list[str]:
    return [name for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def _refuse_foreign(cursor: Cursor, name: str) -> None:
    tables = _tables(cursor)
    [application] = cursor.execute("PRAGMA application_id").fetchone()
    [user_version] = cursor.execute("PRAGMA user_version").fetchone()
    if not tables and application in (0, APPLICATION_ID) and user_version == 0:
        return
    msg = (
        f"{name} is another application's (tables: {', '.join(tables[:5]) or 'none'}; application_id: {application}; "
        f"user_version: {user_version}); give batchstate a file of its own, or say adopt=true to keep its tables "
        "beside the others; nothing was changed"
    )
    raise InvalidValueError(msg)
