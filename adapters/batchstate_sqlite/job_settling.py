"""Settling and sweeping within one transaction: how held jobs leave their claim."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from attrs import define, field

from batchstate.job_calls import Settled, SettledAs, Swept
from batchstate.job_rules import judge_settling, settle, stall
from batchstate.job_wire import JobRow
from batchstate_sqlite import job_statements as sql
from batchstate_sqlite.job_claims import end_if_empty, file_claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.errors import BatchStateError
    from batchstate.job_calls import Settling
    from batchstate_sqlite.job_step import JobStep

__all__ = ["let_go_of_one", "settle_all", "sweep"]

LEASES_LOOKED_AT: Final = 1000
"""How many claims one sweep looks at, at most."""


@define
class _Known:
    """What a settling step knows of a job: its association's outcome, and its row."""

    outcome: str
    row: JobRow | None


@define
class _Tally:
    """What a settling step did."""

    completed: list[JobRow] = field(factory=list)
    freed: int = 0
    """How many were held until now."""


def settle_all(
    step: JobStep, claim_id: str, settlings: Sequence[Settling], *, keep_done: int, by: str, why: str
) -> Settled:
    """Settle jobs. Answers as `settle_jobs` does."""
    cursor, queue = step.cursor, step.queue
    wanted = json.dumps([settling.id for settling in settlings])
    known = {
        row[0]: _Known(row[1], JobRow._make(row[2:]) if row[2] is not None else None)
        for row in cursor.execute(sql.JOBS_TO_SETTLE, (wanted, queue, claim_id)).fetchall()
    }
    tally = _Tally()
    outcomes: list[SettledAs | BatchStateError] = [
        _settle(step, claim_id, settling, known.get(settling.id), tally) for settling in settlings
    ]
    _complete(step, tally.completed, keep_done)
    finished = _take_from_claim(step, claim_id, tally.freed, by=by, why=why)
    return Settled(tuple(outcomes), finished)


def _settle(
    step: JobStep, claim_id: str, settling: Settling, known: _Known | None, tally: _Tally
) -> SettledAs | BatchStateError:
    if known is None:
        return "lost"
    row = known.row
    judged = judge_settling(known.outcome, row, claim_id, settling)
    if judged is not None or row is None:
        return judged or "lost"
    outcome, after = settle(row, settling, step.now)
    if after is not None:
        step.move(row, after)
    else:
        step.leave(row)
        tally.completed.append(row)
    if row.place == "active":
        tally.freed += 1
    step.remember(claim_id, row.id, outcome)
    known.outcome = outcome  # should the same call name it once more
    return outcome


def _complete(step: JobStep, rows: Sequence[JobRow], keep_done: int) -> None:
    """Let jobs that are done go; their IDs stay for a while."""
    if not rows:
        return
    ids = json.dumps([row.id for row in rows])
    if keep_done <= 0:
        step.cursor.execute(sql.DROP_JOBS, (step.queue, ids))
        return
    until = step.now + keep_done
    step.cursor.execute(sql.COMPLETE_JOBS, (until, step.queue, ids))
    step.cursor.execute(sql.PUT_FORGETTING, (step.queue, until, rows[0].order, ids))


def _take_from_claim(step: JobStep, claim_id: str, freed: int, *, by: str, why: str) -> bool:
    """Answer whether the claim has ended, by this step or before."""
    if freed == 0:
        return step.cursor.execute(sql.CLAIM_OF, (step.queue, claim_id)).fetchone() is None
    [(held,)] = step.cursor.execute(sql.TAKE_FROM_CLAIM, (freed, 0, step.queue, claim_id)).fetchall()
    return end_if_empty(step, claim_id, held, swept=False, by=by, why=why)


def sweep(step: JobStep, limit: int, *, max_stalls: int, by: str, skew: int) -> Swept:
    """Take back lapsed jobs. Answers as `sweep_jobs` does."""
    horizon = step.now - skew
    leases = step.cursor.execute(sql.LEASES_TO_LOOK_AT, (step.queue, horizon, LEASES_LOOKED_AT)).fetchall()
    swept: list[JobRow] = []
    ended: list[str] = []
    more = len(leases) == LEASES_LOOKED_AT
    for filed_at, claim_id, expires_at in leases:
        if expires_at > horizon:
            file_claim(step.cursor, step.queue, claim_id, filed_at, expires_at)
            continue
        room = limit - len(swept)
        lapsed = _lapsed(step, claim_id, horizon, room + 1)
        swept += [_stall(step, row, claim_id, max_stalls) for row in lapsed[:room]]
        held = _let_go(step, claim_id, len(lapsed[:room]))
        if len(lapsed) > room:
            more = True
            break
        if end_if_empty(step, claim_id, held, swept=True, by=by, why="swept"):
            ended.append(claim_id)
        else:
            _file_by_own_leases(step, claim_id, filed_at)
    return Swept(
        tuple(row.id for row in swept if row.place == "waiting"),
        tuple(row.id for row in swept if row.place == "dead"),
        tuple(ended),
        more,
    )


def _file_by_own_leases(step: JobStep, claim_id: str, filed_at: int) -> None:
    """File a claim whose own lease has ended: what it still holds was extended job by job."""
    step.write_jobs()
    [(first,)] = step.cursor.execute(sql.FIRST_OWN_LEASE, (step.queue, claim_id)).fetchall()
    file_claim(step.cursor, step.queue, claim_id, filed_at, first)


def _lapsed(step: JobStep, claim_id: str, horizon: int, limit: int) -> list[JobRow]:
    values = (step.queue, claim_id, horizon, limit)
    return [JobRow._make(row) for row in step.cursor.execute(sql.LAPSED_JOBS, values).fetchall()]


def _stall(step: JobStep, row: JobRow, claim_id: str, max_stalls: int) -> JobRow:
    after = stall(row, max_stalls, step.now)
    step.move(row, after)
    step.remember(claim_id, row.id, "swept")
    return after


def _let_go(step: JobStep, claim_id: str, count: int) -> int:
    """Let a claim hold so many jobs less, lost to it; answer how many it holds now."""
    [(held,)] = step.cursor.execute(sql.TAKE_FROM_CLAIM, (count, 1 if count else 0, step.queue, claim_id)).fetchall()
    return int(held)


def let_go_of_one(step: JobStep, claim_id: str, *, by: str, why: str) -> None:
    """Let a claim hold one job less, lost to it, and end it as settled where that was its last."""
    end_if_empty(step, claim_id, _let_go(step, claim_id, 1), swept=False, by=by, why=why)
