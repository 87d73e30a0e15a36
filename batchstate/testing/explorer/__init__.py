"""The explorer: runs the package's own functions in every interleaving, and holds the promises against each state.

    scope = Scope(
        "two workers on a line",
        lifecycle,
        (
            Actor("worker-1", (move("b", "B", 1, lifecycle),), crashes=1, sees=ThreeSteps),
            Actor("worker-2", (move("b", "C", 2, lifecycle),), crashes=1, sees=ThreeSteps),
        ),
        existing=(Batch("b", "q", "A", request_ids=("r",)),),
    )
    print(explore(scope, lambda: MemoryStorage("q")))

An actor stops before each primitive call. Before and after any call it may crash, and then its
message comes again; a write of it may be sent twice, or its reply be lost. Every order in which the
actors' calls can fall is tried, and a state that was seen before is not looked into again: a state
is what the store holds and how far each actor has come with the answers it got. Marks and the clock
are the same in every run.

`explore` needs a store that can go back to what it was, such as the memory adapter's. What other
stores do in the same interleavings is seen by `replay`, with the schedules of `interleavings`;
`ExplorerContract` does that for an adapter.
"""

from batchstate.testing.explorer.actors import CLOCK, Actor, Message, Scope, fused
from batchstate.testing.explorer.graph import Graph
from batchstate.testing.explorer.interleavings import Interleavings, interleavings
from batchstate.testing.explorer.messages import (
    creation,
    iteration,
    listing,
    move,
    pick_up,
    purging,
    reconciling,
    retirement,
)
from batchstate.testing.explorer.promises import (
    PROMISES,
    Promise,
    Promises,
    StepPromise,
    no_record_of_retired,
    nothing_is_left,
)
from batchstate.testing.explorer.replaying import replay
from batchstate.testing.explorer.schedules import Act, Schedule, Turn, Violation
from batchstate.testing.explorer.scopes import CYCLE, LINE, TWO_ACTORS
from batchstate.testing.explorer.search import Explored, TooManyStatesError, explore
from batchstate.testing.explorer.stores import Frozen, Rewindable
from batchstate.testing.explorer.watching import Watch
from batchstate.testing.explorer.world import World

__all__ = [
    "CLOCK",
    "CYCLE",
    "LINE",
    "PROMISES",
    "TWO_ACTORS",
    "Act",
    "Actor",
    "Explored",
    "Frozen",
    "Graph",
    "Interleavings",
    "Message",
    "Promise",
    "Promises",
    "Rewindable",
    "Schedule",
    "Scope",
    "StepPromise",
    "TooManyStatesError",
    "Turn",
    "Violation",
    "Watch",
    "World",
    "creation",
    "explore",
    "fused",
    "interleavings",
    "iteration",
    "listing",
    "move",
    "no_record_of_retired",
    "nothing_is_left",
    "pick_up",
    "purging",
    "reconciling",
    "replay",
    "retirement",
]
