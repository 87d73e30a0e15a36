"""Scopes of two actors, small enough to replay on any store."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from batchstate.entities import Batch
from batchstate.lifecycle import Lifecycle
from batchstate.testing.explorer.actors import Actor, Scope
from batchstate.testing.explorer.messages import creation, listing, move, purging, reconciling, retirement

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.storage import Storage

__all__ = ["CYCLE", "LINE", "TWO_ACTORS", "Sees"]

LINE = Lifecycle.parse("A > B > C")
CYCLE = Lifecycle.parse("A > B > A; B > C")

Sees: TypeAlias = "Callable[[Storage], Storage]"


def _new(queue: str, state: str = "A") -> Batch:
    return Batch("b", queue, state, request_ids=("r-1", "r-2"))


def two_workers_on_a_line(queue: str, first: Sees, second: Sees) -> Scope:
    """One moves A → B and dies once, the other B → C, and its message may be early."""
    return Scope(
        "two workers on a line",
        LINE,
        (
            Actor("worker-1", (move("b", "B", 1, LINE),), crashes=1, sees=first),
            Actor("worker-2", (move("b", "C", 2, LINE),), sees=second),
        ),
        (_new(queue),),
    )


def a_message_handed_out_twice(queue: str, first: Sees, second: Sees) -> Scope:
    """Two workers get the same message, and one of them dies once."""
    message = move("b", "B", 1, CYCLE)
    return Scope(
        "one message, handed out twice",
        CYCLE,
        (
            Actor("worker-1", (message,), crashes=1, sees=first),
            Actor("worker-2", (message, move("b", "A", 2, CYCLE)), sees=second),
        ),
        (_new(queue),),
    )


def there_and_back(queue: str, first: Sees, second: Sees) -> Scope:
    """One moves A → B and dies once, the other B → A, and its client sends a write again."""
    return Scope(
        "there and back on a cycle",
        CYCLE,
        (
            Actor("worker-1", (move("b", "B", 1, CYCLE),), crashes=1, sees=first),
            Actor("worker-2", (move("b", "A", 2, CYCLE),), resends=1, sees=second),
        ),
        (_new(queue),),
    )


def lost_replies(queue: str, first: Sees, second: Sees) -> Scope:
    """One loses a reply, the other moves the batch on and back meanwhile."""
    return Scope(
        "a lost reply on a cycle",
        CYCLE,
        (
            Actor("worker-1", (move("b", "B", 1, CYCLE),), lost_replies=1, sees=first),
            Actor("worker-2", (move("b", "A", 2, CYCLE), move("b", "B", 3, CYCLE)), sees=second),
        ),
        (_new(queue),),
    )


def a_worker_and_a_tidier(queue: str, first: Sees, second: Sees) -> Scope:
    """One moves there and back and dies once, the other reconciles."""
    return Scope(
        "a worker and a tidier",
        CYCLE,
        (
            Actor("worker", (move("b", "B", 1, CYCLE), move("b", "A", 2, CYCLE)), crashes=1, sees=first),
            Actor("tidier", (reconciling(CYCLE),), sees=second),
        ),
        (_new(queue),),
    )


def a_worker_and_a_reader(queue: str, first: Sees, second: Sees) -> Scope:
    """One moves A → B → C and dies once, the other lists B and C completely."""
    return Scope(
        "a worker and a reader",
        LINE,
        (
            Actor("worker", (move("b", "B", 1, LINE), move("b", "C", 2, LINE)), crashes=1, sees=first),
            Actor("reader", (listing(["B", "C"], LINE, complete=True),), sees=second),
        ),
        (_new(queue),),
    )


def a_creation_handed_out_twice(queue: str, first: Sees, second: Sees) -> Scope:
    """Two create the same batch, one dies once, and the other moves it on at once."""
    message = creation(_new(queue))
    return Scope(
        "one creation, handed out twice",
        LINE,
        (
            Actor("creator-1", (message,), crashes=1, sees=first),
            Actor("creator-2", (message, move("b", "B", 1, LINE)), sees=second),
        ),
    )


def retirement_beside_a_redelivery(queue: str, first: Sees, second: Sees) -> Scope:
    """One moves the batch to its end and dies once, the other retires it."""
    return Scope(
        "a retirement beside a redelivery",
        LINE,
        (
            Actor("worker", (move("b", "C", 1, LINE),), crashes=1, sees=first),
            Actor("retirer", (retirement("b", LINE),), crashes=1, sees=second),
        ),
        (_new(queue, "B"),),
    )


def a_purge_beside_a_reader(queue: str, first: Sees, second: Sees) -> Scope:
    """One retires and purges, the other lists and reconciles."""
    return Scope(
        "a purge beside a reader",
        LINE,
        (
            # Where a put cannot see the row, the purge must wait for the writer that a reconcile is.
            Actor("tidier", (retirement("b", LINE), purging(LINE)), sees=first, idle=("reader",)),
            Actor("reader", (listing(["A", "B", "C"], LINE), reconciling(LINE)), sees=second),
        ),
        (_new(queue, "C"),),
    )


TWO_ACTORS: tuple[Callable[[str, Sees, Sees], Scope], ...] = (
    two_workers_on_a_line,
    a_message_handed_out_twice,
    there_and_back,
    lost_replies,
    a_worker_and_a_tidier,
    a_worker_and_a_reader,
    a_creation_handed_out_twice,
    retirement_beside_a_redelivery,
    a_purge_beside_a_reader,
)
"""Each makes a scope of a queue's name and of how its two actors see the store."""
