"""Counting, listing and purging of jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from batchstate.errors import CorruptRowError
from batchstate.job_calls import ClaimRow, GroupCounts, QueueCounts
from batchstate.job_wire import JobRow, decode_job
from batchstate.storage import Page
from batchstate_sqlite import job_statements as sql
from batchstate_sqlite.job_states import GroupState
from batchstate_sqlite.reads import fetched

if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Cursor

    from batchstate.jobs import Job, Place
    from batchstate_sqlite.job_step import JobStep

__all__ = ["claimable", "counts", "jobs_in", "jobs_of", "list_claims", "purge"]

_WIDTH: Final = len(JobRow._fields)

BEFORE_ALL: Final = -(2**63)
"""Is earlier than every instant, and less than every order."""


def read_job(row: Sequence[Any], queue: str) -> Job | CorruptRowError:
    """Answer the job of a row that has its claim's deadline behind it, or the error why it cannot be read."""
    try:
        return decode_job(row[:_WIDTH], queue, claim_expires_at=row[_WIDTH])
    except CorruptRowError as error:
        return error


def jobs_of(cursor: Cursor, queue: str, ids: Sequence[str]) -> dict[str, Job | CorruptRowError]:
    """Load jobs by ID."""
    return {row[1]: read_job(row, queue) for row in fetched(cursor, sql.JOBS_OF, (json.dumps(ids), queue))}


def jobs_in(
    cursor: Cursor, queue: str, place: Place, group: str | None, after: str | None, limit: int
) -> Page[Job | CorruptRowError]:
    """List a page of the jobs in a place."""
    start = ("", BEFORE_ALL, BEFORE_ALL) if after is None else tuple(json.loads(after))
    statement, values = _listing(queue, place, group, start)
    rows = fetched(cursor, statement, (*values, limit + 1))
    last = JobRow._make(rows[limit - 1][:_WIDTH]) if len(rows) > limit else None
    return Page(
        [read_job(row, queue) for row in rows[:limit]],
        None if last is None else json.dumps([last.group, last.due_at or 0, last.order]),
    )


def _listing(
    queue: str, place: Place, group: str | None, start: tuple[str, int, int]
) -> tuple[str, tuple[object, ...]]:
    """Answer the statement that lists a place after a key, and its values but for the limit."""
    name, due, order = start
    if place == "active":
        return sql.HELD_JOBS_AFTER, (queue, group, group, name, order)
    if group is None:
        return {
            "waiting": (sql.WAITING_JOBS_AFTER, (queue, name, order)),
            "scheduled": (sql.SCHEDULED_JOBS_AFTER, (queue, name, due, order)),
            "dead": (sql.DEAD_JOBS_AFTER, (queue, order)),
        }[place]
    return {
        "waiting": (sql.WAITING_JOBS_OF_GROUP_AFTER, (queue, group, order)),
        "scheduled": (sql.SCHEDULED_JOBS_OF_GROUP_AFTER, (queue, group, due, order)),
        "dead": (sql.DEAD_JOBS_OF_GROUP_AFTER, (queue, group, order)),
    }[place]


def list_claims(cursor: Cursor, queue: str, after: str | None, limit: int) -> Page[ClaimRow]:
    """List a page of the claims in flight."""
    rows = fetched(cursor, sql.CLAIMS_AFTER, (queue, after or "", limit + 1))
    items = [
        ClaimRow(
            claim_id,
            expires_at,
            tuple(
                (job_id, max(expires_at, own or 0))
                for job_id, own in fetched(cursor, sql.HELD_LEASES, (queue, claim_id))
            ),
        )
        for claim_id, expires_at in rows[:limit]
    ]
    return Page(items, items[-1].id if len(rows) > limit else None)


