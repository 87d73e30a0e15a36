"""Where the states and the lines of a lifecycle's picture stand.

The method is the layered one of Sugiyama, Tagawa and Toda (1981): columns by longest way, an order
in each column with few crossings, then heights that keep lines straight. Two things are our own.
Lines to the same state share one lane through the columns between, and the main line (from each
state to the next declared one) stays level.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise

from attrs import define, field, frozen

__all__ = ["Box", "Layout", "Line", "shortened"]

Item = tuple[str, str]  # what stands in a column: ("state" | "lane" | "back", name)
Link = tuple[Item, Item, bool]  # left item, right item, whether the move goes back

_SIGN = 8.3  # the usual width of a sign, in pixels
_LONGEST = 26  # a name wider than this many signs is cut
_COLUMN_GAP = 66
_SWEEPS = 12
_PASSES = 24
_PINNED = 1e6  # the weight that keeps the main line level


@frozen
class Box:
    """A state's place, in pixels.

    Attributes:
        state: Its name.
        label: The name as it is shown, shortened where it is long.
        x: The left edge.
        y: The middle.
        width: From the left to the right edge.
        height: From the upper to the lower edge.
    """

    state: str
    label: str
    x: float
    y: float
    width: float
    height: float


@frozen
class Line:
    """A piece of one or more moves, from left to right, in pixels.

    Attributes:
        points: Places that the line passes level.
        back: Whether the moves go from the right to the left.
        arrow: Whether they arrive at the end of this piece.
    """

    points: tuple[tuple[float, float], ...]
    back: bool
    arrow: bool


@frozen
class Layout:
    """The whole picture, without its margins.

    Attributes:
        boxes: The states.
        lines: The moves.
        top: The upper edge of the uppermost thing.
        bottom: The lower edge of the lowest thing.
        width: From 0 to the rightmost edge.
    """

    boxes: Sequence[Box]
    lines: Sequence[Line]
    top: float
    bottom: float
    width: float

    @classmethod
    def of(
        cls,
        order: Sequence[str],
        moves: Sequence[tuple[str, str]],
        *,
        notes: Mapping[str, str],
        counts: Mapping[str, int] | None,
    ) -> Layout:
        """Lay a lifecycle out.

        Args:
            order: The states, old before new.
            moves: The allowed moves.
            notes: What is to be said below the name of some states.
            counts: The number to show below each name, or `None` for no numbers.

        Returns:
            The places.
        """
        plan = _Plan.of(order, moves)
        _untangle(plan)
        numbers = {state: f"{(counts or {}).get(state, 0):,}" for state in order}
        sizes = {
            state: _size(state, notes.get(state, ""), numbers[state] if counts is not None else "") for state in order
        }
        return _placed(plan, sizes, _heights(plan, sizes))


def shortened(name: str) -> str:
    """Return a name as a box shows it: cut where it is wider than the widest box."""
    if _columns(name) <= _LONGEST:
        return name
    kept = ""
    for sign in name:
        if _columns(kept + sign) >= _LONGEST:
            break
        kept += sign
    return kept + "\u2026"


def _columns(text: str) -> int:
    """Return how many signs wide a text is: combining marks are none, East Asian ones two."""
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def _size(state: str, note: str, number: str) -> tuple[float, float]:
    """Return the width and height of a state's box."""
    signs = max(_columns(shortened(state)), _columns(note) * 0.78, len(number) * 1.2)
    return max(signs * _SIGN + 28, 76.0), 38.0 + 18 * bool(number) + 15 * bool(note)


