"""What is done to rows within one writing transaction: swaps, creations, deletions, and what goes in the same step."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from batchstate.errors import InvalidTransitionError, VersionMismatchError
from batchstate.storage import judge_creation, judge_swap
from batchstate_sqlite.job_statements import DROP_HOLD
from batchstate_sqlite.reads import decoded
from batchstate_sqlite.statements import (
    BATCH_OF,
    DELETE_ASSOCIATION,
    DELETE_BATCH,
    DELETE_RECORD,
    DELETE_RETIRED,
    FILE_RETIRED,
    INSERT_BATCH,
    PUT_ASSOCIATION,
    PUT_LIVE_RECORD,
    PUT_RECORD,
    STANDING,
    SWAP_BATCH,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from sqlite3 import Cursor

    from batchstate.entities import Batch
    from batchstate.storage import Outcome, Swap, Unreadable
    from batchstate.wire import BatchRow

__all__ = ["create", "delete", "swap"]


def create(cursor: Cursor, queue: str, pairs: Iterable[tuple[Batch, BatchRow]], *, whole: bool) -> list[Outcome]:
    """Insert rows; with `whole` their associations and records too. Answers as `create_batches` does."""
    outcomes: list[Outcome] = []
    done: list[Batch] = []
    for batch, row in pairs:
        cursor.execute(INSERT_BATCH, (queue, row.mark, *row))
        outcome: Outcome = None
        if not cursor.rowcount:
            met = _row_of(cursor, queue, row.id)
            outcome = None if met is None else judge_creation(batch, met)
        elif row.retired_at is not None:
            cursor.execute(FILE_RETIRED, (queue, row.retired_at, row.id))
        outcomes.append(outcome)
        if outcome is None:
            done.append(batch)
    if whole:
        cursor.executemany(
            PUT_ASSOCIATION,
            chain.from_iterable(((queue, request, b.id, "") for request in b.request_ids) for b in done),
        )
        cursor.executemany(PUT_LIVE_RECORD, ((queue, batch.state, batch.id, batch.version) for batch in done))
    return outcomes


def swap(cursor: Cursor, queue: str, pairs: Iterable[tuple[Swap, BatchRow]], *, records: bool) -> list[Outcome]:
    """Swap rows; with `records` their records move too. Answers as `update_batches` does."""
    outcomes: list[Outcome] = []
    puts: list[tuple[str, str, str, int]] = []
    deletes: list[tuple[str, str, str, int]] = []
    for swapped, row in pairs:
        before = swapped.before
        format_, batch_id, version, state, entered, _, updated_at, retired_at, marks, moves, _, attributes = row
        cursor.execute(
            SWAP_BATCH,
            (
                *(format_, row.mark, version, state, entered, updated_at, retired_at, marks, moves, attributes),
                *(queue, batch_id, before.version, before.mark),
            ),
        )
        applied = cursor.rowcount == 1
        outcome = None if applied else judge_swap(swapped, _row_of(cursor, queue, batch_id))
        outcomes.append(outcome)
        if outcome is not None:
            continue
        if applied and retired_at is not None:
            cursor.execute(FILE_RETIRED, (queue, retired_at, batch_id))
        if records:
            if applied and retired_at is None:
                puts.append((queue, state, batch_id, version))
            else:  # found applied already, so that others may have retired it since; or retired by this very swap
                cursor.execute(PUT_LIVE_RECORD, (queue, state, batch_id, version))
            if before.state != state:
                deletes.append((queue, before.state, batch_id, before.version))
    if puts:
        cursor.executemany(PUT_RECORD, puts)
    if deletes:
        cursor.executemany(DELETE_RECORD, deletes)
    return outcomes


def delete(cursor: Cursor, queue: str, batches: Iterable[Batch], states: Sequence[str]) -> list[Outcome]:
    """Delete retired batches, with all that is filed of them. Answers as `delete_batches` does."""
    return [_delete(cursor, queue, batch, states) for batch in batches]


def _delete(cursor: Cursor, queue: str, batch: Batch, states: Sequence[str]) -> Outcome:
    standing = cursor.execute(STANDING, (queue, batch.id)).fetchone()
    if standing is None:
        return None
    version, retired_at = standing
    if retired_at is None:
        return InvalidTransitionError(f"batch {batch.id!r} is not retired, and only retired ones are deleted")
    if version != batch.version:
        return VersionMismatchError(
            f"batch {batch.id!r} is at version {version}, and you hold {batch.version}",
            batch_id=batch.id,
            expected=batch.version,
            applied=False,
        )
    cursor.executemany(DELETE_RECORD, ((queue, state, batch.id, version) for state in states))
    cursor.executemany(DELETE_ASSOCIATION, ((queue, request_id, batch.id) for request_id in batch.request_ids))
    cursor.execute(DROP_HOLD, (queue, batch.id))
    cursor.execute(DELETE_RETIRED, (queue, retired_at, batch.id))
    cursor.execute(DELETE_BATCH, (queue, batch.id))
    return None


def _row_of(cursor: Cursor, queue: str, batch_id: str) -> Batch | Unreadable | None:
    row = cursor.execute(BATCH_OF, (queue, batch_id)).fetchone()
    return None if row is None else decoded(row, queue)
