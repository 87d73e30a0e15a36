"""The messages of scopes: each runs a real function of the package as a worker, a tidier or a reader would."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from batchstate.advance import advance, load
from batchstate.creation import create_batch
from batchstate.errors import (
    AlreadyExistsError,
    BatchStateError,
    InvalidTransitionError,
    NotFoundError,
    VersionMismatchError,
)
from batchstate.listing import iter_by_states, list_by_states
from batchstate.testing.explorer.actors import CLOCK, Message
from batchstate.testing.explorer.watching import Watch
from batchstate.tidying import purge, reconcile, retire
from batchstate.transition import ensure_record, transition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batchstate.entities import Batch
    from batchstate.lifecycle import Lifecycle
    from batchstate.storage import Storage

__all__ = ["creation", "iteration", "listing", "move", "pick_up", "purging", "reconciling", "retirement"]


def move(batch_id: str, to: str, entered: int, lifecycle: Lifecycle, *, gone: bool = False) -> Message:
    """Move a batch on, as a message asks that carries `entered`. Before its creation it comes again.

    Args:
        batch_id: the batch.
        to: the state to move into.
        entered: the version at which the batch entered the state it is to be moved from.
        lifecycle: its lifecycle.
        gone: whether the batch may have been purged, so that a message for it is dropped.
    """
    text = f"move {batch_id} to {to} (entered v{entered})"
    again, drops = _without(gone=gone)

    def run(store: Storage) -> object:
        return advance(store, batch_id, to, entered=entered, lifecycle=lifecycle, by=text, clock=CLOCK)

    return Message(text, run, again=again, drops=drops)


def pick_up(batch_id: str, source: str, to: str, lifecycle: Lifecycle) -> Message:
    """Move a batch on if it is in `source`, whenever it came there, else repair its record.

    This is the protocol by itself: read, `transition`, and `ensure_record` where there is nothing to move.
    """

    def run(store: Storage) -> object:
        batch = load(store, batch_id)
        if batch.state == source and batch.retired_at is None:
            return transition(store, batch, to, lifecycle=lifecycle, clock=CLOCK)
        ensure_record(store, batch)
        return batch

    again, drops = _without(gone=False)
    return Message(f"move {batch_id} {source} → {to}", run, again=again, drops=drops)


def creation(batch: Batch, *, loses: bool = False) -> Message:
    """Create a batch; `loses` says that one of other requests may have its ID already."""

    def run(store: Storage) -> object:
        return create_batch(store, batch, by=text, clock=CLOCK)

    text = f"create {batch.id} for {', '.join(batch.request_ids)}"
    return Message(text, run, creates=batch.id, drops=(AlreadyExistsError,) if loses else ())


def retirement(batch_id: str, lifecycle: Lifecycle, *, gone: bool = False) -> Message:
    """Retire a batch as soon as it has come to its end; until then it comes again."""
    text = f"retire {batch_id}"

    def run(store: Storage) -> object:
        batch = load(store, batch_id)
        if not lifecycle.is_terminal(batch.state):
            raise _NotYetError
        return retire(store, batch, lifecycle=lifecycle, by=text, clock=CLOCK)

    again = (VersionMismatchError, _NotYetError) if gone else (VersionMismatchError, _NotYetError, NotFoundError)
    return Message(text, run, again=again, drops=(NotFoundError,) if gone else ())


def purging(lifecycle: Lifecycle) -> Message:
    """Delete whatever is retired, at once: whoever writes a scope sees to it that no writer is that late."""

    def run(store: Storage) -> object:
        return purge(store, lifecycle.states, older_than=0, clock=CLOCK)

    return Message("purge", run)


def reconciling(lifecycle: Lifecycle) -> Message:
    """Make the records agree with their rows."""
    return Message("reconcile", lambda store: reconcile(store, lifecycle.states))


def listing(
    states: Iterable[str], lifecycle: Lifecycle, *, complete: bool = False, most_moves: int | None = None
) -> Message:
    """List some states, and be held to what was there throughout; see `Watch`."""
    asked = tuple(states)

    def run(store: Storage) -> object:
        return list_by_states(store, asked, lifecycle=lifecycle, complete=complete)

    return Message(
        f"list {', '.join(asked)}{' completely' if complete else ''}",
        run,
        watch=Watch(frozenset(asked), complete, most_moves),
    )


def iteration(
    states: Iterable[str], lifecycle: Lifecycle, *, complete: bool = False, most_moves: int | None = None
) -> Message:
    """Go through some states a batch at a time, and be held to the same as a listing."""
    asked = tuple(states)

    def run(store: Storage) -> object:
        return list(iter_by_states(store, asked, lifecycle=lifecycle, complete=complete, page=1))

    return Message(
        f"go through {', '.join(asked)}{' completely' if complete else ''}",
        run,
        watch=Watch(frozenset(asked), complete, most_moves),
    )


class _NotYetError(BatchStateError):
    """It is too early for this message."""

    retryable = True


_Errors: TypeAlias = tuple[type[BatchStateError], ...]


def _without(*, gone: bool) -> tuple[_Errors, _Errors]:
    """Answer on which errors a message comes again, and on which it is dropped: its batch is gone, or not there yet."""
    if gone:
        return (VersionMismatchError,), (NotFoundError, InvalidTransitionError)
    return (VersionMismatchError, NotFoundError), (InvalidTransitionError,)
