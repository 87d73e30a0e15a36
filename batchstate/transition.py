"""Transitions: the compare-and-swap of a row, then its record under the new state, then the old record's removal.

    row     ──A,v1──┬── swap ──B,v2─────────────────────────────────────
    record  ──A,v1──┼──────────────┬── put B,v2 ── A,v1 and B,v2 ──┬── delete A up to v1 ── B,v2
                    1              2                               3

A crash between two steps leaves the batch under a state that it has left, or under two; readers
look at the row, so both are only a read too many. The redelivery of the message repairs it
(`ensure_record`). Records carry a version and put and delete are fenced by it: without that, a late
step of one worker takes away the record that another has just put on a lifecycle with a cycle, and
the batch is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.entities import Attributes, Batch, History, MembershipRecord, RowMemory
from batchstate.errors import (
    BatchStateError,
    InvalidTransitionError,
    InvalidValueError,
    StorageUnavailableError,
    TransitionIncompleteError,
)
from batchstate.lifecycle import RESERVED_STATES
from batchstate.marks import new_mark, remember
from batchstate.moves import Move, append_move
from batchstate.names import check_name
from batchstate.storage import Outcome, Storage, Swap, moves_at_once
from batchstate.times import Clock, wall_clock
from batchstate.wire import check_version, requests_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.lifecycle import Lifecycle

__all__ = [
    "check_not_reserved",
    "ensure_record",
    "put_records_of",
    "record_of",
    "swap_to",
    "transition",
    "transition_many",
]


def transition(
    store: Storage,
    batch: Batch,
    new_state: str,
    *,
    lifecycle: Lifecycle | None = None,
    update: Attributes | None = None,
    by: str = "",
    why: str = "",
    clock: Clock = wall_clock,
) -> Batch:
    """Move `batch` into `new_state`, if its row is still the one that was read.

    The whole row is written as given, so attributes that the caller changed go in with the same
    swap, and so does the history's entry. A move into the present state is always allowed, changes
    the version and keeps `entered`.

    Args:
        store: the storage of the batch's queue.
        batch: the batch as it was read; it is not changed.
        new_state: the state to move into.
        lifecycle: which moves are allowed; without one any is.
        update: attributes to merge over the batch's, key by key.
        by: who moves it, for the history.
        why: the reason, for the history.
        clock: answers the time of the move, in milliseconds since the epoch.

    Returns:
        The batch as it is stored now.

    Raises:
        InvalidTransitionError: the lifecycle does not allow the move, or the batch is retired.
            Nothing was written.
        InvalidValueError: the batch, a name or an attribute cannot be stored. Nothing was written.
        VersionMismatchError: the row is not at the batch's version: another was faster. No record
            was touched. Read the batch again and decide anew; `advance` does that.
        NotFoundError: there is no such row. Nothing was written.
        StorageUnavailableError: the store could not be reached; whether the row moved is unknown.
            Redeliver.
        TransitionIncompleteError: the row moved and its records are not up to date. Redeliver, or
            call `ensure_record`.
    """
    [outcome] = transition_many(
        store, [batch], new_state, lifecycle=lifecycle, update=update, by=by, why=why, clock=clock
    )
    if isinstance(outcome, BatchStateError):
        raise outcome
    return outcome


def transition_many(
    store: Storage,
    batches: Sequence[Batch],
    new_state: str,
    *,
    lifecycle: Lifecycle | None = None,
    update: Attributes | None = None,
    by: str = "",
    why: str = "",
    clock: Clock = wall_clock,
) -> list[Batch | BatchStateError]:
    """Move many batches into `new_state`, each for itself, in as few round trips as one takes.

    Args:
        store: the storage of the batches' queue.
        batches: as they were read. Of one that is given twice the first wins.
        new_state: as for `transition`, as are all other arguments.

    Returns:
        For each batch, in the order given, what `transition` would have returned or raised for it.
    """
    at = clock()
    answers: list[Batch | BatchStateError] = []
    swaps: list[Swap] = []
    places: list[int] = []
    for place, batch in enumerate(batches):
        try:
            check_version(batch.version, "version")
            swap = _checked_swap(
                batch,
                new_state,
                Move(batch.state, new_state, batch.version + 1, at, by, why),
                lifecycle,
                update,
            )
        except BatchStateError as error:
            answers.append(error)
        else:
            answers.append(swap.after)
            swaps.append(swap)
            places.append(place)
    for place, swap, outcome in zip(places, swaps, _move(store, swaps), strict=True):
        answers[place] = swap.after if outcome is None else outcome
    return answers


def ensure_record(store: Storage, batch: Batch) -> None:
    """File the record of the state that `batch` is in: the repair after a crash, safe at any time.

    Called by whoever is handed a message again and finds its work done. A retired batch has no
    record, and gets none.

    Args:
        store: the storage of the batch's queue.
        batch: the batch as it was read just now.

    Raises:
        InvalidValueError: the batch belongs to another queue, or has a name or version that is
            none. Nothing was written.
        StorageUnavailableError: the store could not be reached; the record may or may not be there.
            Redeliver.
    """
    [outcome] = put_records_of(store, [batch])
    if outcome is not None:
        raise outcome


def put_records_of(store: Storage, batches: Sequence[Batch]) -> list[Outcome]:
    """File the records of the states that these batches are in, but none for a retired one."""
    answers: list[Outcome] = [None] * len(batches)
    places = [place for place, batch in enumerate(batches) if batch.retired_at is None]
    if places:
        outcomes = store.put_records([record_of(batches[place]) for place in places])
        for place, outcome in zip(places, outcomes, strict=True):
            answers[place] = outcome
    return answers


def check_not_reserved(state: str) -> None:
    """Raise `InvalidTransitionError` for a state that only claims move their batches into."""
    if state in RESERVED_STATES:
        msg = f"{state!r} is a built-in state of claims, which alone move their batches into it; name yours otherwise"
        raise InvalidTransitionError(msg)


def record_of(batch: Batch) -> MembershipRecord:
    """Answer the record of the state that `batch` is in."""
    return MembershipRecord(batch.queue, batch.state, batch.id, batch.version)


def swap_to(batch: Batch, move: Move, *, update: Attributes | None = None, retired_at: int | None = None) -> Swap:
    """Answer the swap that writes `move` into the row of `batch`, with a fresh mark. No I/O.

    Raises:
        InvalidTransitionError: the batch is retired.
        InvalidValueError: its version is none, or its requests are not those of its row.
    """
    if batch.retired_at is not None:
        msg = f"batch {batch.id!r} is retired and accepts no move; start a new batch for its requests"
        raise InvalidTransitionError(msg)
    if batch.memory is not None and batch.memory.request_ids != batch.request_ids:
        msg = f"the request_ids of batch {batch.id!r} were changed, and they never change; start a new batch"
        raise InvalidValueError(msg)
    after = Batch(
        batch.id,
        batch.queue,
        move.to,
        move.version,
        batch.entered if move.to == batch.state else move.version,
        batch.request_ids,
        (batch.with_attributes(update) if update else batch).attributes,
        History(append_move(batch.history.text, move), batch.id),
        batch.created_at,
        move.at,
        retired_at,
        RowMemory(remember(batch.marks, move.version, new_mark()), batch.request_ids, requests_text(batch)),
    )
    return Swap(batch, after)


def _checked_swap(
    batch: Batch, new_state: str, move: Move, lifecycle: Lifecycle | None, update: Attributes | None
) -> Swap:
    check_name("state", new_state)
    check_not_reserved(new_state)
    if lifecycle is not None:
        lifecycle.check_move(batch.state, new_state)
    return swap_to(batch, move, update=update)


def _move(store: Storage, swaps: Sequence[Swap]) -> list[Outcome]:
    if not swaps:
        return []
    try:
        if moves_at_once(store):
            return store.move_batches(swaps)
        outcomes = store.update_batches(swaps)
    except StorageUnavailableError as error:
        return [error] * len(swaps)
    moved = [swap for swap, outcome in zip(swaps, outcomes, strict=True) if outcome is None]
    followed = iter(_follow_up(store, moved))
    return [next(followed) if outcome is None else outcome for outcome in outcomes]


def _follow_up(store: Storage, swaps: Sequence[Swap]) -> list[Outcome]:
    """Put the new records, all of them acknowledged, and only then delete the old ones."""
    try:
        outcomes = put_records_of(store, [swap.after for swap in swaps])
        left = [
            swap
            for swap, outcome in zip(swaps, outcomes, strict=True)
            if outcome is None and swap.before.state != swap.after.state
        ]
        deleted = iter(store.delete_records([record_of(swap.before) for swap in left]) if left else ())
        outcomes = [
            next(deleted) if outcome is None and swap.before.state != swap.after.state else outcome
            for swap, outcome in zip(swaps, outcomes, strict=True)
        ]
    except Exception as error:  # noqa: BLE001 - whatever failed, the rows have moved, and that is what must be told
        return [_incomplete(swap, error) for swap in swaps]
    return [outcome and _incomplete(swap, outcome) for swap, outcome in zip(swaps, outcomes, strict=True)]


def _incomplete(swap: Swap, cause: Exception) -> TransitionIncompleteError:
    error = TransitionIncompleteError(
        f"batch {swap.after.id!r} moved to {swap.after.state!r} (version {swap.after.version}), but its records are "
        f"not up to date: {cause}; redeliver the message, or call ensure_record",
        batch=swap.after,
    )
    error.__cause__ = cause
    return error