@define
class _Plan:
    """Which items stand in which column, in which order, and what links them."""

    columns: list[list[Item]]
    links: list[list[Link]]  # between each column and the next
    main: frozenset[Item]  # the items of the main line
    place: dict[tuple[int, Item], int] = field(factory=dict)

    @classmethod
    def of(cls, order: Sequence[str], moves: Sequence[tuple[str, str]]) -> _Plan:
        rank = {state: i for i, state in enumerate(order)}
        column = _columns_of(order, moves)
        last = max(column.values())
        plan = cls([[] for _ in range(last + 1)], [[] for _ in range(last)], frozenset())
        # The main line comes first, so that it begins on top.
        main: dict[Item, None] = {}
        at = order[0]
        while ahead := [to for source, to in moves if source == at and rank[to] > rank[at]]:
            main.update(dict.fromkeys(plan.way(at, ahead[0], column)))
            at = ahead[0]
        main.update({("state", order[0]): None})
        plan.main = frozenset(main)
        for state in order:
            plan.add(column[state], ("state", state))
        for source, to in sorted(moves, key=lambda move: (rank[move[0]], rank[move[1]])):
            plan.way(source, to, column)
        for number, items in enumerate(plan.columns):
            items.sort(key=lambda item: item not in main)
            plan.renumber(number)
        return plan

    def add(self, column: int, item: Item) -> None:
        if item not in self.columns[column]:
            self.columns[column].append(item)

    def way(self, source: str, to: str, column: Mapping[str, int]) -> list[Item]:
        """Add a move: the lane that it runs through and the links on its way."""
        back = column[to] < column[source]
        left, right = (to, source) if back else (source, to)
        lane: Item = ("back" if back else "lane", to)
        first, last = column[left], column[right]
        items: list[Item] = [("state", left), *[lane] * (last - first - 1), ("state", right)]
        for number, item in enumerate(items, first):
            self.add(number, item)
        for number, (a, b) in enumerate(pairwise(items), first):
            if (a, b, back) not in self.links[number]:
                self.links[number].append((a, b, back))
        return items

    def renumber(self, column: int) -> None:
        for position, item in enumerate(self.columns[column]):
            self.place[column, item] = position

    def neighbours(self, column: int) -> dict[Item, list[tuple[int, Item]]]:
        """Return, for each item of a column, the items it is linked with on either side."""
        found: dict[Item, list[tuple[int, Item]]] = {item: [] for item in self.columns[column]}
        if column > 0:
            for a, b, _ in self.links[column - 1]:
                found[b].append((column - 1, a))
        if column < len(self.links):
            for a, b, _ in self.links[column]:
                found[a].append((column + 1, b))
        return found

    def crossings(self, gap: int) -> int:
        """Count what crosses between a column and the next; the main line counts threefold."""
        ends = [
            (
                self.place[gap, a],
                self.place[gap + 1, b],
                3 if a in self.main and b in self.main else 1,
            )
            for a, b, _ in self.links[gap]
        ]
        return sum(
            one[2] * two[2]
            for i, one in enumerate(ends)
            for two in ends[:i]
            if (one[0] - two[0]) * (one[1] - two[1]) < 0
        )

    def crossings_at(self, column: int) -> int:
        """Count the crossings on both sides of a column."""
        return sum(self.crossings(gap) for gap in (column - 1, column) if 0 <= gap < len(self.links))

    def tangle(self) -> int:
        """Count all crossings."""
        return sum(self.crossings(gap) for gap in range(len(self.links)))


