"""Claims: making them, finding them again, extending them."""

from __future__ import annotations

import random
from collections import deque
from typing import TYPE_CHECKING, Final, TypeAlias

from batchstate.errors import BatchStateError, ClaimLostError
from batchstate.job_calls import Claimed, Extended
from batchstate.job_rules import batch_of_claim, returned
from batchstate.job_wire import decode_job
from batchstate.marks import new_mark
from batchstate_dynamodb.errors import ConditionFailedError
from batchstate_dynamodb.expressions import insert_association, insert_row, put_record
from batchstate_dynamodb.job_base import JobBase
from batchstate_dynamodb.job_layout import ClaimItem, instant, read_state
from batchstate_dynamodb.job_step import Step
from batchstate_dynamodb.layout import Key, encode_batches, item_key, number, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from batchstate.job_calls import Claiming
    from batchstate.job_wire import JobRow
    from batchstate.jobs import Job

__all__ = ["DynamoDBClaims"]

LOOKED_AT: Final = 1000
"""How many due jobs of a group one claim looks at."""

_APART: Final = 3
"""What a claim writes besides groups and jobs: its item, its batch's row, and that one's record."""

_JOINING: Final = 90
_AHEAD: Final = 8
"""How far from the head of the ring a claim goes whose group another served meanwhile."""

_LARGEST: Final = 300_000
"""How many bytes the errors of a claim's jobs take at most, so that its item never grows too large."""

_Turn: TypeAlias = tuple[int, str]
"""A group's turn in the ring, and its name."""

_GONE: Final = (None, "", "swept", "removed")


