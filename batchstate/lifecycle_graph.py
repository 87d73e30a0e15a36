"""What follows what in a lifecycle: tables made once, so that each question is a look-up."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Graph"]


@frozen
class Graph:
    """The answers about one directed graph whose nodes are names.

    Attributes:
        after: For each node, every node that one or more edges lead to. A node is in its own
            set only if it lies on a cycle.
        before: The same backwards: every node from which one or more edges lead here.
        loop: For each node, the number of its strongly connected component, which is the
            position of the first declared node in it.
        rank: For each node, its place in the reading order: the components in topological
            order, the earliest declared first where several could be next, and declaration
            order inside a component.
    """

    after: Mapping[str, frozenset[str]]
    before: Mapping[str, frozenset[str]]
    loop: Mapping[str, int]
    rank: Mapping[str, int]

    @classmethod
    def of(cls, nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> Graph:
        """Make the tables.

        Args:
            nodes: The nodes in declaration order, each once.
            edges: Pairs of nodes, in any order, repeated or not.

        Returns:
            The graph with all its tables.
        """
        index = {node: place for place, node in enumerate(nodes)}
        direct = [0] * len(nodes)
        for source, to in edges:
            direct[index[source]] |= 1 << index[to]
        forward = _closure(direct)
        backward = _transposed(forward)
        loops = [_lowest(forward[i] & backward[i] | 1 << i) for i in range(len(nodes))]
        order = _reading_order(direct, loops)

        def names(mask: int) -> frozenset[str]:
            return frozenset(nodes[place] for place in _places(mask))

        return cls(
            after={node: names(forward[i]) for i, node in enumerate(nodes)},
            before={node: names(backward[i]) for i, node in enumerate(nodes)},
            loop={node: loops[i] for i, node in enumerate(nodes)},
            rank={nodes[i]: place for place, i in enumerate(order)},
        )


def _places(mask: int) -> list[int]:
    """Return the positions of the bits that are set, lowest first."""
    places = []
    while mask:
        places.append(_lowest(mask))
        mask &= mask - 1
    return places


def _lowest(mask: int) -> int:
    """Return the position of the lowest bit that is set."""
    return (mask & -mask).bit_length() - 1


def _closure(direct: Sequence[int]) -> list[int]:
    """Return, for each node, the set of all nodes one or more edges away (Warshall, 1962)."""
    reach = list(direct)
    for middle, bit in enumerate(1 << i for i in range(len(reach))):
        further = reach[middle]
        for start, mask in enumerate(reach):
            if mask & bit:
                reach[start] = mask | further
    return reach


def _transposed(masks: Sequence[int]) -> list[int]:
    """Turn the arrows round: bit j of row i becomes bit i of row j."""
    turned = [0] * len(masks)
    for row, mask in enumerate(masks):
        for column in _places(mask):
            turned[column] |= 1 << row
    return turned


def _reading_order(direct: Sequence[int], loops: Sequence[int]) -> list[int]:
    """Return the nodes old before new (Kahn, 1962, over components, earliest declared first)."""
    members: dict[int, list[int]] = {}
    for node, loop in enumerate(loops):
        members.setdefault(loop, []).append(node)
    following: dict[int, set[int]] = {
        loop: {loops[to] for node in nodes for to in _places(direct[node])} - {loop} for loop, nodes in members.items()
    }
    waits_for = dict.fromkeys(members, 0)
    for later in following.values():
        for loop in later:
            waits_for[loop] += 1
    free = [loop for loop, count in waits_for.items() if not count]
    heapq.heapify(free)
    order: list[int] = []
    while free:
        loop = heapq.heappop(free)
        order.extend(members[loop])
        for later_loop in following[loop]:
            waits_for[later_loop] -= 1
            if not waits_for[later_loop]:
                heapq.heappush(free, later_loop)
    return order