def counts(cursor: Cursor, queue: str, now: int) -> QueueCounts:
    """Count a queue's jobs."""
    paused, ceiling, _, _ = cursor.execute(sql.QUEUE_OF, (queue,)).fetchone() or (None, None, 0, 0)
    groups = tuple(
        _counts_of(GroupState(*row[:-1]), row[-1], ceiling) for row in fetched(cursor, sql.GROUPS_WITH_OLDEST, (queue,))
    )
    [claims] = cursor.execute(sql.COUNT_CLAIMS, (queue,)).fetchone()
    [lapsed] = cursor.execute(sql.COUNT_LAPSED, (queue, now, now, now)).fetchone()
    return QueueCounts(groups, paused, ceiling, claims, lapsed, now)


def _counts_of(group: GroupState, oldest: int | None, default: int | None) -> GroupCounts:
    return GroupCounts(
        group.name or None,
        group.waiting,
        group.active,
        group.scheduled,
        group.dead,
        group.ceiling if group.ceiling is not None else default,
        group.paused,
        oldest,
    )


def claimable(cursor: Cursor, queue: str, now: int, limit: int, group: str | None, *, across: bool) -> int:
    """Count what one claim could take, up to `limit`."""
    paused, ceiling, _, _ = cursor.execute(sql.QUEUE_OF, (queue,)).fetchone() or (None, None, 0, 0)
    if paused is not None:
        return 0
    if group is not None:
        rows = cursor.execute(sql.GROUP_OF, (queue, group)).fetchall()
        return sum(_claimable(cursor, queue, now, limit, GroupState(*row), ceiling) for row in rows)
    found = 0
    for row in _in_turn(cursor, queue, now, limit if across else 1):
        found += _claimable(cursor, queue, now, limit - found, GroupState(*row), ceiling)
        if found >= limit or (found and not across):
            break
    return found


def _in_turn(cursor: Cursor, queue: str, now: int, limit: int) -> list[tuple[Any, ...]]:
    """Answer the first groups of the ring, then those that would join it now."""
    rows = cursor.execute(sql.GROUPS_IN_TURN, (queue, limit)).fetchall()
    if len(rows) < limit:
        rows += [row for row in cursor.execute(sql.ALARMED_GROUPS, (queue, now)) if GroupState(*row).turn is None]
    return rows


def _claimable(cursor: Cursor, queue: str, now: int, limit: int, group: GroupState, ceiling: int | None) -> int:
    headroom = group.headroom(ceiling)
    room = limit if headroom is None else min(limit, headroom)
    if group.paused is not None or room <= 0:
        return 0
    count = group.waiting
    if count < room and group.scheduled:
        [due] = cursor.execute(sql.COUNT_DUE, (queue, group.name, now, room - count)).fetchone()
        count += due
    return min(count, room)


def purge(step: JobStep, limit: int, keep_dead: int | None) -> tuple[int, bool]:
    """Delete remembered IDs and dead jobs. Answers as `purge_jobs` does."""
    gone = 0
    while (found := step.cursor.execute(sql.TO_FORGET, (step.queue, step.now)).fetchone()) and gone < limit:
        *key, job_ids = found
        gone += _forget(step, key, json.loads(job_ids), limit - gone)
    room = limit - gone
    dead: list[JobRow] = []
    if keep_dead is not None:
        values = (step.queue, step.now - keep_dead, room + 1)
        dead = [JobRow._make(row) for row in step.cursor.execute(sql.DEAD_SINCE, values).fetchall()]
    for row in dead[:room]:
        step.drop(row)
    return gone + len(dead[:room]), found is not None or len(dead) > room


def _forget(step: JobStep, key: Sequence[Any], ids: list[str], room: int) -> int:
    """Forget the IDs of one entry, so many at most; answer how many were remembered until now."""
    due_at, claim_id, _ = key
    step.cursor.execute(sql.FORGET_JOBS, (step.queue, json.dumps(ids[:room]), due_at))
    forgotten = step.cursor.rowcount
    step.cursor.execute(sql.LEAVE_FORGETTING, (step.queue, *key))
    rest = ids[room:]
    if rest:
        step.cursor.execute(sql.PUT_FORGETTING, (step.queue, due_at, claim_id, rest[0], json.dumps(rest)))
    return forgotten
