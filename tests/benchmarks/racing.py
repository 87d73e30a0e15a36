"""Racing: contestants take turns, round after round, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter

from attrs import frozen

__all__ = ["Contestant", "Race", "Standing", "race"]


@frozen
class Contestant:
    """One way to do the work.

    Attributes:
        name: what it is called.
        run: does the work once.
        prepare: makes everything ready for the next run, not timed; what it answers is given to `run`.
        operations: how many operations it does, where it does another number than the others.
    """

    name: str
    run: Callable[[object], object]
    prepare: Callable[[], object] = lambda: None
    operations: int | None = None


@frozen
class Standing:
    """How a contestant did.

    Attributes:
        name: the contestant.
        microseconds: the median time of one operation.
        ratio: the median, over the rounds, of the floor's time in that round to this one's.
    """

    name: str
    microseconds: float
    ratio: float


@frozen
class Race:
    """A race's result, the floor first."""

    title: str
    operations: int
    rounds: int
    standings: Sequence[Standing]


def race(title: str, operations: int, contestants: Sequence[Contestant], *, rounds: int = 21) -> Race:
    """Let the contestants, the floor first among them, do `operations` operations each, `rounds` times in turn."""
    times: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    for number in range(rounds + 1):
        turn = number % len(contestants)
        for contestant in (*contestants[turn:], *contestants[:turn]):
            ready = contestant.prepare()
            gc.collect()
            began = perf_counter()
            contestant.run(ready)
            took = perf_counter() - began
            if number:  # the first round warms caches up
                times[contestant.name].append(took / (contestant.operations or operations))
    floor = times[contestants[0].name]
    return Race(
        title,
        operations,
        rounds,
        [
            Standing(
                name,
                median(taken) * 1e6,
                median(best / ours for best, ours in zip(floor, taken, strict=True)),
            )
            for name, taken in times.items()
        ],
    )
