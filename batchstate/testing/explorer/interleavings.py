"""The interleavings of a scope as schedules: how many there are, all of them, or a fair sample."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from batchstate.testing.explorer.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batchstate.testing.explorer.actors import Scope
    from batchstate.testing.explorer.schedules import Schedule
    from batchstate.testing.explorer.stores import Rewindable

__all__ = ["Interleavings", "interleavings"]


def interleavings(
    scope: Scope, make_store: Callable[[], Rewindable], *, sample: int | None = None, seed: int = 0
) -> list[Schedule]:
    """Answer schedules of a scope, each from the start until all is quiet, to be replayed on another store.

    Args:
        scope: a small one: two actors with a message or two each.
        make_store: makes an empty storage that can go back to what it was, such as
            `MemoryStorage`, on which the schedules are worked out.
        sample: how many to draw at most, each as likely as any other; `None` for all.
        seed: of the draw.

    Returns:
        Different schedules, in a fixed order.
    """
    found = Interleavings(Graph(scope, make_store()))
    if sample is None or sample >= found.total:
        return list(found)
    return found.sample(sample, seed)


class Interleavings:
    """The ways through the states of a scope, numbered. A message that comes again where nothing changed is left out.

    Args:
        graph: the states.

    Attributes:
        total: how many ways there are.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._steps: dict[int, list[tuple[int, int]]] = {}
        self._ways: dict[int, int] = {}
        self._count()
        self.total = self._ways[graph.start]

    def __iter__(self) -> Iterator[Schedule]:
        return (self[number] for number in range(self.total))

    def __getitem__(self, number: int) -> Schedule:
        """Answer the schedule of this number, from 0 to `total`."""
        if not 0 <= number < self.total:
            msg = f"there are {self.total} interleavings, and none has number {number}"
            raise IndexError(msg)
        state, rest, events = self._graph.start, number, list[int]()
        while self._steps[state]:
            for event, step in self._steps[state]:
                if rest < self._ways[step]:
                    events.append(event)
                    state = step
                    break
                rest -= self._ways[step]
        return self._graph.schedule(events)

    def sample(self, size: int, seed: int) -> list[Schedule]:
        """Draw so many different schedules, each as likely as any other."""
        draw = Random(seed)  # noqa: S311 - reproducible randomness is wanted here
        numbers: set[int] = set()
        while len(numbers) < min(size, self.total):
            numbers.add(draw.randrange(self.total))
        return [self[number] for number in sorted(numbers)]

    def _count(self) -> None:
        """Count the ways from every state to an end, and keep the steps without those that lead round in a circle."""
        graph, steps, ways = self._graph, self._steps, self._ways
        on_path = {graph.start}
        stack = [(graph.start, iter(graph.successors(graph.start)))]
        steps[graph.start] = []
        while stack:
            state, following = stack[-1]
            for event, step in following:
                if step in on_path:
                    continue
                steps[state].append((event, step))
                if step not in steps:
                    steps[step] = []
                    on_path.add(step)
                    stack.append((step, iter(graph.successors(step))))
                    break
            else:
                stack.pop()
                on_path.remove(state)
                ways[state] = sum(ways[step] for _, step in steps[state]) or int(graph.at_rest(state))
                steps[state] = [(event, step) for event, step in steps[state] if ways[step]]
