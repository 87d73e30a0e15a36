"""The search: every state that the actors of a scope can bring a store into, each once, nearest first.

A state is where each actor is, what the store holds, and what a listing under way still owes. It is
one int, a field of bits for each of these, so that a step is an addition and a million states fit
into memory. States are visited breadth first, so that the schedule that is told of a broken promise
is the shortest there is.
"""

from __future__ import annotations

from array import array
from time import perf_counter
from typing import TYPE_CHECKING

from attrs import frozen

from batchstate.creation import create_batch
from batchstate.testing.explorer.actors import CLOCK
from batchstate.testing.explorer.programs import DONE, ENDED, Programs
from batchstate.testing.explorer.promises import PROMISES, Promises
from batchstate.testing.explorer.running import steady_marks
from batchstate.testing.explorer.schedules import Act, Schedule, Turn
from batchstate.testing.explorer.stores import Stores
from batchstate.testing.explorer.telling import Told, tell
from batchstate.testing.explorer.watching import NOTHING, Due
from batchstate.testing.explorer.world import World, look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from batchstate.storage import Storage
    from batchstate.testing.explorer.actors import Scope
    from batchstate.testing.explorer.stores import Rewindable

__all__ = ["Explored", "Graph", "TooManyStatesError", "Violation", "explore", "prepare"]

BITS = 24
FIELD = (1 << BITS) - 1
DUE = FIELD << BITS
ACTS = 8
"""An event is `actor * ACTS + act`."""


class Violation(AssertionError):  # noqa: N818 - an assertion that failed
    """A promise was broken. The text tells the schedule, step by step.

    Attributes:
        problem: what is broken.
        schedule: how to get there.
    """

    def __init__(self, problem: str, schedule: Schedule, story: str) -> None:
        super().__init__(f"{schedule.scope}: {problem}\n{story}")
        self.problem = problem
        self.schedule = schedule


class TooManyStatesError(AssertionError):
    """The scope has more states than were allowed."""


@frozen
class Explored:
    """What an exploration went through without finding a broken promise.

    Attributes:
        scope: its title.
        states: how many states there are.
        steps: how many steps lead from one to another.
        stores: how many different contents the store had.
        at_rest: in how many states all was quiet.
        seconds: how long it took.
    """

    scope: str
    states: int
    steps: int
    stores: int
    at_rest: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.scope}: {self.states:,} states, {self.steps:,} steps, {self.stores:,} contents of the store, "
            f"{self.at_rest:,} ends, {self.seconds:.1f} s"
        )


def prepare(store: Storage, scope: Scope) -> None:
    """Bring an empty store to the start of a scope."""
    with steady_marks("start"):
        for batch in scope.existing:
            create_batch(store, batch, clock=CLOCK)


def explore(
    scope: Scope,
    make_store: Callable[[], Rewindable],
    promises: Promises = PROMISES,
    *,
    most: int = 20_000_000,
) -> Explored:
    """Go through every state that the actors of a scope can reach, and hold the promises against each.

    Args:
        scope: who acts, on what.
        make_store: makes an empty storage that can go back to what it was, such as
            `MemoryStorage`.
        promises: what must hold.
        most: how many states there may be.

    Returns:
        How much there was to see.

    Raises:
        Violation: a promise is broken, an actor got an error that is not documented, or a listing
            missed a batch. It tells the shortest schedule.
        TooManyStatesError: there are more than `most` states.
    """
    return Graph(scope, make_store(), promises).explore(most)


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

    def at_rest(self, state: int) -> bool:
        """Answer whether every message is acknowledged in `state`."""
        call = self.programs.call
        return all(call[state >> shift & FIELD] == DONE for shift in self._shifts)

    # -------------------------------------------------------------------------------- the search

    def explore(self, most: int) -> Explored:
        """Visit every state, nearest first; see the function of this name."""
        began = perf_counter()
        order = [self.start]
        seen = {self.start}
        parents, events = array("l", [-1]), array("H", [0])
        steps = at_rest = 0
        if broken := self._state_problem(self.start, self.mask(self.start)):
            raise self.violation(broken, [])
        for place, state in enumerate(order):  # it grows while it is gone through
            following = self.successors(state)
            steps += len(following)
            at_rest += not following and self.at_rest(state)
            for event, step in following:
                if step in seen:
                    continue
                if broken := self.problem(state, event, step):
                    raise self.violation(broken, [*_path(parents, events, place), event])
                seen.add(step)
                order.append(step)
                parents.append(place)
                events.append(event)
            if len(order) > most:
                msg = f"{self.scope.title}: more than {most:,} states"
                raise TooManyStatesError(msg)
        seconds = perf_counter() - began
        return Explored(self.scope.title, len(order), steps, len(self.stores), at_rest, seconds)

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
        told = []
        for event in events:
            then = dict(self.successors(state))[event]
            told.append(self._tell(state, event, then))
            state = then
        return start, told

    def _tell(self, state: int, event: int, then: int) -> Told:
        programs, actor = self.programs, event // ACTS
        node, after = (each >> self._shifts[actor] & FIELD for each in (state, then))
        act, message, name = Act(event % ACTS), programs.message(node), self.scope.actors[actor].name
        if act is Act.CRASH:
            return Told(name, act, message)
        if act is Act.ACKNOWLEDGE:
            again = programs.places[after].message == programs.places[node].message
            return Told(name, act, message, ending=programs.places[node].ending, again=again)
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


def _path(parents: Sequence[int], events: Sequence[int], place: int) -> Iterator[int]:
    """Answer the events from the start to the state at `place`."""
    path = []
    while place > 0:
        path.append(events[place])
        place = parents[place]
    return reversed(path)
