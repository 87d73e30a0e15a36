"""The rules of the claim half as pure functions, shared by the adapters that decide in Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from batchstate.entities import Batch, History, RowMemory
from batchstate.job_wire import JOB_FORMAT, JobRow
from batchstate.marks import remember
from batchstate.moves import LONGEST_TEXT, Move, first_move
from batchstate.transition import swap_to
from batchstate.values import encode_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.job_calls import Claiming, Ending, NewJob, SettledAs, Settling
    from batchstate.storage import Swap

__all__ = ["STALLED", "batch_of_claim", "ending_swap", "judge_settling", "new_row", "returned", "settle", "stall"]

STALLED = "stalled: its worker let the lease lapse"
"""The error of a job that stalled once too often."""

_SETTLED: dict[str, SettledAs] = {
    "completed": "completed",
    "retried": "retried",
    "delayed": "delayed",
    "dead": "dead",
    "released": "released",
}


def new_row(job: NewJob, order: int, now: int) -> JobRow:
    """Answer the row of a job that is added: waiting, or scheduled where it is due later."""
    due = job.due_at if job.due_at is not None else now + job.delay
    later = due > now
    return JobRow(
        JOB_FORMAT,
        job.id,
        job.group,
        "scheduled" if later else "waiting",
        order,
        job.payload,
        job.max_attempts,
        0,
        0,
        0,
        "",
        None,
        now,
        due if later else None,
        None,
        None,
    )


def batch_of_claim(queue: str, claiming: Claiming, job_ids: Sequence[str], now: int) -> Batch:
    """Answer the batch that a claim of these jobs is."""
    request_ids = tuple(job_ids)
    before, after = first_move(claiming.state, claiming.by)
    return Batch(
        claiming.id,
        queue,
        claiming.state,
        request_ids=request_ids,
        attributes={} if claiming.attributes == "{}" else json.loads(claiming.attributes),
        history=History(f"{before}{now}{after}", claiming.id),
        created_at=now,
        updated_at=now,
        memory=RowMemory(remember("", 1, claiming.mark), request_ids, encode_plain(request_ids, "request_ids")),
    )


def judge_settling(remembered: str | None, row: JobRow | None, claim_id: str, settling: Settling) -> SettledAs | None:
    """Answer what settling a job amounts to, or `None` where it is to be done.

    Args:
        remembered: the outcome that the job's association with the claim has; `None` where there is no association.
        row: the job as it is stored; `None` where there is none.
        claim_id: the claim that settles.
        settling: what it wants.
    """
    if remembered is not None and remembered in _SETTLED:
        return _SETTLED[remembered]
    if row is None or row.claim != claim_id:
        return "lost"
    if row.place == "active":
        return None
    late = remembered == "swept" and row.place == "waiting" and settling.verdict != "release"
    return None if late else "lost"


def settle(row: JobRow, settling: Settling, now: int) -> tuple[SettledAs, JobRow | None]:
    """Answer what becomes of a job, and its row after; `None` for a job that is gone."""
    match settling.verdict:
        case "complete":
            return "completed", None
        case "retry" if row.attempts + 1 >= row.max_attempts:
            return "dead", _died(row._replace(attempts=row.attempts + 1), settling.reason, now)
        case "retry":
            charged = row._replace(attempts=row.attempts + 1, error=settling.reason[:LONGEST_TEXT])
            return "retried", _due(charged, settling.delay, now)
        case "delay":
            return "delayed", _due(row, settling.delay, now)
        case "dead":
            return "dead", _died(row, settling.reason, now)
        case "release":
            return "released", returned(row)


def stall(row: JobRow, max_stalls: int, now: int) -> JobRow:
    """Answer the row of a held job that is swept: waiting, or dead where it stalled once too often."""
    stalled = row._replace(stalls=row.stalls + 1)
    if stalled.stalls > max_stalls:
        return _died(stalled, STALLED, now)
    return returned(stalled)._replace(error=STALLED)


def returned(row: JobRow) -> JobRow:
    """Answer the row of a job taken back to its place."""
    return row._replace(place="waiting", due_at=None, extended_to=None, dead_at=None)


def ending_swap(batch: Batch, ending: Ending, *, swept: bool, now: int, by: str, why: str) -> Swap | None:
    """Answer the swap of a claim's batch in the step that ends the claim; `None` where it is retired already."""
    if batch.retired_at is not None:
        return None
    to = batch.state if batch.state in ending.terminal else ending.abandoned if swept else ending.settled
    move = Move(batch.state, to, batch.version + 1, now, by, why)
    return swap_to(batch, move, retired_at=now if to in ending.terminal else None)


def _due(row: JobRow, delay: int, now: int) -> JobRow:
    if delay == 0:
        return returned(row)
    return row._replace(place="scheduled", due_at=now + delay, extended_to=None)


def _died(row: JobRow, reason: str, now: int) -> JobRow:
    return row._replace(place="dead", due_at=None, extended_to=None, dead_at=now, error=reason[:LONGEST_TEXT])
