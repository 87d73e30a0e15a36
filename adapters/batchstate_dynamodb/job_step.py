"""A step: what is decided about jobs of some groups, written as one transaction or not at all."""

# ruff: noqa: SLF001 - a step is a part of the storage

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import attrs

from batchstate.errors import BatchStateError
from batchstate.job_rules import ending_swap
from batchstate.marks import new_mark
from batchstate_dynamodb.errors import CancelledError
from batchstate_dynamodb.expressions import delete_record, put_record, update_row
from batchstate_dynamodb.job_layout import ClaimItem, Group, Settings, encode_state
from batchstate_dynamodb.layout import Item, Key, encode_batches, item_key, number, read_text, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from batchstate.entities import Batch
    from batchstate.job_wire import JobRow
    from batchstate_dynamodb.job_base import JobBase

__all__ = ["ACTIONS", "Action", "Step"]

Action = dict[str, Any]

ACTIONS: Final = 100
"""How many items a transaction writes at most."""

_ENDING_WRITES: Final = 3
"""A claim's item, its batch's row, and a record or an entry among the retired; besides come the old records."""


class Step:
    """One step, from the groups as it found them to what it writes.

    Args:
        base: the storage.
        now: when it is.
        settings: what holds for the queue.
        groups: the groups it may concern, read before anything else that it is decided by.
    """

    def __init__(self, base: JobBase, now: int, settings: Settings, groups: Mapping[str, Group]) -> None:
        self._base = base
        self._keys = base._keys
        self.now = now
        self.settings = settings
        self.mark = new_mark()
        self._before = dict(groups)
        self.groups = dict(groups)
        self._concerned: dict[str, bool] = {}
        self._places: dict[Key, Item | None] = {}
        self._claims: dict[str, tuple[ClaimItem, dict[str, JobRow]]] = {}
        self._others: list[Action] = []
        self._batches: dict[str, Batch | None] = {}
        self._ends = _ENDING_WRITES + len(base._shards.counts)

    @property
    def weight(self) -> int:
        """How many items it writes, with the ends of the claims whose jobs it takes."""
        return len(self._concerned) + len(self._places) + len(self._others) + self._ends * len(self._claims)

    def write(self, action: Action) -> None:
        """Write something else in the same transaction."""
        self._others.append(action)

    def know(self, batch_id: str, batch: Batch | None) -> None:
        """Take a batch as it was found, for the end of its claim; what is not known is loaded."""
        self._batches[batch_id] = batch

    def concern(self, name: str, *, tail: bool = False, last: bool = False) -> None:
        """Let a group join the ring's tail, or leave it, by what is then the case; groups join in the order they came.

        Args:
            name: the group.
            tail: it is served by its turn, and goes to the tail if it was in the ring already.
            last: it joins after all that were concerned so far.
        """
        tails = self._concerned.get(name, False) or tail
        if tail or last:
            self._concerned.pop(name, None)
        self._concerned[name] = tails

    def has_room(self, writes: int, claim_id: str | None = None) -> bool:
        """Answer whether so many writes more fit in, with the end of a claim."""
        ends = 0 if claim_id is None or claim_id in self._claims else self._ends
        return self.weight + writes + ends <= ACTIONS

    def move(self, before: JobRow | None, after: JobRow | None) -> None:
        """Take a job from its place, and put it in another; `None` for one that is new, or that goes."""
        if before is not None:
            self._count(before, -1)
            if before.place != "active":
                self._places[self._keys.place(before)] = None
        if after is not None:
            self._count(after, 1)
            if after.place != "active":
                self._places[self._keys.place(after)] = encode_state(after)
            if after.place == "scheduled":
                group = self.groups[after.group]
                due = after.due_at or 0
                self.groups[after.group] = attrs.evolve(group, due=due if group.due is None else min(group.due, due))
        for row in (before, after):
            if row is not None:
                self.concern(row.group)

    def claim(self, claim: ClaimItem) -> ClaimItem:
        """Answer a claim as this step has it so far."""
        return attrs.evolve(claim, held=self._claims[claim.id][1]) if claim.id in self._claims else claim

    def take_from(self, claim: ClaimItem, job_id: str) -> None:
        """Take a job out of the claim that holds it."""
        _, held = self._claims.setdefault(claim.id, (claim, dict(claim.held)))
        del held[job_id]

    def remember(self, job_id: str, claim_id: str, before: str, outcome: str) -> None:
        """Write the outcome of a job's association with a claim."""
        unless = "attribute_not_exists(#outcome)" if not before else "#outcome = :before"
        values = {":outcome": text(outcome), **({":before": text(before)} if before else {})}
        self.write(
            {
                "Update": {
                    "Key": item_key(Key(self._base._layout.attempts(job_id), claim_id)),
                    "UpdateExpression": "SET #outcome = :outcome",
                    "ConditionExpression": f"attribute_exists(pk) AND {unless}",
                    "ExpressionAttributeNames": {"#outcome": "outcome"},
                    "ExpressionAttributeValues": values,
                }
            }
        )

    def is_servable(self, name: str) -> bool:
        """Answer whether a claim could take a job of a group."""
        group = self.groups[name]
        if group.paused is not None or group.headroom(self.settings.ceiling) == 0:
            return False
        if group.waiting > 0:
            return True
        due = self.first_due(name)
        return due is not None and due <= self.now

    def first_due(self, name: str) -> int | None:
        """Answer when the first scheduled job of a group is due, as this step leaves it, or an instant before."""
        group = self.groups[name]
        if group.scheduled == 0:
            self.groups[name] = attrs.evolve(group, due=None)
            return None
        if group.due is not None and group.due > self.now:
            return group.due
        pk = self._keys.scheduled(name)
        ours = {key.sk: item for key, item in self._places.items() if key.pk == pk}
        found = [read_text(item, "sk") for item in self._base._head(pk, len(ours) + 1)]
        left = [sk for sk in found if sk not in ours] + [sk for sk, item in ours.items() if item is not None]
        due = int(min(left).partition(":")[0]) if left else None
        self.groups[name] = attrs.evolve(group, due=due)
        return due

    def commit(self, *, swept: bool = False, by: str = "", why: str = "") -> bool:
        """Write it all; answer `False` where others wrote in between, and nothing was written.

        Args:
            swept: whether the claims that end by it are abandoned.
            by, why: for their history.

        Raises:
            StorageUnavailableError: it may be written or not.
        """
        endings = [action for claim_id in self._claims for action in self._end(claim_id, swept=swept, by=by, why=why)]
        actions = [*self._group_writes(), *self._place_writes(), *endings, *self._others]
        if not actions:
            return True
        try:
            self._base._requests.transact(actions, token=str(uuid4()))
        except CancelledError:
            return self._was_written()
        return True

    @property
    def ended(self) -> list[str]:
        """The claims that hold nothing any more."""
        return [claim_id for claim_id, (_, held) in self._claims.items() if not held]

    def _was_written(self) -> bool:
        """Answer whether a group has this step's mark: it was written, its reply was lost, and it was sent again."""
        for name in self._concerned:
            item = self._base._requests.get(self._keys.group(name))
            if item is not None:
                return Group.of(item).mark == self.mark
        return False

    def _count(self, row: JobRow, by: int) -> None:
        group = self.groups[row.group]
        self.groups[row.group] = attrs.evolve(group, **{row.place: getattr(group, row.place) + by})

    def _group_writes(self) -> list[Action]:
        joining = []
        for name, tail in self._concerned.items():
            group = self.groups[name]
            if not self.is_servable(name):
                self.groups[name] = attrs.evolve(self.groups[name], turn=None)
            elif tail or group.turn is None:
                joining.append(name)
        first = self._base._reserve("turns", len(joining)) if joining else 0
        for turn, name in enumerate(joining, first):
            self.groups[name] = attrs.evolve(self.groups[name], turn=turn)
        return [action for name in self._concerned if (action := self._group_write(name)) is not None]

    def _group_write(self, name: str) -> Action | None:
        before, after, key = self._before[name], self.groups[name], self._keys.group(name)
        if before.mark is None:
            if after.is_bare:
                return None
            condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        else:
            condition = {
                "ConditionExpression": "#mark = :seen",
                "ExpressionAttributeNames": {"#mark": "mark"},
                "ExpressionAttributeValues": {":seen": text(before.mark)},
            }
        if after.is_bare:
            return {"Delete": {"Key": item_key(key), **condition}}
        return {"Put": {"Item": attrs.evolve(after, mark=self.mark).item(key), **condition}}

    def _place_writes(self) -> list[Action]:
        return [
            {"Delete": {"Key": item_key(key), "ConditionExpression": "attribute_exists(pk)"}}
            if item is None
            else {"Put": {"Item": {**item_key(key), **item}}}
            for key, item in self._places.items()
        ]

    def _end(self, claim_id: str, *, swept: bool, by: str, why: str) -> list[Action]:
        """Answer the writes of a claim whose jobs were taken: it holds fewer, or it ends."""
        claim, held = self._claims[claim_id]
        condition = "#mark = :seen AND #expires_at = :expires_at" if swept else "#mark = :seen"
        names = {"#mark": "mark", **({"#expires_at": "expires_at"} if swept else {})}
        values = {":seen": text(claim.mark), **({":expires_at": number(claim.expires_at)} if swept else {})}
        write: Action = {"Key": item_key(self._keys.claim(claim_id)), "ConditionExpression": condition}
        if held:
            after = attrs.evolve(claim, held=held)
            write |= {
                "UpdateExpression": "SET #mark = :mark, #held = :held",
                "ExpressionAttributeNames": {**names, "#held": "held"},
                "ExpressionAttributeValues": {**values, ":mark": text(self.mark), ":held": after.held_map()},
            }
            return [{"Update": write}]
        write |= {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
        return [{"Delete": write}, *self._end_batch(claim, swept=swept, by=by, why=why)]

    def _end_batch(self, claim: ClaimItem, *, swept: bool, by: str, why: str) -> Iterable[Action]:
        base = self._base
        batch = self._batches[claim.id] if claim.id in self._batches else base._batch(claim.id)
        swap = ending_swap(batch, claim.ending, swept=swept, now=self.now, by=by, why=why) if batch else None
        if swap is None:
            return
        row = encode_batches([swap.after], batch.queue if batch else "")[0]
        if isinstance(row, BatchStateError):
            raise row
        layout, shards = base._layout, base._shards
        yield {"Update": update_row(layout.row(claim.id), swap.before, row)}
        if swap.after.retired_at is not None:
            yield {"Put": {"Item": item_key(base._retired.key(swap.after))}}
        kept = Key(layout.bucket(row.state, shards.home(claim.id)), claim.id)
        if swap.after.retired_at is None:
            yield {"Put": put_record(kept, row.version)}
        for shard in shards.places(claim.id):
            key = Key(layout.bucket(swap.before.state, shard), claim.id)
            if swap.after.retired_at is not None or key != kept:
                yield {"Delete": delete_record(key, swap.before.version)}
