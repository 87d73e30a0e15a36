"""Settling and sweeping, in steps of as many jobs as one transaction takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.job_calls import Settled, Swept
from batchstate.job_rules import judge_settling, settle, stall
from batchstate_dynamodb.job_base import JobBase
from batchstate_dynamodb.job_layout import ClaimItem, Guard
from batchstate_dynamodb.job_step import ACTIONS, Step
from batchstate_dynamodb.layout import item_key, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.job_calls import SettledAs, Settling
    from batchstate.job_wire import JobRow

__all__ = ["DynamoDBSettling"]

_SETTLED = 6
"""How many writes settling a job may take: its old and new place, its guard, its memory, its association, its group."""

_SWEPT = 3
"""How many writes sweeping one may take: its new place, its association, its group."""

_MOST = ACTIONS // 2


class DynamoDBSettling(JobBase):
    """The part of `TransactingDynamoDBStorage` that takes jobs out of claims."""

    def settle_jobs(
        self, claim_id: str, settlings: Sequence[Settling], *, keep_done: int, by: str = "", why: str = ""
    ) -> Settled:
        outcomes: list[SettledAs] = []
        finished = None if settlings else self._claim_item(claim_id) is None
        while len(outcomes) < len(settlings):
            rest = settlings[len(outcomes) : len(outcomes) + _MOST]
            some, finished = self._decide(lambda rest=rest: self._settle(claim_id, rest, keep_done, by, why))  # type: ignore[misc]
            outcomes += some
        return Settled(tuple(outcomes), finished=bool(finished))

    def _settle(
        self, claim_id: str, settlings: Sequence[Settling], keep_done: int, by: str, why: str
    ) -> tuple[list[SettledAs], bool] | None:
        """Settle as many of these as one transaction takes; answer their outcomes, and whether the claim has ended."""
        pairs = [(one.id, claim_id) for one in settlings]
        claim, known = self._claim_and_outcomes(claim_id, pairs)
        held = {} if claim is None else claim.held
        late = [one.id for one in settlings if one.id not in held and known.get((one.id, claim_id)) == "swept"]
        guards = self._guards(late) if late else {}
        mine = [held[one.id].group for one in settlings if one.id in held]
        names = [*mine, *(guard.group for guard in guards.values() if guard.done is None)]
        if not names:
            judged_alone = [judge_settling(known.get((one.id, claim_id)), None, claim_id, one) for one in settlings]
            return [judged or "lost" for judged in judged_alone], claim is None
        ends = claim is not None and held.keys() <= {one.id for one in settlings}
        row = self._layout.row(claim_id)
        settings, groups, found = self._look_up(names, [row] if ends else [])
        step = Step(self, self.clock(), settings, groups)
        if ends:
            step.know(claim_id, self._read_batch(found.get(row)))
        waiting = {job_id: row for job_id, (row, _) in self._locate_waiting(guards).items()}
        outcomes: list[SettledAs] = []
        for one in settlings:
            if not step.has_room(_SETTLED, claim_id):
                break
            remembered = known.get((one.id, claim_id))
            now_held = step.claim(claim).held if claim is not None else {}
            job = now_held.get(one.id) or waiting.get(one.id)
            if job is None and remembered == "swept" and self._may_wait(guards.get(one.id)):
                return None
            judged = judge_settling(remembered, job, claim_id, one)
            if judged is None and job is not None:
                judged = self._settle_one(step, claim, job, one, keep_done)
                if remembered is not None:
                    step.remember(one.id, claim_id, remembered, judged)
                    known[one.id, claim_id] = judged
                waiting.pop(one.id, None)
            outcomes.append(judged or "lost")
        if not step.commit(by=by, why=why):
            return None
        return outcomes, claim is None or claim_id in step.ended

    def _claim_and_outcomes(
        self, claim_id: str, pairs: Sequence[tuple[str, str]]
    ) -> tuple[ClaimItem | None, dict[tuple[str, str], str]]:
        """Load a claim and the outcomes of these of its jobs, in one request if it holds them all.

        What it does not hold was given an outcome by the step that took it out of the claim, which may have been
        written between the reading of the association and of the claim. So these are read again.
        """
        key, keys = self._keys.claim(claim_id), self._association_keys(pairs)
        found = self._requests.get_many([key, *keys] if claim_id else [], lambda item: item)
        claim = ClaimItem.of(found[key]) if key in found else None
        known = self._outcomes_among(found, keys)
        left = [pair for pair in pairs if claim is None or pair[0] not in claim.held]
        return claim, known | (self._outcomes(left) if left else {})

    def _settle_one(
        self, step: Step, claim: ClaimItem | None, row: JobRow, settling: Settling, keep_done: int
    ) -> SettledAs:
        outcome, after = settle(row, settling, step.now)
        step.move(row, after)
        if row.place == "active" and claim is not None:
            step.take_from(claim, row.id)
        key = self._keys.guard(row.id)
        if after is None and keep_done > 0:
            until = step.now + keep_done
            step.write({"Put": {"Item": Guard(row.id, done=until, mark=step.mark).item(key)}})
            step.write({"Put": {"Item": item_key(self._keys.done(row.id, until))}})
        elif after is None:
            step.write({"Delete": {"Key": item_key(key)}})
        elif after.place == "scheduled":
            step.write(
                {
                    "Update": {
                        "Key": item_key(key),
                        "UpdateExpression": "SET #due = :due",
                        "ConditionExpression": "attribute_exists(pk)",
                        "ExpressionAttributeNames": {"#due": "due"},
                        "ExpressionAttributeValues": {":due": number(after.due_at or 0)},
                    }
                }
            )
        return outcome

    def _locate_waiting(self, guards: dict[str, Guard]) -> dict[str, tuple[JobRow, ClaimItem | None]]:
        return self._locate(guards.values()) if guards else {}

    @staticmethod
    def _may_wait(guard: Guard | None) -> bool:
        """Answer whether a job that was found nowhere is somewhere all the same, and moved while it was sought."""
        return guard is not None and guard.done is None

    def sweep_jobs(self, limit: int, *, max_stalls: int, by: str = "", skew: int = 0) -> Swept:
        before = self.clock() - skew
        claims = {claim.id: claim for claim in self._all_claims()}
        lapsed = sorted(
            (claim.deadline(row), claim.id, place, row.id)
            for claim in claims.values()
            for place, row in enumerate(claim.held.values())
            if claim.deadline(row) <= before
        )
        todo = [(claim_id, job_id) for _, claim_id, _, job_id in lapsed[:limit]]
        returned: list[str] = []
        dead: list[str] = []
        ended: list[str] = []
        while todo:
            rest = todo[:_MOST]
            done, rows, ends = self._decide(lambda rest=rest: self._sweep(rest, claims, max_stalls, skew, by))  # type: ignore[misc]
            returned += [row.id for row in rows if row.place == "waiting"]
            dead += [row.id for row in rows if row.place == "dead"]
            ended += ends
            todo = todo[done:]
        return Swept(tuple(returned), tuple(dead), tuple(ended), len(lapsed) > limit)

    def _sweep(
        self, todo: Sequence[tuple[str, str]], claims: dict[str, ClaimItem], max_stalls: int, skew: int, by: str
    ) -> tuple[int, list[JobRow], list[str]] | None:
        """Sweep as many of these as one transaction takes; answer how many were looked at, and what became of them.

        `claims` is what is known of claims; what proves to be old is taken out of it, and read anew.
        """
        missing = {claim_id for claim_id, _ in todo} - claims.keys()
        found = self._requests.get_many(map(self._keys.claim, missing), ClaimItem.of)
        claims.update({claim.id: claim for claim in found.values()})
        rows = {
            (claim_id, job_id): claims[claim_id].held[job_id]
            for claim_id, job_id in todo
            if claim_id in claims and job_id in claims[claim_id].held
        }
        if not rows:
            return len(todo), [], []
        keys = self._association_keys((job_id, claim_id) for claim_id, job_id in rows)
        settings, groups, there = self._look_up([row.group for row in rows.values()], keys)
        known = self._outcomes_among(there, keys)
        step = Step(self, self.clock(), settings, groups)
        swept: list[JobRow] = []
        looked = 0
        for claim_id, job_id in todo:
            if not step.has_room(_SWEPT, claim_id):
                break
            looked += 1
            row = rows.get((claim_id, job_id))
            if row is None or claims[claim_id].deadline(row) > step.now - skew:
                continue
            after = stall(row, max_stalls, step.now)._replace(extended_to=None)
            step.move(row, after)
            step.take_from(claims[claim_id], job_id)
            if (job_id, claim_id) in known:
                step.remember(job_id, claim_id, known[job_id, claim_id], "swept")
            swept.append(after)
        for group in sorted({row.group for row in swept}):
            step.concern(group, last=True)
        committed = step.commit(swept=True, by=by, why="swept")
        for claim_id, _ in todo[:looked]:
            claims.pop(claim_id, None)
        return (looked, swept, step.ended) if committed else None
