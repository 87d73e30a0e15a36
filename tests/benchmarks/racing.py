"""Racing: contestants take turns, round after round, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter, process_time

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
        cpu_ratio: the same of the processor's time, which says more where the machine has other things to do.
    """

    name: str
    microseconds: float
    ratio: float
    cpu_ratio: float


@frozen
class Race:
    """A race's result, the floor first."""

    title: str
    operations: int
    rounds: int
    standings: Sequence[Standing]


def race(
    title: str,
    operations: int,
    contestants: Sequence[Contestant],
    *,
    rounds: int = 21,
    cpu: Callable[[], float] = process_time,
) -> Race:
    """Let the contestants, the floor first among them, do `operations` operations each, `rounds` times in turn.

    `cpu` answers how many seconds of the processor's time were used so far: by this process, and by a server that can
    tell.
    """
    times: dict[str, list[tuple[float, float]]] = {contestant.name: [] for contestant in contestants}
    for number in range(rounds + 1):
        turn = number % len(contestants)
        for contestant in (*contestants[turn:], *contestants[:turn]):
            ready = contestant.prepare()
            gc.collect()
            used, began = cpu(), perf_counter()
            contestant.run(ready)
            took, used = perf_counter() - began, cpu() - used
            if number:  # the first round warms caches up
                done = contestant.operations or operations
                times[contestant.name].append((took / done, used / done))
    floor = times[contestants[0].name]
    return Race(
        title,
        operations,
        rounds,
        [
            Standing(
                name,
                median(took for took, _ in taken) * 1e6,
                median(best / ours for (best, _), (ours, _) in zip(floor, taken, strict=True)),
                median(best / ours for (_, best), (_, ours) in zip(floor, taken, strict=True)),
            )
            for name, taken in times.items()
        ],
    )
