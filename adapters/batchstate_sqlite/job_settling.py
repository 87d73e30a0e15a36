"""Settling and sweeping within one transaction: how held jobs leave their claim."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from attrs import define, field

from batchstate.job_calls import Settled, SettledAs, Swept
from batchstate.job_rules import judge_settling, settle, stall
from batchstate.job_wire import JobRow
from batchstate_sqlite import job_statements as sql
from batchstate_sqlite.job_claims import end_if_empty, file_claim, let_go, state_of
from batchstate_sqlite.job_states import ClaimState

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

    outcome: str | None
    row: JobRow | None


@define
class _Tally:
    """What a settling step did."""

    completed: list[str] = field(factory=list)
    freed: int = 0
    """How many were held until now."""


def settle_all(
    step: JobStep, claim_id: str, settlings: Sequence[Settling], *, keep_done: int, by: str, why: str
) -> Settled:
    """Settle jobs. Answers as `settle_jobs` does."""
    claim = state_of(step.cursor, step.queue, claim_id)
    until = step.now + max(0, keep_done)
    tally = _Tally()
    done = _complete_held(step, claim, settlings, until, tally) if claim is not None else frozenset()
    known = _look_up(step, claim_id, [settling.id for settling in settlings if settling.id not in done])
    outcomes: list[SettledAs | BatchStateError] = [
        "completed" if settling.id in done else _settle(step, claim_id, settling, known.get(settling.id), until, tally)
        for settling in settlings
    ]
    if tally.completed:
        ids = json.dumps(tally.completed)
        step.cursor.execute(sql.SET_OUTCOMES, ("completed", step.queue, ids, claim_id))
        if keep_done > 0:
            step.cursor.execute(sql.PUT_FORGETTING, (step.queue, until, claim_id, tally.completed[0], ids))
        else:
            step.cursor.execute(sql.DROP_JOBS, (step.queue, ids))
    if claim is None:
        return Settled(tuple(outcomes), finished=True)
    ended = end_if_empty(step, let_go(step, claim, tally.freed), swept=False, by=by, why=why)
    return Settled(tuple(outcomes), finished=ended)


def _complete_held(
    step: JobStep, claim: ClaimState, settlings: Sequence[Settling], until: int, tally: _Tally
) -> frozenset[str]:
    """Complete the held jobs that are to be, as most are, without a look at each of them; answer which they are.

    Where a job is named twice its first verdict stands, so then they are all looked at, one after the other.
    """
    ids = [settling.id for settling in settlings if settling.verdict == "complete"]
    if not ids or claim.group is None or len({settling.id for settling in settlings}) != len(settlings):
        return frozenset()
    text = json.dumps(ids)
    step.cursor.execute(sql.COMPLETE_HELD_JOBS, (until, step.queue, text, claim.id))
    tally.freed = step.cursor.rowcount
    if tally.freed != len(ids):  # some were not held
        rows = step.cursor.execute(sql.JUST_COMPLETED, (text, step.queue, claim.id, until)).fetchall()
        ids = [job_id for (job_id,) in rows]
    tally.completed = ids
    if ids:
        step.free(claim.group, len(ids))
    return frozenset(ids)


def _look_up(step: JobStep, claim_id: str, ids: Sequence[str]) -> dict[str, _Known]:
    """Answer what is known of jobs that the claim held once."""
    if not ids:
        return {}
    values = (json.dumps(ids), step.queue, claim_id, step.queue)
    return {
        row[0]: _Known(row[1], JobRow._make(row[2:]) if row[2] is not None else None)
        for row in step.cursor.execute(sql.JOBS_TO_SETTLE, values).fetchall()
    }


def _settle(
    step: JobStep, claim_id: str, settling: Settling, known: _Known | None, until: int, tally: _Tally
) -> SettledAs | BatchStateError:
    """Settle one job that was looked at."""
    if known is None:
        return "lost"
    row = known.row
    judged = judge_settling(known.outcome, row, claim_id, settling)
    if judged is not None or row is None:
        return judged or "lost"
    outcome, after = settle(row, settling, step.now)
    if after is not None:
        step.move(row, after)
        step.remember(claim_id, row.id, outcome)
    else:
        step.leave(row)
        step.cursor.execute(sql.COMPLETE_JOB, (until, step.queue, row.id))
        tally.completed.append(row.id)
    if row.place == "active":
        tally.freed += 1
    known.outcome = outcome  # should the same call name it once more
    return outcome


def sweep(step: JobStep, limit: int, *, max_stalls: int, by: str, skew: int) -> Swept:
    """Take back lapsed jobs. Answers as `sweep_jobs` does."""
    step.by_name = True
    horizon = step.now - skew
    values = (step.queue, horizon, LEASES_LOOKED_AT)
    claims = [ClaimState._make(row) for row in step.cursor.execute(sql.LEASES_TO_LOOK_AT, values).fetchall()]
    swept: list[JobRow] = []
    ended: list[str] = []
    more = len(claims) == LEASES_LOOKED_AT
    for claim in claims:
        if claim.expires_at > horizon:
            file_claim(step.cursor, step.queue, claim.id, claim.filed_at, claim.expires_at)
            continue
        room = limit - len(swept)
        lapsed = _lapsed(step, claim.id, horizon, room + 1)
        swept += [_stall(step, row, claim.id, max_stalls) for row in lapsed[:room]]
        after = let_go(step, claim, len(lapsed[:room]), lost=True)
        if len(lapsed) > room:
            more = True
            break
        if end_if_empty(step, after, swept=True, by=by, why="swept"):
            ended.append(claim.id)
        else:
            _file_by_own_leases(step, after)
    return Swept(
        tuple(row.id for row in swept if row.place == "waiting"),
        tuple(row.id for row in swept if row.place == "dead"),
        tuple(ended),
        more,
    )


def _file_by_own_leases(step: JobStep, claim: ClaimState) -> None:
    """File a claim whose own lease has ended: what it still holds was extended job by job."""
    step.write_jobs()
    [(first,)] = step.cursor.execute(sql.FIRST_OWN_LEASE, (step.queue, claim.id)).fetchall()
    file_claim(step.cursor, step.queue, claim.id, claim.filed_at, first)


def _lapsed(step: JobStep, claim_id: str, horizon: int, limit: int) -> list[JobRow]:
    values = (step.queue, claim_id, horizon, limit)
    return [JobRow._make(row) for row in step.cursor.execute(sql.LAPSED_JOBS, values).fetchall()]


def _stall(step: JobStep, row: JobRow, claim_id: str, max_stalls: int) -> JobRow:
    after = stall(row, max_stalls, step.now)
    step.move(row, after)
    step.remember(claim_id, row.id, "swept")
    return after


def let_go_of_one(step: JobStep, claim_id: str, *, by: str, why: str) -> None:
    """Let a claim hold one job less, lost to it, and end it as settled where that was its last."""
    claim = state_of(step.cursor, step.queue, claim_id)
    if claim is not None:
        end_if_empty(step, let_go(step, claim, 1, lost=True), swept=False, by=by, why=why)
