"""`SQLiteStorage`: the storage protocol over a `SQLiteDatabase`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

from batchstate.entities import Association, Batch, MembershipRecord
from batchstate.errors import BatchStateError, InvalidValueError
from batchstate.names import check_name
from batchstate.storage import Kind, Outcome, Page, Swap, Unreadable
from batchstate.times import Clock, Duration, wall_clock
from batchstate.transition import record_of
from batchstate.wire import BatchRow, check_association, check_record, encode_each
from batchstate_sqlite import job_statements, statements, writes
from batchstate_sqlite.database import SQLiteDatabase, Synchronous
from batchstate_sqlite.describing import describe
from batchstate_sqlite.jobs import SQLiteJobs
from batchstate_sqlite.joining import JoinedConnection
from batchstate_sqlite.options import database_of
from batchstate_sqlite.reads import decoded, fetched

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from sqlite3 import Connection, Cursor
    from types import TracebackType

    from batchstate.urls import StorageURL

__all__ = ["SQLiteStorage"]

Item = TypeVar("Item")
Result = TypeVar("Result")

CHUNK: Final = 1000
"""How many items are written in one transaction, and how many rows are read by one statement, at most."""

LARGEST_INT: Final = 2**63 - 1
"""The largest integer that SQLite stores."""

ROOM: Final = 1000
"""How many bytes of a row are not its texts, at most."""


class SQLiteStorage(SQLiteJobs):
    """One queue of a SQLite database.

    Args:
        database: a `SQLiteDatabase`, which may be shared by the storages of several queues and is left
            open (as is a `JoinedConnection`, see `joining`); or the path of a file, which is opened
            with the arguments below, and closed with the storage.
        queue: the queue.
        clock: answers the time in milliseconds since the epoch; this machine's by default.
        synchronous, timeout, adopt: as for `SQLiteDatabase`.

    Raises:
        InvalidNameError: `queue` is no name.
        BatchStateError: as for `SQLiteDatabase`.
    """

    sees_rows: ClassVar[bool] = True
    """A put is a no-op for an absent or retired row: the row is looked at in the same statement."""

    def __init__(
        self,
        database: SQLiteDatabase | JoinedConnection | str | os.PathLike[str],
        queue: str,
        *,
        clock: Clock | None = None,
        synchronous: Synchronous = "FULL",
        timeout: Duration = "5s",
        adopt: bool = False,
    ) -> None:
        self._queue = check_name("queue", queue)
        self._owner = not isinstance(database, SQLiteDatabase | JoinedConnection)
        self.database = (
            database
            if isinstance(database, SQLiteDatabase | JoinedConnection)
            else SQLiteDatabase(database, synchronous=synchronous, timeout=timeout, adopt=adopt)
        )
        self._longest = self.database.longest_row - ROOM
        self.clock = clock or wall_clock

    @classmethod
    def from_url(cls, url: StorageURL, queue: str, *, clock: Clock | None = None) -> Self:
        """Open `sqlite:///relative.db`, `sqlite:////absolute/path.db`, or `sqlite://` for a database in memory.

        Options: `synchronous=full|normal|extra`, `timeout=5s`, `adopt=true`.
        """
        check_name("queue", queue)
        storage = cls(database_of(url), queue, clock=clock)
        storage._owner = True
        return storage

    @classmethod
    def joining(cls, connection: Connection, queue: str, *, clock: Clock | None = None) -> Self:
        """Work inside the transaction of a connection of yours: our rows are committed or undone with yours.

            connection.execute("INSERT INTO changes VALUES (?)", [change])
            BatchQueue(SQLiteStorage.joining(connection, "merges")).add(change)     # there if the change is
            connection.commit()

        Batches are created and moved, jobs added, settled, revived and removed so. Claims and holds are not made or
        extended here, since nobody would see the lease before your commit: those raise `InvalidValueError` and want
        a storage of its own. Jobs that it claimed can be settled here, and are done exactly when your rows are there.

        Args:
            connection: to a database that has batchstate's tables, which `SQLiteStorage(path, queue, adopt=True)`
                makes, not within a transaction. It is never committed by us; where no transaction is open, the
                first write begins one.
            queue: the queue.
            clock: as for the class.

        Raises:
            InvalidValueError: the database has not our tables, or the connection does not give text
                as `str`. Nothing was written.
            UnsupportedFormatError: a newer batchstate made the tables.
        """
        return cls(JoinedConnection(connection), queue, clock=clock)

    def __repr__(self) -> str:
        return f"<SQLiteStorage of queue {self._queue!r} in {self.database.path}>"

    @property
    def queue(self) -> str:
        return self._queue

    def check_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return [row if isinstance(row, BatchStateError) else None for row in self._encode(batches)]

    def create_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return self._create(batches, whole=False)

    def create_whole(self, batches: Sequence[Batch]) -> list[Outcome]:
        return self._create(batches, whole=True)

    def get_batches(self, ids: Iterable[str]) -> dict[str, Batch | Unreadable]:
        wanted = dict.fromkeys(ids)
        found: dict[str, Batch | Unreadable] = {}
        for chunk in _chunks(list(wanted)):
            for row in self._fetch(statements.BATCHES_OF, json.dumps(chunk), self._queue):
                if row[1] in wanted:  # SQLite's JSON reads a text up to a NUL, and so might find another
                    found[row[1]] = decoded(row, self._queue)
        return found

    def update_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        return self._swap(swaps, records=False)

    def move_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        return self._swap(swaps, records=True)

    def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._write_records(statements.PUT_LIVE_RECORD, records)

    def delete_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._write_records(statements.DELETE_RECORD, records)

    def get_records(self, keys: Iterable[tuple[str, str]]) -> list[MembershipRecord]:
        wanted = dict.fromkeys(keys)
        return [
            MembershipRecord(self._queue, state, batch_id, version)
            for chunk in _chunks(list(wanted))
            for state, batch_id, version in self._fetch(statements.RECORDS_OF, json.dumps(chunk), self._queue)
            if (state, batch_id) in wanted
        ]

    def list_records(self, state: str, cursor: str | None = None, *, limit: int = 500) -> Page[MembershipRecord]:
        rows = self._fetch(statements.RECORDS_AFTER, self._queue, state, cursor or "", limit + 1)
        items = [MembershipRecord(self._queue, state, batch_id, version) for batch_id, version in rows[:limit]]
        return Page(items, items[-1].batch_id if len(rows) > limit else None)

    def list_records_of(self, states: Sequence[str]) -> list[MembershipRecord] | None:
        rows = self._fetch(statements.RECORDS_OF_STATES, json.dumps(list(states)), self._queue)
        return [MembershipRecord(self._queue, state, batch_id, version) for state, batch_id, version in rows]

    def put_associations(self, associations: Sequence[Association]) -> list[Outcome]:
        outcomes = self._refusals(associations, check_association)
        self._write(
            statements.PUT_ASSOCIATION,
            [
                (self._queue, association.request_id, association.batch_id, association.outcome)
                for association, outcome in zip(associations, outcomes, strict=True)
                if outcome is None
            ],
        )
        return outcomes

    def list_associations(self, request_id: str) -> list[Association]:
        rows = self._fetch(statements.ASSOCIATIONS_OF, self._queue, request_id)
        return [Association(self._queue, request_id, batch_id, outcome) for batch_id, outcome in rows]

    def list_retired(self, cursor: str | None = None, *, limit: int = 500) -> Page[Batch | Unreadable]:
        after = (-LARGEST_INT, "") if cursor is None else json.loads(cursor)
        rows = self._fetch(statements.RETIRED_AFTER, self._queue, *after, limit + 1)
        return Page(
            [decoded(row[2:], self._queue) for row in rows[:limit]],
            json.dumps(rows[limit - 1][:2]) if len(rows) > limit else None,
        )

    def delete_batches(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        outcomes = self._refusals([record_of(batch) for batch in batches], check_record)
        places = [place for place, outcome in enumerate(outcomes) if outcome is None]
        for chunk in _chunks(places):
            with self.database.transaction() as cursor:
                answers = writes.delete(cursor, self._queue, [batches[place] for place in chunk], states)
            for place, answer in zip(chunk, answers, strict=True):
                outcomes[place] = answer
        return outcomes

    def list_queues(self) -> list[str]:
        with_batches = self._fetch(statements.QUEUES)
        return sorted({queue for (queue,) in (*with_batches, *self._fetch(job_statements.JOB_QUEUES))})

    def scan(self, kind: Kind, cursor: str | None = None, *, limit: int = 500) -> Page[object]:
        if kind == "batches":
            return self._scan(statements.BATCHES_AFTER, cursor, limit, (1,), lambda row: decoded(row, self._queue))
        if kind == "records":
            return self._scan(
                statements.SCAN_RECORDS, cursor, limit, (0, 1), lambda row: MembershipRecord(self._queue, *row)
            )
        return self._scan(
            statements.SCAN_ASSOCIATIONS, cursor, limit, (0, 1), lambda row: Association(self._queue, *row)
        )

    def describe(self) -> tuple[dict[str, str], list[str]]:
        return self.database.read(describe)

    def close(self) -> None:
        if self._owner:
            self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _encode(self, batches: Sequence[Batch]) -> list[BatchRow | BatchStateError]:
        return [
            row if isinstance(row, BatchStateError) or self._fits(row) else self._refusal(batch, row)
            for batch, row in zip(batches, encode_each(batches, self._queue), strict=True)
        ]

    def _fits(self, row: BatchRow) -> bool:
        """Answer whether SQLite surely holds this row; a character takes up to four bytes."""
        _, _, version, _, entered, created_at, updated_at, retired_at, marks, moves, requests, attributes = row
        return (
            4 * (len(marks) + len(moves) + len(requests) + len(attributes)) < self._longest
            and version < LARGEST_INT > entered
            and -LARGEST_INT < created_at < LARGEST_INT > updated_at > -LARGEST_INT
            and (retired_at is None or -LARGEST_INT < retired_at < LARGEST_INT)
        )

    def _refusal(self, batch: Batch, row: BatchRow) -> BatchRow | BatchStateError:
        """Answer why SQLite cannot hold this row, or the row if it can."""
        numbers = (row.version, row.entered, row.created_at, row.updated_at, row.retired_at or 0)
        if max(map(abs, numbers)) > LARGEST_INT:
            msg = f"batch {batch.id!r} has a version or a time that is larger than SQLite stores, which is 2**63-1"
            return InvalidValueError(msg)
        return encode_each([batch], self._queue, most=self._longest)[0]

    def _create(self, batches: Sequence[Batch], *, whole: bool) -> list[Outcome]:
        return self._each(
            batches,
            self._encode(batches),
            lambda cursor, pairs: writes.create(cursor, self._queue, pairs, whole=whole),
        )

    def _swap(self, swaps: Sequence[Swap], *, records: bool) -> list[Outcome]:
        return self._each(
            swaps,
            self._encode([swap.after for swap in swaps]),
            lambda cursor, pairs: writes.swap(cursor, self._queue, pairs, records=records),
        )

    def _each(
        self,
        items: Sequence[Item],
        rows: Sequence[BatchRow | BatchStateError],
        write: Callable[[Cursor, Sequence[tuple[Item, BatchRow]]], list[Outcome]],
    ) -> list[Outcome]:
        """Write those items that have a row, a chunk in a transaction, and answer for all of them."""
        pairs = [(item, row) for item, row in zip(items, rows, strict=True) if not isinstance(row, BatchStateError)]
        written: list[Outcome] = []
        for chunk in _chunks(pairs):
            with self.database.transaction() as cursor:
                written += write(cursor, chunk)
        answers = iter(written)
        return [row if isinstance(row, BatchStateError) else next(answers) for row in rows]

    def _write_records(self, statement: str, records: Sequence[MembershipRecord]) -> list[Outcome]:
        outcomes = self._refusals(records, _check_record)
        self._write(
            statement,
            [
                (self._queue, record.state, record.batch_id, record.version)
                for record, outcome in zip(records, outcomes, strict=True)
                if outcome is None
            ],
        )
        return outcomes

    def _write(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        for chunk in _chunks(rows):
            with self.database.transaction() as cursor:
                cursor.executemany(statement, chunk)

    def _refusals(self, items: Sequence[Item], check: Callable[[Item, str], None]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for item in items:
            try:
                check(item, self._queue)
                outcomes.append(None)
            except BatchStateError as error:
                outcomes.append(error)
        return outcomes

    def _fetch(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        return self.database.read(lambda cursor: fetched(cursor, statement, values))

    def _scan(
        self,
        statement: str,
        cursor: str | None,
        limit: int,
        key: tuple[int, ...],
        read: Callable[[tuple[Any, ...]], object],
    ) -> Page[object]:
        """Answer the page after the key in `cursor`; `key` says which columns of a row are its key."""
        after = [""] * len(key) if cursor is None else json.loads(cursor)
        rows = self._fetch(statement, self._queue, *after, limit + 1)
        more = len(rows) > limit
        return Page(
            [read(row) for row in rows[:limit]],
            json.dumps([rows[limit - 1][place] for place in key]) if more else None,
        )


def _chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]


def _check_record(record: MembershipRecord, queue: str) -> None:
    check_record(record, queue)
    if record.version > LARGEST_INT:
        msg = f"the record of batch {record.batch_id!r} has version {record.version}; SQLite stores up to 2**63-1"
        raise InvalidValueError(msg)
