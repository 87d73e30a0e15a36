"""The search: every state that the actors of a scope can reach, each once, nearest first.

So the schedule that is told of a broken promise is the shortest there is.
"""

from __future__ import annotations

from array import array
from time import perf_counter
from typing import TYPE_CHECKING

from attrs import frozen

from batchstate.testing.explorer.graph import Graph
from batchstate.testing.explorer.promises import PROMISES, Promises

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.testing.explorer.actors import Scope
    from batchstate.testing.explorer.stores import Rewindable

__all__ = ["Explored", "TooManyStatesError", "explore"]


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
        Violation: a promise is broken, an actor got an error that is not documented, a listing
            missed a batch, or all cannot become quiet any more, because a message comes again for
            ever. It tells the shortest schedule.
        TooManyStatesError: there are more than `most` states.
    """
    search = _Search(Graph(scope, make_store(), promises), most)
    began = perf_counter()
    search.visit()
    search.come_to_rest()
    return Explored(
        scope.title,
        len(search.order),
        len(search.targets),
        len(search.graph.stores),
        search.ends.count(1),
        perf_counter() - began,
    )


class _Search:
    """The states in the order in which they were found, and the steps between them by their places in it."""

    def __init__(self, graph: Graph, most: int) -> None:
        self.graph = graph
        self.order = [graph.start]
        self.ends = bytearray()
        """Whether all is quiet in the state of that place."""
        self.targets = array("L")
        """The places that steps lead to, those from the first state first."""
        self._firsts = array("L", [0])
        """Where the steps from the state of that place begin in `targets`."""
        self._parents, self._events = array("l", [-1]), array("H", [0])
        self._most = most

    def visit(self) -> None:
        """Find every state, and hold the promises against it."""
        graph, order, targets = self.graph, self.order, self.targets
        places = {graph.start: 0}
        if broken := graph.problem_at_start():
            raise graph.violation(broken, [])
        for place, state in enumerate(order):  # it grows while it is gone through
            following = graph.successors(state)
            self.ends.append(not following and graph.at_rest(state))
            for event, step in following:
                found = places.get(step)
                if found is None:
                    if broken := graph.problem(state, event, step):
                        raise graph.violation(broken, [*self._path(place), event])
                    found = places[step] = len(order)
                    order.append(step)
                    self._parents.append(place)
                    self._events.append(event)
                targets.append(found)
            self._firsts.append(len(targets))
            if len(order) > self._most:
                msg = f"{graph.scope.title}: more than {self._most:,} states"
                raise TooManyStatesError(msg)

    def come_to_rest(self) -> None:
        """Check that from every state all can become quiet; raises `Violation` for the nearest from which it cannot."""
        hopeful = bytearray(self.ends)
        firsts, targets = self._firsts, self.targets
        known = -1
        while known != (known := hopeful.count(1)):
            for place in range(len(hopeful) - 1, -1, -1):  # most steps lead to later places, so one round does most
                if not hopeful[place]:
                    for target in targets[firsts[place] : firsts[place + 1]]:
                        if hopeful[target]:
                            hopeful[place] = 1
                            break
        hopeless = hopeful.find(0)
        if hopeless >= 0:
            waiting = ", ".join(self.graph.unfinished(self.order[hopeless]))
            msg = f"all cannot become quiet any more: {waiting} does not come to an end"
            raise self.graph.violation(msg, self._path(hopeless))

    def _path(self, place: int) -> list[int]:
        """Answer the events from the start to the state at `place`."""
        path = []
        while place > 0:
            path.append(self._events[place])
            place = self._parents[place]
        return path[::-1]
