"""`DynamoDBJobs`: the job storage protocol in transactions, for `TransactingDynamoDBStorage`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import attrs

from batchstate.errors import BatchStateError, InvalidTransitionError, NotFoundError
from batchstate.job_rules import new_row, returned
from batchstate.job_wire import check_new_job, row_to_restore
from batchstate.marks import new_mark
from batchstate.names import check_name
from batchstate_dynamodb.job_holds import DynamoDBHolds
from batchstate_dynamodb.job_layout import Guard
from batchstate_dynamodb.job_listing import DynamoDBJobListing
from batchstate_dynamodb.job_settling import DynamoDBSettling
from batchstate_dynamodb.job_step import Step
from batchstate_dynamodb.layout import item_key, number, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from batchstate.job_calls import Added, NewJob
    from batchstate.job_wire import JobRow
    from batchstate.jobs import Job
    from batchstate.storage import Outcome
    from batchstate_dynamodb.job_layout import ClaimItem, Group

__all__ = ["DynamoDBJobs"]

_MOST_PAYLOAD: Final = 400 * 1024 - 4096
"""The bytes a payload may take: an item holds 400 KB, and names and numbers take less than the rest."""

_MOST_BYTES: Final = 900_000
"""The characters of payloads in one transaction, which holds 4 MB."""

_ADDED: Final = 30
"""How many jobs are added in one transaction: each writes its guard and its place, and perhaps a group."""

_CHANGED: Final = 10
"""How many jobs are revived or removed in one: each may end a claim."""

_REFRESHED: Final = 90
"""How many groups are looked at anew in one."""


class _New(NamedTuple):
    """A job to write, unless its ID is known.

    Attributes:
        id, group: the job and its group.
        size: of its payload, in characters.
        mark: of this writing.
        again: whether to add it though it was done a short while ago.
        row: answers its row, from the time.
    """

    id: str
    group: str
    size: int
    mark: str
    again: bool
    row: Callable[[int], JobRow]


class _Found(NamedTuple):
    """What was found of some jobs: their guards, their rows with the claims that hold them, and the outcomes there."""

    guards: dict[str, Guard]
    rows: dict[str, tuple[JobRow, ClaimItem | None]]
    outcomes: dict[tuple[str, str], str]


_Change: TypeAlias = "Callable[[Step, _Found, str], Outcome]"


class DynamoDBJobs(DynamoDBJobListing, DynamoDBSettling, DynamoDBHolds):
    """The part of `TransactingDynamoDBStorage` that keeps jobs."""

    def now(self) -> int:
        return self.clock()

    def add_jobs(self, jobs: Sequence[NewJob]) -> list[Added | BatchStateError]:
        checked = [_refused(check_new_job, job, most=_MOST_PAYLOAD) for job in jobs]
        sound = [job for job, refusal in zip(jobs, checked, strict=True) if refusal is None]
        first, mark = self._begin_adding(len(sound)), new_mark()
        numbered = [
            _New(job.id, job.group, len(job.payload), f"{mark}:{order}", job.again, partial(new_row, job, order))
            for order, job in enumerate(sound, first)
        ]
        return self._add_all(numbered, checked)

    def restore_jobs(self, jobs: Sequence[Job]) -> list[Added | BatchStateError]:
        rows = [_row_to_restore(job, self._queue) for job in jobs]
        sound = [row for row in rows if not isinstance(row, BatchStateError)]
        self._begin_adding(0)
        if sound:
            self._raise_order(max(row.order for row in sound))
        mark = new_mark()
        new = [
            _New(row.id, row.group, len(row.payload), f"{mark}:{place}", again=False, row=partial(_as_it_stands, row))
            for place, row in enumerate(sound)
        ]
        return self._add_all(new, [row if isinstance(row, BatchStateError) else None for row in rows])

    def _begin_adding(self, many: int) -> int:
        """Make the queue known, and answer the first of so many numbers in the line."""
        self._entry.file()
        return self._reserve("added", many) if many else 0

    def _raise_order(self, order: int) -> None:
        """See to it that the next number in the line is above this one."""
        self._requests.attempt(
            "update_item",
            Key=item_key(self._keys.numbers),
            UpdateExpression="SET #added = :order",
            ConditionExpression="attribute_not_exists(#added) OR #added < :order",
            ExpressionAttributeNames={"#added": "added"},
            ExpressionAttributeValues={":order": number(order)},
        )

    def _add_all(self, new: Sequence[_New], refused: Sequence[BatchStateError | None]) -> list[Added | BatchStateError]:
        added: list[Added] = []
        for chunk in _chunks(new):
            added += self._decide(lambda chunk=chunk: self._add(chunk))  # type: ignore[misc]
        answers = iter(added)
        return [next(answers) if refusal is None else refusal for refusal in refused]

    def _add(self, jobs: Sequence[_New]) -> list[Added] | None:
        keys = {self._keys.guard(job.id): job.id for job in jobs}
        settings, groups, found = self._look_up([job.group for job in jobs], keys)
        guards = {job_id: Guard.of(found[key]) for key, job_id in keys.items() if key in found}
        step = Step(self, self.clock(), settings, groups)
        answers: list[Added] = []
        for job in jobs:
            guard = guards.get(job.id)
            if guard is not None and guard.done is None:
                answers.append("added" if guard.mark == job.mark else "duplicate")
                continue
            if guard is not None and (guard.done or 0) > step.now and not job.again:
                answers.append("duplicate")
                continue
            row = job.row(step.now)
            step.move(None, row)
            new = Guard(row.id, row.group, row.order, row.payload, row.due_at, None, job.mark)
            step.write({"Put": {"Item": new.item(self._keys.guard(row.id)), **_as_found(guard)}})
            guards[row.id] = attrs.evolve(new, mark="")
            answers.append("added")
        return answers if step.commit() else None

    def revive_jobs(self, ids: Sequence[str]) -> list[Outcome]:
        return self._change(ids, self._revive, by="", why="")

    def remove_jobs(self, ids: Sequence[str], *, force: bool = False, by: str = "") -> list[Outcome]:
        def remove(step: Step, found: _Found, job_id: str) -> Outcome:
            return self._remove(step, found, job_id, force=force)

        return self._change(ids, remove, by=by, why="its last job was removed")

    def _change(self, ids: Sequence[str], change: _Change, *, by: str, why: str) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for start in range(0, len(ids), _CHANGED):
            chunk = ids[start : start + _CHANGED]
            outcomes += self._decide(lambda chunk=chunk: self._change_some(chunk, change, by, why))  # type: ignore[misc]
        return outcomes

    def _change_some(self, ids: Sequence[str], change: _Change, by: str, why: str) -> list[Outcome] | None:
        guards = self._guards(ids)
        present = [guard for guard in guards.values() if guard.done is None]
        settings, groups = self._groups(guard.group for guard in present)
        rows = self._locate(present)
        if len(rows) < len(present):
            return None
        held = [(job_id, claim.id) for job_id, (_, claim) in rows.items() if claim is not None]
        found = _Found(guards, rows, self._outcomes(held) if held else {})
        step = Step(self, self.clock(), settings, groups)
        outcomes = [change(step, found, job_id) for job_id in ids]
        return outcomes if step.commit(by=by, why=why) else None

    def _revive(self, step: Step, found: _Found, job_id: str) -> Outcome:
        row, _ = found.rows.get(job_id, (None, None))
        if row is None:
            return self._unknown(job_id)
        if row.place == "waiting":
            return None
        if row.place != "dead":
            return InvalidTransitionError(f"job {job_id!r} is {row.place}, and only a dead one can be revived")
        after = returned(row)._replace(attempts=0, stalls=0, error="", claim=None)
        step.move(row, after)
        found.rows[job_id] = (after, None)
        return None

    def _remove(self, step: Step, found: _Found, job_id: str, *, force: bool) -> Outcome:
        guard = found.guards.get(job_id)
        if guard is None:
            return self._unknown(job_id)
        row, claim = found.rows.get(job_id, (None, None))
        if row is not None and claim is not None and not force:
            return InvalidTransitionError(f"job {job_id!r} is held by a worker; force=True removes it all the same")
        del found.guards[job_id]
        step.write({"Delete": {"Key": item_key(self._keys.guard(job_id)), **_as_found(guard)}})
        if row is None:
            return None if (guard.done or 0) > step.now else self._unknown(job_id)
        step.move(row, None)
        if claim is not None:
            step.take_from(claim, job_id)
            before = found.outcomes.get((job_id, claim.id))
            if before is not None:
                step.remember(job_id, claim.id, before, "removed")
        return None

    def move_job(self, job_id: str, group: str) -> Outcome:
        if group:
            check_name("group", group)
        return self._decide(lambda: self._move_job(job_id, group))[0]

    def _move_job(self, job_id: str, group: str) -> tuple[Outcome] | None:
        guard = self._guards([job_id]).get(job_id)
        if guard is None or guard.done is not None:
            return (self._unknown(job_id),)
        settings, groups = self._groups([guard.group, group])
        located = self._locate([guard]).get(job_id)
        if located is None:
            return None
        row, claim = located
        if claim is not None:
            message = f"job {job_id!r} is held, and its slot is its group's; move it afterwards"
            return (InvalidTransitionError(message),)
        if row.group == group:
            return (None,)
        step = Step(self, self.clock(), settings, groups)
        step.move(row, row._replace(group=group))
        moved = attrs.evolve(guard, group=group, due=row.due_at)
        step.write({"Put": {"Item": moved.item(self._keys.guard(job_id)), **_as_found(guard)}})
        return (None,) if step.commit() else None

    def set_paused(self, group: str | None, reason: str | None) -> None:
        if group is None:
            self._set("paused", None if reason is None else text(reason))
        else:
            self._decide(lambda: self._change_group(group, lambda found: attrs.evolve(found, paused=reason)))

    def set_ceiling(self, group: str | None, ceiling: int | None) -> None:
        if group is not None:
            self._decide(lambda: self._change_group(group, lambda found: attrs.evolve(found, ceiling=ceiling)))
            return
        self._set("ceiling", None if ceiling is None else number(ceiling))
        names = sorted(self._all_groups())
        for start in range(0, len(names), _REFRESHED):
            chunk = names[start : start + _REFRESHED]
            self._decide(lambda chunk=chunk: self._refresh(chunk))  # type: ignore[misc]

    def _change_group(self, name: str, change: Callable[[Group], Group]) -> bool | None:
        settings, groups = self._groups([name])
        step = Step(self, self.clock(), settings, groups)
        step.groups[name] = change(groups[name])
        step.concern(name)
        return step.commit() or None

    def _refresh(self, names: Sequence[str]) -> bool | None:
        settings, groups = self._groups(names)
        step = Step(self, self.clock(), settings, groups)
        for name in names:
            step.concern(name)
        return step.commit() or None

    def _set(self, name: str, value: dict[str, str] | None) -> None:
        """Write one setting of the queue, or take it away."""
        change = {"UpdateExpression": "REMOVE #name"} if value is None else {"UpdateExpression": "SET #name = :value"}
        values = {} if value is None else {"ExpressionAttributeValues": {":value": value}}
        self._requests.call(
            "update_item",
            Key=item_key(self._keys.settings),
            ExpressionAttributeNames={"#name": name},
            **change,
            **values,
        )

    def _unknown(self, job_id: str) -> NotFoundError:
        return NotFoundError(f"there is no job {job_id!r} in queue {self._queue!r}")


def _refused(check: Callable[..., object], *args: Any, **options: Any) -> BatchStateError | None:  # noqa: ANN401 - passed on
    """Answer the error that a check raises."""
    try:
        check(*args, **options)
    except BatchStateError as error:
        return error
    return None


def _row_to_restore(job: Job, queue: str) -> JobRow | BatchStateError:
    try:
        return row_to_restore(job, queue, most=_MOST_PAYLOAD)
    except BatchStateError as error:
        return error


def _as_it_stands(row: JobRow, _now: int) -> JobRow:
    return row


def _chunks(jobs: Sequence[_New]) -> Iterator[list[_New]]:
    chunk: list[_New] = []
    size = 0
    for job in jobs:
        if chunk and (len(chunk) == _ADDED or size + job.size > _MOST_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(job)
        size += job.size
    if chunk:
        yield chunk


def _as_found(guard: Guard | None) -> dict[str, Any]:
    """Answer the condition that a guard is as it was found."""
    if guard is None:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    return {
        "ConditionExpression": "#mark = :seen",
        "ExpressionAttributeNames": {"#mark": "mark"},
        "ExpressionAttributeValues": {":seen": text(guard.mark)},
    }
