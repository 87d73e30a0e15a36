"""The states that the actors of a scope can bring a store into, and the steps between them, made as they are looked at.

A state is where each actor is, what the store holds, and what a listing under way still owes. It is
one int, a field of bits for each of these, so that a step is an addition and a million states fit
into memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.creation import create_batch
from batchstate.testing.explorer.actors import CLOCK
from batchstate.testing.explorer.programs import DONE, ENDED, Programs
from batchstate.testing.explorer.promises import PROMISES, Promises
from batchstate.testing.explorer.running import LOST, steady_marks
from batchstate.testing.explorer.schedules import Act, Schedule, Turn, Violation
from batchstate.testing.explorer.stores import Stores
from batchstate.testing.explorer.telling import Told, tell
from batchstate.testing.explorer.watching import NOTHING, Due
from batchstate.testing.explorer.world import World, look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.storage import Storage
    from batchstate.testing.explorer.actors import Scope
    from batchstate.testing.explorer.running import Ending
    from batchstate.testing.explorer.stores import Rewindable

__all__ = ["Graph", "prepare"]

BITS = 24
FIELD = (1 << BITS) - 1
DUE = FIELD << BITS
ACTS = 8
"""An event is `actor * ACTS + act`."""


def prepare(store: Storage, scope: Scope) -> None:
    """Bring an empty store to the start of a scope."""
    with steady_marks("start"):
        for batch in scope.existing:
            create_batch(store, batch, clock=CLOCK)


class Graph:
    """The states of a scope and the steps between them, made as they are looked at.

    Args:
        scope: who acts, on what.
        store: an empty storage that can go back to what it was.
        promises: what must hold.
    """

    def __init__(self, scope: Scope, store: Rewindable, promises: Promises = PROMISES) -> None:
        self.scope = scope
        self.promises = promises
        prepare(store, scope)
        self.stores = Stores(store)
        self.programs = Programs(scope, self.stores)
        names = [actor.name for actor in scope.actors]
        self._shifts = [BITS * (2 + number) for number in range(len(names))]
        shift_of = dict(zip(names, self._shifts, strict=True))
        self._after = [[shift_of[name] for name in actor.after] for actor in scope.actors]
        self._idle = [[shift_of[name] for name in actor.idle] for actor in scope.actors]
        self._watcher = next(
            (
                number
                for number, actor in enumerate(scope.actors)
                if any(message.watch is not None for message in actor.messages)
            ),
            None,
        )
        self._dues: list[Due | None] = [None, NOTHING]
        # Number 0 is for no listing under way.
        self._due_numbers: dict[Due, int] = {NOTHING: 1}
        self._due_steps: dict[tuple[int, int, int, tuple[int, int]], int] = {}
        self._worlds: dict[tuple[int, int], World] = {}
        self._sound: set[int] = set()
        self._sound_steps: set[int] = set()
        self._creates = any(message.creates for actor in scope.actors for message in actor.messages)
        self.start = sum(node << shift for node, shift in zip(self.programs.starts, self._shifts, strict=True))

    # ----------------------------------------------------------------------------------- states

    def successors(self, state: int) -> list[tuple[int, int]]:
        """Answer every step from `state`, as `(event, state)`."""
        call, acked, crashed = self.programs.call, self.programs.acked, self.programs.crashed
        found: list[tuple[int, int]] = []
        for actor, shift in enumerate(self._shifts):
            node = state >> shift & FIELD
            event = actor * ACTS
            if call[node] >= 0:
                if self.programs.first[node] and not self._may_begin(actor, state):
                    continue
                self._add_calls(found, state, event, node)
            elif call[node] == ENDED:
                found.append((event + Act.ACKNOWLEDGE, state + ((acked[node] - node) << shift)))
            if crashed[node] >= 0:
                step = state + ((crashed[node] - node) << shift)
                found.append((event + Act.CRASH, step & ~DUE if actor == self._watcher else step))
        return found

    def _add_calls(self, found: list[tuple[int, int]], state: int, event: int, node: int) -> None:
        """Add the steps in which an actor makes its next call."""
        programs = self.programs
        content = state & FIELD
        call, shift = programs.call[node], self._shifts[event // ACTS]
        now, answer = self.stores.known[content].get(call) or self.stores.perform(content, call)
        then = programs.after[node].get(answer, -1)
        if then < 0:
            then = programs.follow(node, answer)
        base = state + now - content
        if self._watcher is not None:
            base += (self._due_after(state, event // ACTS, node, then, now) - (state >> BITS & FIELD)) << BITS
        found.append((event, base + ((then - node) << shift)))
        again, lost = programs.resent[node], programs.lost[node]
        if again >= 0:
            found.append((event + Act.RESEND, base + ((again - node) << shift)))
        if lost >= 0:
            found.append((event + Act.LOSE, base + ((lost - node) << shift)))

    def _may_begin(self, actor: int, state: int) -> bool:
        call, first = self.programs.call, self.programs.first
        return all(call[state >> shift & FIELD] == DONE for shift in self._after[actor]) and all(
            first[node := state >> shift & FIELD] or call[node] == DONE for shift in self._idle[actor]
        )

    def _due_after(self, state: int, actor: int, node: int, then: int, now: int) -> int:
        """Answer the number of what the listing under way owes after a call, 0 where there is none or it has paid."""
        due = state >> BITS & FIELD
        if actor == self._watcher:
            watch = self.programs.message(node).watch
            if watch is not None and self.programs.first[node]:
                due = self._due_number(watch.begin(self.world(state)))
            if self.programs.call[then] == ENDED and self._missing(then, due) is None:
                return 0
            return due
        if self._dues[due] in (None, NOTHING) or state & FIELD == now:
            return due
        move = (actor, self.programs.places[node].message)
        key = (due, now, self.mask(state), move)
        if key not in self._due_steps:
            self._due_steps[key] = self._step_due(state, now, due, move)
        return self._due_steps[key]

    def _step_due(self, state: int, now: int, due: int, move: tuple[int, int]) -> int:
        owed = self._dues[due]
        if owed is None or self._watcher is None:
            raise AssertionError
        watch = self.programs.message(state >> self._shifts[self._watcher] & FIELD).watch
        if watch is None:
            raise AssertionError
        return self._due_number(watch.step(owed, self._world(now, self.mask(state)), move))

    def _due_number(self, due: Due) -> int:
        number = self._due_numbers.setdefault(due, len(self._dues))
        if number == len(self._dues):
            self._dues.append(due)
        return number

    def _missing(self, node: int, due: int) -> str | None:
        """Answer what the listing that ended in `node` owed and does not show."""
        owed = self._dues[due]
        watch, ending = self.programs.message(node).watch, self.programs.places[node].ending
        if owed is None or watch is None or ending is None or ending.error is not None:
            return None
        return watch.missing(owed, ending.value)

    # ------------------------------------------------------------------------------ the promises

    def mask(self, state: int) -> int:
        """Answer which creations are acknowledged in `state`, a bit for each batch."""
        mask = self.programs.mask[state >> self._shifts[0] & FIELD]
        if self._creates:
            for shift in self._shifts:
                mask |= self.programs.mask[state >> shift & FIELD]
        return mask

    def world(self, state: int) -> World:
        """Answer what can be seen of the store in `state`; good until the next call of this object."""
        return self._world(state & FIELD, self.mask(state))

    def _world(self, content: int, mask: int) -> World:
        found = self._worlds.get((content, mask))
        store = self.stores.at(content)
        if found is None:
            acknowledged = self.programs.acknowledged(mask)
            found = look(store, self.scope.lifecycle, self.scope.batch_ids, acknowledged)
            self._worlds[content, mask] = found
        return found

    def problem(self, before: int, event: int, after: int) -> str | None:
        """Answer what is wrong with the step from one state to another, or with where it leads."""
        node = after >> self._shifts[event // ACTS] & FIELD
        if self.programs.call[node] == ENDED:
            fault = self.programs.fault[node]
            if fault is None and event // ACTS == self._watcher:
                fault = self._missing(node, after >> BITS & FIELD)
            if fault is not None:
                return fault
        mask = self.mask(after)
        if before & FIELD != after & FIELD:
            broken = self._step_problem(before & FIELD, after & FIELD, mask)
            if broken is not None:
                return broken
        broken = self._state_problem(after, mask)
        if broken is None and event % ACTS == Act.ACKNOWLEDGE and self.at_rest(after):
            return self.promises.broken_at_rest(self.world(after))
        return broken

    def _step_problem(self, before: int, after: int, mask: int) -> str | None:
        key = before << BITS | after
        if key in self._sound_steps:
            return None
        earlier, later = self._world(before, mask), self._world(after, mask)
        broken = self.promises.broken_between(earlier, later)
        if broken is None:
            self._sound_steps.add(key)
        return broken

    def _state_problem(self, state: int, mask: int) -> str | None:
        key = mask << BITS | state & FIELD
        if key not in self._sound:
            broken = self.promises.broken(self.world(state))
            if broken is not None:
                return broken
            self._sound.add(key)
        return None

    def problem_at_start(self) -> str | None:
        """Answer what is wrong with the first state."""
        return self._state_problem(self.start, self.mask(self.start))

    def unfinished(self, state: int) -> list[str]:
        """Answer the names of the actors that have a message left."""
        call = self.programs.call
        return [
            actor.name
            for actor, shift in zip(self.scope.actors, self._shifts, strict=True)
            if call[state >> shift & FIELD] != DONE
        ]

    def at_rest(self, state: int) -> bool:
        """Answer whether every message is acknowledged in `state`."""
        call = self.programs.call
        return all(call[state >> shift & FIELD] == DONE for shift in self._shifts)

    # ------------------------------------------------------------------------------- the schedule

    def violation(self, problem: str, events: Sequence[int]) -> Violation:
        """Answer the error that tells a broken promise and the way there."""
        start, told = self.story(events)
        return Violation(problem, self.schedule(events), tell(start, told))

    def schedule(self, events: Sequence[int]) -> Schedule:
        """Answer the schedule of these events from the start."""
        names = [actor.name for actor in self.scope.actors]
        turns = tuple(Turn(names[event // ACTS], Act(event % ACTS)) for event in events)
        return Schedule(self.scope.title, turns)

    def story(self, events: Sequence[int]) -> tuple[str, list[Told]]:
        """Answer what the store holds at the start, and what is known of each of these events."""
        state = self.start
        start = str(self.world(state))
        told: list[Told] = []
        endings: dict[int, Ending | None] = {}
        for event in events:
            then = dict(self.successors(state))[event]
            actor = event // ACTS
            step = self._tell(state, event, then, endings.get(actor))
            if step.call is not None:
                answer = self.stores.number_of_answer(LOST if step.act is Act.LOSE else step.answer)
                endings[actor] = self.programs.ending(state >> self._shifts[actor] & FIELD, answer)
            told.append(step)
            state = then
        return start, told

    def _tell(self, state: int, event: int, then: int, ending: Ending | None) -> Told:
        programs, actor = self.programs, event // ACTS
        node, after = (each >> self._shifts[actor] & FIELD for each in (state, then))
        act, message, name = Act(event % ACTS), programs.message(node), self.scope.actors[actor].name
        if act is Act.CRASH:
            return Told(name, act, message)
        if act is Act.ACKNOWLEDGE:
            again = programs.places[after].message == programs.places[node].message
            return Told(name, act, message, ending=ending, again=again)
        now, answer = self.stores.known[state & FIELD][programs.call[node]]
        return Told(
            name,
            act,
            message,
            begins=programs.first[node],
            call=self.stores.calls[programs.call[node]],
            answer=self.stores.answers[answer],
            changed=now != state & FIELD,
            world=str(self.world(then)),
        )
