"""Claims within one transaction: taking jobs, reading what is held, extending, ending."""

from __future__ import annotations

import json
from collections import Counter, deque
from typing import TYPE_CHECKING, Final

from batchstate.errors import ClaimLostError, CorruptRowError, UnsupportedFormatError
from batchstate.job_calls import Claimed, Extended
from batchstate.job_rules import batch_of_claim, ending_swap
from batchstate.job_wire import JOB_FORMAT, JobRow, decode_job
from batchstate.moves import LONGEST_TEXT
from batchstate.wire import decode_batch, encode_batch
from batchstate_sqlite import job_statements as sql
from batchstate_sqlite import statements, writes
from batchstate_sqlite.job_states import ClaimState, ending_of, ending_text
from batchstate_sqlite.reads import fetched

if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Cursor

    from batchstate.job_calls import Claiming
    from batchstate.jobs import Job
    from batchstate_sqlite.job_states import GroupState
    from batchstate_sqlite.job_step import JobStep

__all__ = [
    "MAX_CLAIM",
    "claim",
    "claimed",
    "claimed_again",
    "end_if_empty",
    "extend",
    "extend_one",
    "file_claim",
    "let_go",
    "state_of",
]

MAX_CLAIM: Final = 10_000
"""How many jobs one claim takes at most."""

LOOKED_AT: Final = 1000
"""How many due jobs of a group one claim looks at."""


def claim(step: JobStep, claiming: Claiming) -> Claimed | None:
    """Take jobs and make a claim of them. Answers as `claim_jobs` does, which has seen that there is no such batch."""
    if step.paused is not None:
        return None
    if claiming.group is None:
        step.wake_due_groups()
    limit = min(claiming.limit, MAX_CLAIM)
    if claiming.group is not None:
        group = step.group(claiming.group)
        jobs = _take(step, group, limit, claiming) if step.is_servable(group) else []
        step.refresh(group)
    elif claiming.across_groups:
        jobs = _take_across(step, limit, claiming)
    else:
        jobs = _take_by_turn(step, limit, claiming)
    return _make(step, claiming, jobs) if jobs else None


def _take_by_turn(step: JobStep, limit: int, claiming: Claiming) -> list[Job]:
    while heads := step.groups_in_turn(1):
        group = heads[0]
        jobs = _take(step, group, limit, claiming) if step.is_servable(group) else []
        step.served(group)
        if jobs:
            return jobs
    return []


def _take_across(step: JobStep, limit: int, claiming: Claiming) -> list[Job]:
    """Take one job a group, round after round; each group is read and written once."""
    heads = step.groups_in_turn(limit)
    room: dict[str, int] = {}
    for group in heads:
        _promote_due(step, group)
        headroom = group.headroom(step.ceiling)
        room[group.name] = group.waiting if headroom is None else min(group.waiting, headroom)
    turns = deque(heads)
    order: list[GroupState] = []
    while turns and len(order) < limit:
        group = turns.popleft()
        if room[group.name] > 0:
            room[group.name] -= 1
            order.append(group)
            turns.append(group)
    shares = Counter(group.name for group in order)
    taken = {
        group.name: iter(_take(step, group, shares[group.name], claiming)) for group in heads if group.name in shares
    }
    behind = {group.name: group for group in turns if group.name in shares}
    for group in heads:
        if room[group.name] == 0 and group.name not in behind:
            step.served(group)
    for group in behind.values():
        step.served(group)
    return [job for group in order if (job := next(taken[group.name], None)) is not None]


def _take(step: JobStep, group: GroupState, limit: int, claiming: Claiming) -> list[Job]:
    """Take the oldest jobs of a servable group out of its line, those that are due among them."""
    _promote_due(step, group)
    headroom = group.headroom(step.ceiling)
    limit = limit if headroom is None else min(limit, headroom)
    cursor, queue = step.cursor, step.queue
    expires_at = step.now + claiming.lease
    jobs: list[Job] = []
    for row in fetched(cursor, sql.FIRST_IN_LINE, (claiming.id, queue, group.name, limit)):
        try:
            jobs.append(decode_job(row, queue, claim_expires_at=expires_at))
        except CorruptRowError as error:
            _put_aside(step, JobRow._make(row), error)
    if jobs:
        cursor.execute(sql.HOLD_FIRST_IN_LINE, (claiming.id, queue, queue, group.name, len(jobs)))
        cursor.execute(sql.ADVANCE_LINE, (queue, group.name, jobs[-1].order))
        group.waiting -= len(jobs)
        group.active += len(jobs)
    return jobs


