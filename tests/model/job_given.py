"""What the model tests of jobs begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.testing.explorer import CLOCK
from batchstate.testing.explorer.job_messages import JobsAtStart
from batchstate_memory import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable


def store_with(*, ceiling: int | None = None, held: int = 1, max_attempts: int = 9) -> Callable[[], MemoryStorage]:
    """Answer what makes a store with two jobs of one group, some of them held by the claim `c-0`."""

    def make() -> MemoryStorage:
        store = MemoryStorage("q", clock=CLOCK)
        JobsAtStart(ceiling, held, max_attempts).put_into(store)
        return store

    return make
