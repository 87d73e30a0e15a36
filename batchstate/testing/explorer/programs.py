"""What each actor knows, as numbers: a node for every sequence of answers that it may have got.

What an actor does next follows from its message and the answers it got, and from nothing else. So
each sequence of answers is run once, by the real function, and kept as a node with the call it
leads to. An actor that has the same node in two states of the exploration is in the same place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field, frozen

from batchstate.testing.explorer.canonical import canonical
from batchstate.testing.explorer.running import LOST, Ending, Running, judge
from batchstate.testing.explorer.stores import READS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from batchstate.testing.explorer.actors import Message, Scope
    from batchstate.testing.explorer.stores import Stores

__all__ = ["DONE", "ENDED", "Place", "Programs"]

ENDED = -1
"""In place of a call: the work on the message has ended, and it is not acknowledged yet."""

DONE = -2
"""In place of a call: all messages are acknowledged."""

NONE = -1
"""In place of a node: there is no such step."""


@define(eq=False)
class _Position:
    """A place in the run of one delivery: the answers that led there, and the call that comes next."""

    delivery: tuple[int, int, int]
    parent: _Position | None
    answer: int
    call: int = ENDED
    ending: Ending | None = None
    wrote: bool = False
    children: dict[int, _Position] = field(factory=dict)
    parked: Running | None = None


@frozen
class Place:
    """Where an actor is.

    Attributes:
        actor, message, life: which delivery it works on, by number.
        crashes, resends, lost_replies: how many it still has.
        acknowledged: the creations acknowledged so far, a bit for each batch.
        position: where in the delivery it is; `None` at the end of the work or of all work.
        ending: how the work ended, where it has.
    """

    actor: int
    message: int
    life: int
    crashes: int
    resends: int
    lost_replies: int
    acknowledged: int
    position: _Position | None
    ending: Ending | None = None


class Programs:
    """The nodes of all actors of a scope. A node is a number; what can follow it is looked up by it.

    Attributes:
        call: the call to make next, or `ENDED`, or `DONE`.
        after: by answer, the node that it leads to; filled in as answers come.
        crashed: the node after a crash there.
        resent: the node where the call was applied once and is to be sent again.
        lost: the node where the call was applied and its reply lost.
        acked: after `ENDED`, the node after the acknowledgement.
        mask: the creations acknowledged, a bit for each batch.
        first: whether a message is to begin here.
        fault: what is wrong with how the work ended, else `None`.
    """

    def __init__(self, scope: Scope, stores: Stores) -> None:
        self.call: list[int] = []
        self.after: list[dict[int, int]] = []
        self.crashed: list[int] = []
        self.resent: list[int] = []
        self.lost: list[int] = []
        self.acked: list[int] = []
        self.mask: list[int] = []
        self.first: list[bool] = []
        self.fault: list[str | None] = []
        self.places: list[Place] = []
        self._scope = scope
        self._stores = stores
        self._numbers: dict[Hashable, int] = {}
        self._roots: dict[tuple[int, int, int], _Position] = {}
        self._lost = stores.number_of_answer(LOST)
        self._bits = {batch_id: 1 << place for place, batch_id in enumerate(scope.batch_ids)}
        there = sum(self._bits[batch.id] for batch in scope.existing)
        self.starts = [
            self._begin(number, 0, 0, (actor.crashes, actor.resends, actor.lost_replies), there)
            for number, actor in enumerate(scope.actors)
        ]

    def acknowledged(self, mask: int) -> frozenset[str]:
        """Answer the batches whose bit is in `mask`."""
        return frozenset(batch_id for batch_id, bit in self._bits.items() if mask & bit)

    def message(self, node: int) -> Message:
        """Answer the message that is worked on."""
        place = self.places[node]
        return self._scope.actors[place.actor].messages[place.message]

    def follow(self, node: int, answer: int) -> int:
        """Answer the node that an answer leads to, for the first time."""
        place = self.places[node]
        position = place.position
        if position is None:
            raise AssertionError
        budget = (place.crashes, place.resends, place.lost_replies)
        found = self._node(place, self._child(position, answer), budget)
        self.after[node][answer] = found
        return found

    def ending(self, node: int, answer: int) -> Ending | None:
        """Answer how the work ended with this answer, if it did."""
        position = self.places[node].position
        return None if position is None else self._child(position, answer).ending

    # ------------------------------------------------------------------------------------ nodes

    def _begin(self, actor: int, message: int, life: int, budget: tuple[int, int, int], mask: int) -> int:
        place = Place(actor, message, life, *budget, mask, None)
        if message == len(self._scope.actors[actor].messages):
            return self._add(("done", actor, mask), place, DONE)
        root = self._roots.get((actor, message, life))
        if root is None:
            root = self._roots[actor, message, life] = _Position((actor, message, life), None, NONE)
            running = self._running(root)
            self._set(root, running, running.start())
        return self._node(place, root, budget)

    def _node(self, place: Place, position: _Position, budget: tuple[int, int, int], *, sent: bool = False) -> int:
        """Answer the node of a position, with so many crashes, re-sends and lost replies left.

        `sent` says that its call was applied once already.
        """
        here = Place(place.actor, place.message, place.life, *budget, place.acknowledged, position)
        if position.ending is not None:
            return self._ended(here, position, position.ending)
        key = (id(position), budget, place.acknowledged, sent)
        if key in self._numbers:
            return self._numbers[key]
        node = self._add(key, here, position.call)
        crashes, resends, lost_replies = budget
        self.first[node] = position.parent is None and not sent
        if crashes and not self.first[node]:
            wrote = sent or position.wrote
            self.crashed[node] = self._redelivered(here, wrote=wrote, budget=(crashes - 1, resends, lost_replies))
        if self._stores.calls[position.call].method not in READS:
            if resends:
                self.resent[node] = self._node(here, position, (crashes, resends - 1, lost_replies), sent=True)
            if lost_replies:
                after = self._child(position, self._lost)
                self.lost[node] = self._node(here, after, (crashes, resends, lost_replies - 1))
        return node

    def _ended(self, here: Place, position: _Position, ending: Ending) -> int:
        """Answer the node of an ended delivery. Those that end alike are one, whatever the answers were."""
        message = self._scope.actors[here.actor].messages[here.message]
        verdict, fault = judge(self._scope.actors[here.actor], message, ending)
        shown = canonical(ending.value) if message.watch is not None else None
        budget = (here.crashes, here.resends, here.lost_replies)
        key = (
            *("ended", here.actor, here.message, here.life, position.wrote, budget, here.acknowledged),
            *(verdict, fault, shown),
        )
        if key in self._numbers:
            return self._numbers[key]
        place = Place(here.actor, here.message, here.life, *budget, here.acknowledged, None, ending)
        node = self._add(key, place, ENDED)
        self.fault[node] = fault
        if here.crashes:
            fewer = (here.crashes - 1, here.resends, here.lost_replies)
            self.crashed[node] = self._redelivered(here, wrote=position.wrote, budget=fewer)
        if verdict == "again":
            self.acked[node] = self._redelivered(here, wrote=position.wrote, budget=budget)
        else:
            created = self._bits.get(message.creates, 0) if verdict == "done" else 0
            mask = here.acknowledged | created
            self.acked[node] = self._begin(here.actor, here.message + 1, 0, budget, mask)
        return node

    def _redelivered(self, here: Place, *, wrote: bool, budget: tuple[int, int, int]) -> int:
        """Answer the node where the message comes again. Marks that may be in the store are not made anew."""
        life = here.life + 1 if wrote else here.life
        return self._begin(here.actor, here.message, life, budget, here.acknowledged)

    def _add(self, key: Hashable, place: Place, call: int) -> int:
        if key in self._numbers:
            return self._numbers[key]
        node = self._numbers[key] = len(self.call)
        self.call.append(call)
        self.after.append({})
        for steps in (self.crashed, self.resent, self.lost, self.acked):
            steps.append(NONE)
        self.mask.append(place.acknowledged)
        self.first.append(False)
        self.fault.append(None)
        self.places.append(place)
        return node

    # -------------------------------------------------------------------------------- positions

    def _child(self, position: _Position, answer: int) -> _Position:
        child = position.children.get(answer)
        if child is None:
            running = position.parked or self._run_to(position)
            position.parked = None
            child = position.children[answer] = _Position(position.delivery, position, answer)
            wrote = self._stores.calls[position.call].method not in READS
            child.wrote = position.wrote or wrote
            self._set(child, running, running.answer(self._stores.answers[answer]))
        return child

    def _set(self, position: _Position, running: Running, asked: object) -> None:
        if isinstance(asked, Ending):
            position.ending = asked
        else:
            position.call = self._stores.number_of_call(asked)  # type: ignore[arg-type]
            position.parked = running

    def _run_to(self, position: _Position) -> Running:
        """Answer a fresh run of the delivery, brought to a position by the answers that led there."""
        answers: list[int] = []
        at: _Position = position
        while at.parent is not None:
            answers.append(at.answer)
            at = at.parent
        running = self._running(position)
        running.start()
        for answer in reversed(answers):
            running.answer(self._stores.answers[answer])
        return running

    def _running(self, position: _Position) -> Running:
        actor, message, life = position.delivery
        who = self._scope.actors[actor]
        return Running(self._stores.store, who, who.messages[message], f"{who.name}-{message}-{life}")