def _put_aside(step: JobStep, row: JobRow, error: CorruptRowError) -> None:
    """Let a job that cannot be read be dead, where it is seen, so that it does not stand in the way of all others.

    Raises:
        CorruptRowError: a newer program wrote it, and will read it.
    """
    if type(row.format) is int and row.format > JOB_FORMAT:
        raise error
    [stored] = step.cursor.execute(sql.BARE_JOBS_OF, (json.dumps([row.id]), step.queue)).fetchall()
    before = JobRow._make(stored)._replace(place="waiting", group=row.group, order=row.order)
    step.move(before, before._replace(place="dead", dead_at=step.now, error=str(error)[:LONGEST_TEXT]))
    step.write_jobs()


def _promote_due(step: JobStep, group: GroupState) -> None:
    """Let due jobs stand in line, in their old places."""
    if not group.scheduled:
        return
    due = step.cursor.execute(sql.DUE_JOBS, (step.queue, group.name, step.now, LOOKED_AT)).fetchall()
    if due:
        step.cursor.executemany(
            sql.LEAVE_SCHEDULED, [(step.queue, group.name, due_at, order) for due_at, order, _ in due]
        )
        step.cursor.executemany(sql.PUT_IN_LINE, [(step.queue, group.name, order, job_id) for _, order, job_id in due])
        step.cursor.execute(sql.JOBS_ARE_DUE, (step.queue, json.dumps([job_id for _, _, job_id in due])))
        group.scheduled -= len(due)
        group.waiting += len(due)


def _make(step: JobStep, claiming: Claiming, jobs: Sequence[Job]) -> Claimed:
    expires_at = step.now + claiming.lease
    ids = [job.id for job in jobs]
    batch = batch_of_claim(step.queue, claiming, ids, step.now)
    stored = encode_batch(batch, step.queue)
    cursor, queue = step.cursor, step.queue
    cursor.execute(statements.INSERT_BATCH, (queue, stored.mark, *stored))
    cursor.execute(statements.PUT_RECORD, (queue, batch.state, batch.id, batch.version))
    cursor.execute(sql.ASSOCIATE, (queue, batch.id, stored.requests))
    group = None if claiming.across_groups else jobs[0].group or ""
    state = ClaimState(batch.id, group, expires_at, expires_at, len(ids), ending_text(claiming.ending))
    cursor.execute(sql.PUT_CLAIM, (queue, *state))
    cursor.execute(sql.PUT_CLAIM_JOBS, (queue, batch.id, stored.requests))
    cursor.execute(sql.PUT_LEASE, (queue, expires_at, batch.id))
    return Claimed(batch, tuple(jobs), expires_at)


def claimed(cursor: Cursor, queue: str, claim_id: str) -> Claimed | None:
    """Answer a claim in flight with the jobs it holds, `None` where there is none."""
    state = state_of(cursor, queue, claim_id)
    row = cursor.execute(statements.BATCH_OF, (queue, claim_id)).fetchone()
    if state is None or row is None:
        return None
    jobs = tuple(
        decode_job(job, queue, claim_expires_at=state.expires_at)
        for job in cursor.execute(sql.HELD_JOBS, (queue, claim_id)).fetchall()
    )
    return Claimed(decode_batch(row, queue), jobs, state.expires_at)


def state_of(cursor: Cursor, queue: str, claim_id: str) -> ClaimState | None:
    """Answer what the tables say of a claim in flight."""
    row = cursor.execute(sql.CLAIM_OF, (queue, claim_id)).fetchone()
    return None if row is None else ClaimState._make(row)


