"""What the model tests are about: a batch, the messages that move it, and the actors that are handed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.entities import Batch
from batchstate.lifecycle import Lifecycle
from batchstate.testing.explorer import (
    CYCLE,
    LINE,
    PROMISES,
    Actor,
    Message,
    fused,
    move,
    no_record_of_retired,
    nothing_is_left,
    pick_up,
    reconciling,
)
from batchstate.three_steps import ThreeSteps
from batchstate_memory import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.storage import Storage

LONG_LINE = Lifecycle.parse("A > B > C > D")

BATCH = Batch("b", "q", "A", request_ids=("r",))
IN_B = Batch("b", "q", "B", request_ids=("r",))
IN_C = Batch("b", "q", "C", request_ids=("r",))

# The first three moves round the cycle, each for one visit of the batch to its state.
THERE, BACK, THERE_AGAIN = (move("b", to, entered, CYCLE) for to, entered in (("B", 1), ("A", 2), ("B", 3)))
# The same moves for any visit, as a worker makes them that looks for work by state.
ANY_THERE, ANY_BACK = pick_up("b", "A", "B", CYCLE), pick_up("b", "B", "A", CYCLE)
# The moves along the line.
TO_B, TO_C = move("b", "B", 1, LINE), move("b", "C", 2, LINE)

WAYS = ("three-step", "fused", "mixed")

SEES_ROWS = PROMISES.also(at_rest=(no_record_of_retired,))
"""What holds besides where a put sees the row."""

PURGED = PROMISES.also(at_rest=(no_record_of_retired, nothing_is_left))
"""What holds besides where everything that was retired is purged in the end."""


def memory() -> MemoryStorage:
    """Make an empty store whose put sees the row."""
    return MemoryStorage("q")


def worker(
    number: int,
    *messages: Message,
    way: str = "three-step",
    crashes: int = 1,
    resends: int = 0,
    lost_replies: int = 0,
) -> Actor:
    """Hire a worker; where ways are mixed, every second one moves batches in one step."""
    whole = way == "fused" or (way == "mixed" and number % 2 == 1)
    return Actor(f"worker-{number}", messages, crashes, resends, lost_replies, sees=fused if whole else ThreeSteps)


def tidier(lifecycle: Lifecycle = CYCLE, *, crashes: int = 0) -> Actor:
    """Hire one that reconciles once."""
    return Actor("tidier", (reconciling(lifecycle),), crashes, sees=ThreeSteps)


def reader(message: Message, *, sees: Callable[[Storage], Storage] = ThreeSteps) -> Actor:
    """Hire one that lists once."""
    return Actor("reader", (message,), sees=sees)
