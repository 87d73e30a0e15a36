"""The explorer's schedules replayed on an adapter: two actors in many orders, with crashes and lost replies."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

import pytest

from batchstate.storage import AtomicMoves
from batchstate.testing.explorer import (
    CLOCK,
    PROMISES,
    TWO_ACTORS,
    Rewindable,
    Schedule,
    fused,
    interleavings,
    no_record_of_retired,
    nothing_is_left,
    replay,
)
from batchstate.testing.explorer.job_scopes import TWO_ACTORS_ON_JOBS, JobScope
from batchstate.testing.soundness import leaves
from batchstate.three_steps import ThreeSteps
from batchstate.urls import open_storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.storage import Storage
    from batchstate.testing.explorer.actors import Scope
    from batchstate.testing.explorer.scopes import Sees
    from batchstate.testing.harness import Harness

__all__ = ["ExplorerContract", "JobExplorerContract"]

WAYS: dict[str, tuple[Sees, Sees]] = {
    "fused": (fused, fused),
    "three-step": (ThreeSteps, ThreeSteps),
    "mixed": (fused, ThreeSteps),
}
"""How the two actors see the store."""


class ExplorerContract:
    """The promises of the lifecycle half, in interleavings that the explorer worked out, on a real store.

    Inherit it in a class whose name begins with `Test` and give the fixture `harness`, as for
    `StorageContract`. Every schedule is replayed in a queue of its own, step by step from one
    thread, and the promises are held against the store after every write.
    """

    @leaves("stale record", "record of a retired batch")  # nobody tidies up after the crashes
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("make", TWO_ACTORS, ids=lambda make: make.__name__)
    def test_promises_hold_in_every_interleaving(
        self, make: Callable[[str, Sees, Sees], Scope], way: str, harness: Harness
    ) -> None:
        """Two actors, in a fair sample of all orders of their calls and of what may go wrong for them."""
        if way != "three-step" and AtomicMoves not in harness.capabilities:
            pytest.skip("it makes no move in one step")
        promises = PROMISES
        if harness.sees_rows:
            promises = promises.also(at_rest=(no_record_of_retired, nothing_is_left))
        first, second = WAYS[way]
        for number, schedule in enumerate(_schedules(make, way, harness.schedules)):
            queue = f"{make.__name__}-{way}-{number}"
            store: Storage = harness.open(queue)
            try:
                replay(schedule, make(queue, first, second), store, promises)
            finally:
                store.close()


@cache
def _schedules(make: Callable[[str, Sees, Sees], Scope], way: str, size: int) -> list[Schedule]:
    """Draw schedules of a scope; they are worked out on the memory adapter."""

    def memory() -> Rewindable:
        return cast("Rewindable", open_storage("memory://", queue="q"))

    return interleavings(make("q", *WAYS[way]), memory, sample=size)


class JobExplorerContract:
    """The promises of the claim half, in interleavings that the explorer worked out, on a real store that keeps jobs.

    Used as `ExplorerContract` is, for a harness whose storages are job storages.
    """

    @pytest.mark.parametrize("given", TWO_ACTORS_ON_JOBS, ids=lambda given: given.scope.title.removeprefix("jobs: "))
    def test_promises_of_jobs_hold_in_every_interleaving(self, given: JobScope, harness: Harness) -> None:
        """Two actors claim, settle, sweep, remove or revive, in a fair sample of all orders of their calls."""
        for number, schedule in enumerate(_job_schedules(given, harness.schedules)):
            store = harness.open(f"{given.scope.title.replace(' ', '-')}-{number}")
            try:
                given.start.put_into(store)
                replay(schedule, given.scope, store, given.promises)
            finally:
                store.close()


@cache
def _job_schedules(given: JobScope, size: int) -> list[Schedule]:
    """Draw schedules of a scope; they are worked out on the memory adapter."""

    def memory() -> Rewindable:
        store = open_storage("memory://", queue="q", clock=CLOCK)
        given.start.put_into(store)
        return cast("Rewindable", store)

    return interleavings(given.scope, memory, sample=size)