def claimed_again(cursor: Cursor, queue: str, claim_id: str) -> Claimed:
    """Answer the claim whose claiming was sent again; raises `ClaimLostError` where it holds nothing any more."""
    found = claimed(cursor, queue, claim_id)
    if found is None:
        raise ClaimLostError(f"claim {claim_id!r} holds nothing any more; claim again, with a new ID")
    return found


def extend(cursor: Cursor, queue: str, claim_id: str, expires_at: int) -> Extended:
    """Set a claim's deadline: one row, unless it ends before the instant the claim is filed under."""
    rows = cursor.execute(sql.EXTEND_CLAIM, (expires_at, queue, claim_id)).fetchall()
    if not rows:
        return Extended(None, 0, lost(cursor, queue, claim_id))
    [(filed_at, held, some_lost)] = rows
    if expires_at < filed_at:
        file_claim(cursor, queue, claim_id, filed_at, expires_at)
    return Extended(expires_at, held, lost(cursor, queue, claim_id) if some_lost else ())


def extend_one(cursor: Cursor, queue: str, claim_id: str, job_id: str, expires_at: int) -> Extended:
    """Set one job's own deadline. Its claim stays filed under an earlier instant, where a sweep finds the job."""
    found = cursor.execute(sql.EXTENDED_JOB, (queue, claim_id, job_id)).fetchone()
    if found is None:
        row = cursor.execute(sql.OUTCOME_OF, (queue, job_id, claim_id)).fetchone()
        settled = row is not None and row[0] not in ("", "swept", "removed")
        return Extended(None, 0, () if settled else (job_id,))
    until = max(expires_at, found[1] or 0)
    cursor.execute(sql.EXTEND_JOB, (until, queue, job_id))
    return Extended(max(until, found[0]), 1)


def lost(cursor: Cursor, queue: str, claim_id: str) -> tuple[str, ...]:
    """Answer the jobs that a claim no longer holds and never settled, in its order."""
    return tuple(job_id for (job_id,) in cursor.execute(sql.LOST_JOBS, (queue, claim_id)).fetchall())


def file_claim(cursor: Cursor, queue: str, claim_id: str, filed_at: int, instant: int) -> None:
    """File a claim under another instant, which none of its jobs' leases ends before."""
    cursor.execute(sql.DROP_LEASE, (queue, filed_at, claim_id))
    cursor.execute(sql.PUT_LEASE, (queue, instant, claim_id))
    cursor.execute(sql.FILE_CLAIM, (instant, queue, claim_id))


def let_go(step: JobStep, claim: ClaimState, count: int, *, lost: bool = False) -> ClaimState:
    """Let a claim hold so many jobs less; answer it as it is then. `lost` says that they were not settled."""
    after = claim._replace(held=claim.held - count)
    if after.held > 0 and count > 0:
        step.cursor.execute(sql.TAKE_FROM_CLAIM, (after.held, int(lost), step.queue, claim.id))
    return after


def end_if_empty(step: JobStep, claim: ClaimState, *, swept: bool, by: str, why: str) -> bool:
    """End the claim if it holds nothing any more; answer whether this step did.

    A batch whose row is gone or cannot be read stays as it is: its jobs are not to pay for it.
    """
    if claim.held > 0:
        return False
    cursor, queue = step.cursor, step.queue
    cursor.execute(sql.DROP_CLAIM, (queue, claim.id))
    cursor.execute(sql.DROP_CLAIM_JOBS, (queue, claim.id))
    cursor.execute(sql.DROP_LEASE, (queue, claim.filed_at, claim.id))
    row = cursor.execute(statements.BATCH_OF, (queue, claim.id)).fetchone()
    try:
        batch = decode_batch(row or (), queue)
    except (CorruptRowError, UnsupportedFormatError):
        return True
    swap = ending_swap(batch, ending_of(claim.ending), swept=swept, now=step.now, by=by, why=why)
    if swap is None:
        return True
    writes.swap(cursor, queue, [(swap, encode_batch(swap.after, queue))], records=False)
    cursor.execute(statements.DELETE_RECORD, (queue, batch.state, claim.id, batch.version))
    if swap.after.retired_at is None:
        cursor.execute(statements.PUT_RECORD, (queue, swap.after.state, claim.id, swap.after.version))
    return True