def _columns_of(order: Sequence[str], moves: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Give each state the column of its longest way; what no move touches stands in the last."""
    rank = {state: i for i, state in enumerate(order)}
    column = dict.fromkeys(order, 0)
    forward = [sorted(move, key=rank.__getitem__) for move in moves]
    for source, to in sorted(forward, key=lambda move: rank[move[0]]):
        column[to] = max(column[to], column[source] + 1)
    touched = {order[0], *(state for move in moves for state in move)}
    last = max(1, *column.values())
    return {state: column[state] if state in touched else last for state in order}


def _untangle(plan: _Plan) -> None:
    """Order the columns so that few lines cross; the best of several beginnings is kept."""
    best: tuple[int, list[list[Item]]] | None = None
    for beginning in range(4):
        for number, items in enumerate(plan.columns):
            if beginning:
                aside = [item for item in items if item not in plan.main]
                on_main = [item for item in items if item in plan.main]
                cut = (0, len(aside), (len(aside) + 1) // 2, len(aside) // 2)[beginning]
                plan.columns[number] = aside[:cut] + on_main + aside[cut:]
            plan.renumber(number)
        seen: list[list[list[Item]]] = []
        for _ in range(_SWEEPS):
            _sweep(plan)
            _swap(plan)
            now = [list(items) for items in plan.columns]
            found = plan.tangle()
            if best is None or found < best[0]:
                best = (found, now)
            if now in seen:
                break
            seen.append(now)
    if best is not None:
        plan.columns = best[1]
    for number in range(len(plan.columns)):
        plan.renumber(number)


def _sweep(plan: _Plan) -> None:
    """Order each column by the mean place of its neighbours, there and back."""
    count = len(plan.columns)
    for number in [*range(count), *reversed(range(count))]:
        near = plan.neighbours(number)

        def middle(item: Item, near: dict[Item, list[tuple[int, Item]]] = near) -> float:
            places = [plan.place[key] / len(plan.columns[key[0]]) for key in near[item]]
            return sum(places) / len(places) if places else 1.0

        plan.columns[number].sort(key=middle)
        plan.renumber(number)


def _swap(plan: _Plan) -> None:
    """Swap neighbours in a column as long as that saves crossings."""
    for _ in range(_SWEEPS):
        better = False
        for number, items in enumerate(plan.columns):
            for i in range(len(items) - 1):
                before = plan.crossings_at(number)
                items[i], items[i + 1] = items[i + 1], items[i]
                plan.renumber(number)
                if plan.crossings_at(number) < before:
                    better = True
                else:
                    items[i], items[i + 1] = items[i + 1], items[i]
                    plan.renumber(number)
        if not better:
            return


def _heights(plan: _Plan, sizes: Mapping[str, tuple[float, float]]) -> dict[tuple[int, Item], float]:
    """Give each item its height: near its neighbours, apart from the next, the main line at 0."""
    half = {item: sizes[item[1]][1] / 2 if item[0] == "state" else 2.0 for items in plan.columns for item in items}
    y: dict[tuple[int, Item], float] = {}
    for number, items in enumerate(plan.columns):
        pivot = next((i for i, item in enumerate(items) if item in plan.main), 0)
        offsets = _offsets(items, half)
        for item, offset in zip(items, offsets, strict=True):
            y[number, item] = offset - offsets[pivot]
    count = len(plan.columns)
    for step in range(_PASSES):
        for number in range(count) if step % 2 == 0 else reversed(range(count)):
            _settle_column(plan, number, y, half)
    return y


def _offsets(items: Sequence[Item], half: Mapping[Item, float]) -> list[float]:
    """Return how far below the first each item stands when all stand as close as they may."""
    offsets = [0.0]
    for a, b in pairwise(items):
        boxes = (a[0] == "state") + (b[0] == "state")
        offsets.append(offsets[-1] + half[a] + half[b] + (14, 18, 22)[boxes])
    return offsets


def _settle_column(plan: _Plan, number: int, y: dict[tuple[int, Item], float], half: Mapping[Item, float]) -> None:
    """Move the items of a column as near to their neighbours as their order and size allow.

    Least squares under a least distance is isotonic regression of what is left when the distances
    are taken off; pooling adjacent violators solves it exactly (Ayer and others, 1955).
    """
    items = plan.columns[number]
    near = plan.neighbours(number)
    offsets = _offsets(items, half)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many items
    for item, offset in zip(items, offsets, strict=True):
        keys = near[item]
        wanted = sum(y[key] for key in keys) / len(keys) if keys else y[number, item]
        weight = float(len(keys) or 1)
        if item in plan.main:
            wanted, weight = 0.0, _PINNED
        pool = (wanted - offset, weight, 1)
        while pools and pools[-1][0] >= pool[0]:
            mean, heavy, many = pools.pop()
            total = heavy + pool[1]
            pool = ((mean * heavy + pool[0] * pool[1]) / total, total, many + pool[2])
        pools.append(pool)
    means = [mean for mean, _, many in pools for _ in range(many)]
    drift = next((means[i] + offsets[i] for i, item in enumerate(items) if item in plan.main), 0.0)
    for item, mean, offset in zip(items, means, offsets, strict=True):
        y[number, item] = mean + offset - drift


def _placed(
    plan: _Plan,
    sizes: Mapping[str, tuple[float, float]],
    y: Mapping[tuple[int, Item], float],
) -> Layout:
    """Turn columns and heights into boxes and lines."""
    left = 0.0
    edges: list[tuple[float, float]] = []
    boxes: dict[Item, Box] = {}
    for number, items in enumerate(plan.columns):
        width = max((sizes[name][0] for kind, name in items if kind == "state"), default=0.0)
        edges.append((left, left + width))
        for item in items:
            if item[0] == "state":
                height = sizes[item[1]][1]
                boxes[item] = Box(item[1], shortened(item[1]), left, y[number, item], width, height)
        left += width + _COLUMN_GAP
    lines: list[Line] = []
    for gap, links in enumerate(plan.links):
        for a, b, back in links:
            y_a, y_b = y[gap, a], y[gap + 1, b]
            points = [(edges[gap][1], y_a), (edges[gap + 1][0], y_b)]
            if a not in boxes:
                points.insert(0, (edges[gap][0], y_a))
            elif back:
                points[0] = (edges[gap][1], _port(boxes[a], y_b - y_a))
            if b in boxes and back:
                # Between two boxes both ends shift to one side, so that the way back runs beside
                # the way there.
                side = y_b - y_a if a in boxes else y_a - y_b
                points[-1] = (edges[gap + 1][0], _port(boxes[b], side))
            lines.append(Line(tuple(points), back, arrow=(a if back else b) in boxes))
    tops = [box.y - box.height / 2 for box in boxes.values()]
    bottoms = [box.y + box.height / 2 for box in boxes.values()]
    heights = list(y.values())
    return Layout(
        list(boxes.values()),
        lines,
        min(*tops, *heights),
        max(*bottoms, *heights),
        left - _COLUMN_GAP,
    )


def _port(box: Box, side: float) -> float:
    """Return the height at which a move back meets a box: off the middle, to the given side."""
    return box.y + (box.height / 4 if side > -1 else -box.height / 4)