class DynamoDBClaims(JobBase):
    """The part of `TransactingDynamoDBStorage` that makes and extends claims."""

    max_claim = 94

    def claim_jobs(self, claiming: Claiming) -> Claimed | None:
        lost_at: list[_Turn] = []
        return self._decide(lambda: self._claim(claiming, lost_at))[0]

    def get_claims(self, ids: Iterable[str]) -> dict[str, Claimed]:
        keys = {self._keys.claim(claim_id): claim_id for claim_id in ids if claim_id}
        items = self._requests.get_many(keys, ClaimItem.of)
        batches = self._requests.get_many([self._layout.row(item.id) for item in items.values()], self._layout.read_row)
        guards = self._guards([job_id for item in items.values() for job_id in item.held])
        claimed: dict[str, Claimed] = {}
        for key, claim_id in keys.items():
            item, batch = items.get(key), batches.get(self._layout.row(claim_id))
            if item is None or batch is None:
                continue
            if isinstance(batch, BatchStateError):
                raise batch
            jobs = [
                self._held_job(item, row._replace(payload=guards[job_id].payload))
                for job_id, row in item.held.items()
                if job_id in guards and guards[job_id].done is None
            ]
            claimed[claim_id] = Claimed(batch, tuple(jobs), item.expires_at)
        return claimed

    def extend_claim(self, claim_id: str, lease: int) -> Extended:
        if not claim_id:
            return Extended(None, 0)
        until = self.clock() + lease
        try:
            response = self._requests.call(
                "update_item",
                Key=item_key(self._keys.claim(claim_id)),
                UpdateExpression="SET #expires_at = :until",
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeNames={"#expires_at": "expires_at"},
                ExpressionAttributeValues={":until": number(until)},
                ReturnValues="ALL_NEW",
            )
        except ConditionFailedError:
            return Extended(None, 0, self._lost(claim_id, ()))
        claim = ClaimItem.of(response["Attributes"])
        lost = self._lost(claim_id, claim.held) if len(claim.held) < claim.total else ()
        return Extended(until, len(claim.held), lost)

    def extend_job(self, claim_id: str, job_id: str, lease: int) -> Extended:
        return self._decide(lambda: self._extend_job(claim_id, job_id, lease))

    def _extend_job(self, claim_id: str, job_id: str, lease: int) -> Extended | None:
        claim = self._claim_item(claim_id)
        if claim is None or job_id not in claim.held:
            outcome = self._outcomes([(job_id, claim_id)]).get((job_id, claim_id))
            return Extended(None, 0, (job_id,) if outcome in _GONE else ())
        row = claim.held[job_id]
        until = max(self.clock() + lease, row.extended_to or 0)
        try:
            self._requests.call(
                "update_item",
                Key=item_key(self._keys.claim(claim_id)),
                UpdateExpression="SET #held.#job.#extended_to = :until, #mark = :mark",
                ConditionExpression="#mark = :seen",
                ExpressionAttributeNames={
                    "#held": "held",
                    "#job": job_id,
                    "#extended_to": "extended_to",
                    "#mark": "mark",
                },
                ExpressionAttributeValues={
                    ":until": number(until),
                    ":mark": text(new_mark()),
                    ":seen": text(claim.mark),
                },
            )
        except ConditionFailedError:
            return None
        return Extended(max(until, claim.expires_at), 1)

    def _lost(self, claim_id: str, held: Iterable[str]) -> tuple[str, ...]:
        batch = self._batch(claim_id)
        gone = [] if batch is None else [job_id for job_id in batch.request_ids if job_id not in set(held)]
        outcomes = self._outcomes((job_id, claim_id) for job_id in gone) if gone else {}
        return tuple(job_id for job_id in gone if outcomes.get((job_id, claim_id)) in ("swept", "removed"))

    def _held_job(self, claim: ClaimItem, row: JobRow) -> Job:
        return decode_job(row, self._queue, claim_expires_at=claim.expires_at)

    def _claim(self, claiming: Claiming, lost_at: list[_Turn]) -> tuple[Claimed | None] | None:
        """Make a claim; `lost_at` is where others got ahead of it in the ring so far."""
        row, item = self._layout.row(claiming.id), self._keys.claim(claiming.id)
        named = [] if claiming.group is None else [claiming.group]
        settings, groups, known = self._look_up(named, [row, item])
        if row in known or item in known:
            found = self.get_claims([claiming.id]).get(claiming.id)
            if found is None:
                raise ClaimLostError(f"claim {claiming.id!r} holds nothing any more; claim again, with a new ID")
            return (found,)
        if settings.paused is not None:
            return (None,)
        now = self.clock()
        if named:
            return self._make(claiming, Step(self, now, settings, groups), named)
        groups = self._all_groups()
        looking = Step(self, now, settings, groups)
        if self._look(looking):
            return self._claim(claiming, lost_at) if looking.commit() else None
        ring = sorted((group.turn, name) for name, group in groups.items() if group.turn is not None)
        if not claiming.across_groups:
            ring = _gone_round(ring, lost_at)
        return self._make(claiming, Step(self, now, settings, groups), [name for _, name in ring])

    def _look(self, step: Step) -> bool:
        """Let the groups whose jobs fell due join the ring; answer whether there is something to write."""
        joining, stale = self._joining(step)
        for name in [*joining, *stale][:_JOINING]:
            step.concern(name)
        return bool(joining or stale)

    def _joining(self, step: Step) -> tuple[list[str], list[str]]:
        """Answer the groups that are servable because jobs fell due, by due time, and those that only seemed so."""
        due: list[tuple[int, str]] = []
        stale: list[str] = []
        for name, group in list(step.groups.items()):
            seems = group.turn is None and group.scheduled > 0 and (group.due or 0) <= step.now
            if not seems or group.waiting or group.paused is not None or group.headroom(step.settings.ceiling) == 0:
                continue
            first = step.first_due(name)
            if first is not None and first <= step.now:
                due.append((first, name))
            else:
                stale.append(name)
        return [name for _, name in sorted(due)], stale

    def _make(self, claiming: Claiming, step: Step, ring: Sequence[str]) -> tuple[Claimed | None] | None:
        rows = self._take(step, claiming, ring)
        if not rows:
            return (None,)
        batch = batch_of_claim(self._queue, claiming, [row.id for row in rows], step.now)
        batch_row = encode_batches([batch], self._queue)[0]
        if isinstance(batch_row, BatchStateError):
            raise batch_row
        self._entry.file()
        held = {row.id: row for row in rows}
        claim = ClaimItem(claiming.id, step.mark, step.now + claiming.lease, claiming.ending, len(rows), held)
        home = Key(self._layout.bucket(batch.state, self._shards.home(batch.id)), batch.id)
        new = {"ConditionExpression": "attribute_not_exists(pk)"}
        step.write({"Put": {"Item": claim.item(self._keys.claim(claiming.id)), **new}})
        step.write({"Put": insert_row(self._layout.row(batch.id), batch_row)})
        step.write({"Put": put_record(home, 1)})
        associations = [insert_association(Key(self._layout.attempts(row.id), batch.id)) for row in rows]
        if step.has_room(len(associations)):
            for association in associations:
                step.write({"Put": association})
        else:  # who loses the race then leaves some that lead to no batch, or to one without the job: nobody sees them
            self._requests.side_by_side(lambda one: self._requests.attempt("put_item", **one), associations)
        if not step.commit():
            return None
        # The payloads are read last: the longer the step, the likelier others get ahead of it. What was removed by
        # force meanwhile has none.
        jobs = tuple(self._held_job(claim, row) for row in self._with_payload(rows))
        return (Claimed(batch, jobs, claim.expires_at) if jobs else None,)

    def _take(self, step: Step, claiming: Claiming, ring: Sequence[str]) -> list[JobRow]:
        """Take jobs out of their lines, by turn or from the group that is named."""
        limit = min(claiming.limit, self.max_claim)
        by_turn = claiming.group is None
        turns = deque(ring)
        lines: dict[str, deque[JobRow]] = {}
        rows: list[JobRow] = []
        size = 0
        while turns and len(rows) < limit and step.has_room(_APART + 2) and size < _LARGEST:
            name = turns.popleft()
            if name not in lines:
                lines[name] = deque(self._line(step, name, limit))
            line = lines[name]
            most = 1 if claiming.across_groups else limit - len(rows)
            headroom = step.groups[name].headroom(step.settings.ceiling)
            before = len(rows)
            for _ in range(min(most, len(line), len(line) if headroom is None else headroom)):
                if not step.has_room(_APART + 2):
                    break
                row = line.popleft()
                after = returned(row)._replace(
                    place="active", deliveries=row.deliveries + 1, claim=claiming.id, extended_to=None
                )
                step.move(row, after)
                rows.append(after)
                size += len(row.error.encode()) + len(row.id.encode())
                if size >= _LARGEST:
                    break
            if by_turn and len(rows) > before:
                step.concern(name, tail=True)
                if not claiming.across_groups:
                    break
                if line:
                    turns.append(name)
        return rows

    def _line(self, step: Step, name: str, limit: int) -> list[JobRow]:
        """Answer the jobs of a group that wait or are due, oldest first, as many as one claim takes."""
        group = step.groups[name]
        if group.paused is not None or group.headroom(step.settings.ceiling) == 0:
            return []
        rows: list[JobRow] = []
        if group.waiting > 0:
            rows += [read_state(item, "waiting") for item in self._head(self._keys.waiting(name), limit)]
        if group.scheduled > 0 and (group.due or 0) <= step.now:
            due = self._head(self._keys.scheduled(name), LOOKED_AT, instant(step.now + 1))
            rows += [read_state(item, "scheduled") for item in due]
        return sorted(rows, key=lambda row: row.order)[:limit]

    def _with_payload(self, rows: Iterable[JobRow]) -> list[JobRow]:
        """Answer rows with their payloads; those that are gone or done meanwhile are left out."""
        listed = list(rows)
        guards = self._guards([row.id for row in listed])
        here = {job_id: guard for job_id, guard in guards.items() if guard.done is None}
        return [row._replace(payload=here[row.id].payload) for row in listed if row.id in here]


def _gone_round(ring: list[_Turn], lost_at: list[_Turn]) -> list[_Turn]:
    """Answer the ring for one more try, from another group on, and note where it begins.

    Who lost a race for a group that was served would meet all the other losers at the next one, and at the next. Only
    where the group's turn is still to come, and it was written for another reason, it is tried again.
    """
    first = 0
    if lost_at and ring and ring[0] not in lost_at:
        first = random.randrange(min(len(ring), _AHEAD))  # noqa: S311 - no secret
    lost_at += ring[first : first + 1]
    return ring[first:] + ring[:first]
