"""Advancing: what a worker does with a message that asks for a move, whether it comes for the first time or again.

A message must say which move it asks for, or a late redelivery would push a batch backwards. The
state it moves from is not enough where the lifecycle has a cycle, since the batch may be there for
the *next* time round; the version at which it entered that state (`Batch.entered`) always is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.entities import Attributes, Batch, Step, StepOutcome
from batchstate.errors import (
    BatchStateError,
    InvalidLifecycleError,
    InvalidValueError,
    NotFoundError,
    VersionMismatchError,
)
from batchstate.names import check_name
from batchstate.times import Clock, wall_clock
from batchstate.transition import ensure_record, transition
from batchstate.wire import check_version

if TYPE_CHECKING:
    from batchstate.lifecycle import Lifecycle
    from batchstate.storage import Storage

__all__ = ["advance", "load"]

_ROUNDS = 10  # lost races in a row, each of them against a write that kept the batch in the state the message names


def advance(
    store: Storage,
    batch_id: str,
    to: str,
    *,
    source: str | None = None,
    entered: int | None = None,
    lifecycle: Lifecycle | None = None,
    update: Attributes | None = None,
    by: str = "",
    why: str = "",
    clock: Clock = wall_clock,
) -> Step:
    """Do the move that a message asks for, unless it is done; then repair what its first delivery left half done.

    A worker that acts on success ("publish the next message") does so for `already` as for `moved`:
    whoever moved the batch may have died before it did.

    Args:
        store: the storage of the batch's queue.
        batch_id: the batch.
        to: the state to move into.
        source: the state the message moves the batch from; for an edge on no cycle of the
            lifecycle, which is then needed.
        entered: instead of `source`, the batch's `entered` when the message was sent; always safe.
        lifecycle, update, by, why, clock: as for `transition`.

    Returns:
        The row as it is now, and `moved`, `already` or `stale`; see `Step`.

    Raises:
        InvalidValueError: neither or both of `source` and `entered` are given, or one is none.
            Nothing was written.
        InvalidLifecycleError: `source` without a lifecycle, or for an edge on a cycle. Nothing was
            written.
        InvalidTransitionError: the lifecycle does not allow the move. Nothing was written.
        NotFoundError: there is no such batch, or not yet. Nothing was written.
        VersionMismatchError: the message is ahead of the row, which has not come to the state it
            names: let it come again later. Or the batch was changed ten times in between. Nothing
            was written.
        StorageUnavailableError, TransitionIncompleteError, CorruptRowError: as for `transition`;
            redeliver.
    """
    check_name("batch", batch_id)
    check_name("state", to)
    _check_message(to, source, entered, lifecycle)
    row = load(store, batch_id)
    for last in [False] * (_ROUNDS - 1) + [True]:
        outcome = _judge(row, to, source, entered, lifecycle)
        if outcome != "moved":
            ensure_record(store, row)
            return Step(row, outcome)
        try:
            moved = transition(store, row, to, lifecycle=lifecycle, update=update, by=by, why=why, clock=clock)
        except VersionMismatchError as error:
            if last:
                raise
            row = error.current if error.current is not None else load(store, batch_id)
        else:
            return Step(moved, outcome)
    raise AssertionError  # the last round has returned or raised


def load(store: Storage, batch_id: str) -> Batch:
    """Answer the row of a batch; raises `NotFoundError`, or the error that says why it cannot be read."""
    row = store.get_batches([batch_id]).get(batch_id)
    if row is None:
        msg = f"there is no batch {batch_id!r} in queue {store.queue!r}"
        raise NotFoundError(msg)
    if isinstance(row, BatchStateError):
        raise row
    return row


def _check_message(to: str, source: str | None, entered: int | None, lifecycle: Lifecycle | None) -> None:
    if (source is None) == (entered is None):
        msg = "give either source= (the state it moves from) or entered= (the batch's `entered` when it was sent)"
        raise InvalidValueError(msg)
    if entered is not None:
        check_version(entered, "entered")
    if lifecycle is not None:
        lifecycle.check_state(to)
    if source is None:
        return
    check_name("state", source)
    if lifecycle is None:
        msg = "source= is safe only for an edge on no cycle, which takes a lifecycle to know: give one, or entered="
        raise InvalidLifecycleError(msg)
    lifecycle.check_move(source, to)
    if lifecycle.on_cycle(source, to):
        msg = (
            f"{source!r} > {to!r} lies on a cycle, so a redelivered message could mean the last time round: "
            "send the batch's `entered` along and give entered="
        )
        raise InvalidLifecycleError(msg)


def _judge(row: Batch, to: str, source: str | None, entered: int | None, lifecycle: Lifecycle | None) -> StepOutcome:
    """Answer what the message amounts to for this row; raises `VersionMismatchError` where it is ahead of it."""
    if entered is not None:
        ahead, due = row.entered < entered, row.entered == entered and row.state != to
    else:
        before_source = lifecycle is not None and source is not None and lifecycle.reaches(row.state, source)
        ahead, due = row.state not in (source, to) and before_source, row.state == source
    if row.retired_at is None:
        if ahead:
            raise _ahead(row, to, source, entered)
        if due:
            return "moved"
    return "already" if row.state == to else "stale"


def _ahead(row: Batch, to: str, source: str | None, entered: int | None) -> VersionMismatchError:
    awaited = f"state {source!r}" if entered is None else f"version {entered}"
    return VersionMismatchError(
        f"the message that asks batch {row.id!r} to move to {to!r} is ahead of the row, in {row.state!r} since "
        f"version {row.entered} and has not come to {awaited}: let the message come again later",
        batch_id=row.id,
        expected=entered or row.version + 1,
        current=row,
        applied=False,
    )
