"""The explorer's schedules replayed on an adapter: two actors in many orders, with crashes and lost replies."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar, cast

import pytest

from batchstate.storage import AtomicMoves
from batchstate.testing.explorer import (
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
from batchstate.three_steps import ThreeSteps
from batchstate.urls import open_storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.storage import Storage
    from batchstate.testing.explorer.actors import Scope
    from batchstate.testing.explorer.scopes import Sees
    from batchstate.testing.harness import Harness

__all__ = ["ExplorerContract"]

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

    Attributes:
        schedules: how many schedules of each scope are drawn; the same in every run.
    """

    schedules: ClassVar[int] = 25

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
        for number, schedule in enumerate(_schedules(make, way, self.schedules)):
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
