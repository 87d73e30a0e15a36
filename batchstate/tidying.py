"""Tidying: what keeps a store small and its records right. All of it is safe beside working pipelines.

`reconcile` mends records, `retire` takes an ended batch out of the queue, `purge` deletes what was
retired long ago. Rows go by `purge` alone, never by a backend's own expiry, which knows nothing of
the order: records, associations, row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batchstate.entities import Batch, MembershipRecord
from batchstate.errors import (
    BatchStateError,
    InvalidTransitionError,
    InvalidValueError,
    TransitionIncompleteError,
    VersionMismatchError,
)
from batchstate.lifecycle import RESERVED_STATES
from batchstate.listing import OnProblem, dangling_among, distinct_states, pages_of, raise_problem
from batchstate.moves import Move
from batchstate.times import Clock, Duration, milliseconds, wall_clock
from batchstate.transition import put_records_of, swap_to
from batchstate.wire import check_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from batchstate.lifecycle import Lifecycle
    from batchstate.storage import Storage

__all__ = ["RETENTION", "Purged", "Reconciled", "check_ended", "purge", "reconcile", "retire"]

RETENTION = "15d"
"""How long a retired batch is kept, by default: longer than any writer stalls and any message is
redelivered (SQS keeps one for 14 days at most)."""

PAGE = 500


class Reconciled(NamedTuple):
    """What `reconcile` did.

    Attributes:
        looked: how many records it looked at.
        put: how many it put under the state of their row.
        removed: how many it removed from under another.
    """

    looked: int
    put: int
    removed: int


class Purged(NamedTuple):
    """What `purge` did.

    Attributes:
        batches: how many batches are gone.
        more: whether it stopped at its limit with more to do.
    """

    batches: int
    more: bool


def reconcile(store: Storage, states: Iterable[str], *, on_problem: OnProblem = raise_problem) -> Reconciled:
    """Make the records agree with their rows: put the one of the row's state, and only then remove the stale one.

    The redelivery of a message repairs what its crash left; this is for what was never redelivered.
    The stale record is removed no further than the version that was seen, so a move under way loses
    nothing.

    Args:
        store: the queue's storage.
        states: every state a record may be filed under: `lifecycle.states`.
        on_problem: is told of each dangling record and unreadable row instead of the first ending
            the walk; both stay.

    Raises:
        DanglingRecordError, CorruptRowError, UnsupportedFormatError: as for `list_by_states`.
        InvalidValueError: a state is no name. Nothing was written.
        StorageUnavailableError: the store could not be reached. What was mended stays mended; call
            it again.
    """
    total = Reconciled(0, 0, 0)
    for state in dict.fromkeys([*distinct_states(states), *RESERVED_STATES]):
        for records in pages_of(store, state, PAGE):
            done = _reconcile_page(store, records, on_problem)
            total = Reconciled(*(sum(pair) for pair in zip(total, done, strict=True)))
    return total


def _reconcile_page(store: Storage, records: Sequence[MembershipRecord], on_problem: OnProblem) -> Reconciled:
    if not records:
        return Reconciled(0, 0, 0)
    rows = store.get_batches(record.batch_id for record in records)
    to_put: dict[str, Batch] = {}
    to_delete: list[MembershipRecord] = []
    for problem in dangling_among(store, [record for record in records if record.batch_id not in rows]):
        on_problem(problem)
    for record in records:
        row = rows.get(record.batch_id)
        if row is None:
            continue
        if isinstance(row, BatchStateError):
            on_problem(row)
        elif row.retired_at is not None:
            to_delete.append(record)
        elif row.state != record.state:
            to_put[row.id] = row
            to_delete.append(record)
        elif record.version < row.entered:
            to_put[row.id] = row  # left from an earlier stay in this state, and a late step may still take it away
    _raise_first(put_records_of(store, list(to_put.values())))
    if to_delete:
        _raise_first(store.delete_records(to_delete))
    return Reconciled(len(records), len(to_put), len(to_delete))


def retire(
    store: Storage,
    batch: Batch,
    *,
    lifecycle: Lifecycle | None = None,
    by: str = "",
    why: str = "retired",
    clock: Clock = wall_clock,
) -> Batch:
    """Take an ended batch out of the queue: mark its row retired, then remove its records.

    Listings no longer show it; `find_by_request_id` and loading by ID do until `purge` deletes it.
    Called again for a batch that is retired already, it completes what a crash left undone.

    Args:
        store: the storage of the batch's queue.
        batch: the batch as it was read; it is not changed.
        lifecycle: says which states are terminal; without one the caller answers for it.
        by, why, clock: as for `transition`.

    Returns:
        The retired batch.

    Raises:
        InvalidTransitionError: the batch is in no terminal state. Nothing was written.
        VersionMismatchError: the row is not at the batch's version, and not retired. No record was
            touched.
        NotFoundError: there is no such row. Nothing was written.
        StorageUnavailableError: the store could not be reached; whether the row is retired is
            unknown. Call it again.
        TransitionIncompleteError: the row is retired and a record may be left. Call it again.
    """
    if batch.retired_at is None:
        check_ended(batch, lifecycle)
        batch = _mark_retired(store, batch, by, why, clock())
    states = (*lifecycle.states, *RESERVED_STATES) if lifecycle is not None else (batch.state,)
    try:
        _raise_first(
            store.delete_records([MembershipRecord(batch.queue, state, batch.id, batch.version) for state in states])
        )
    except Exception as error:
        msg = f"batch {batch.id!r} is retired, but a record of it may be left: {error}; retire it again"
        raise TransitionIncompleteError(msg, batch=batch) from error
    return batch


def check_ended(batch: Batch, lifecycle: Lifecycle | None) -> None:
    """Raise `InvalidTransitionError` where a batch is neither retired nor in a state that ends its lifecycle."""
    if batch.retired_at is None and lifecycle is not None and not lifecycle.is_terminal(batch.state):
        msg = f"batch {batch.id!r} is in {batch.state!r}, which is not terminal; only an ended batch can be retired"
        raise InvalidTransitionError(msg)


def _mark_retired(store: Storage, batch: Batch, by: str, why: str, now: int) -> Batch:
    check_version(batch.version, "version")
    move = Move(batch.state, batch.state, batch.version + 1, now, by, why)
    swap = swap_to(batch, move, retired_at=now)
    [outcome] = store.update_batches([swap])
    if (
        isinstance(outcome, VersionMismatchError)
        and outcome.current is not None
        and outcome.current.retired_at is not None
    ):
        return outcome.current
    if outcome is not None:
        raise outcome
    return swap.after


def purge(
    store: Storage,
    states: Iterable[str],
    *,
    older_than: Duration = RETENTION,
    limit: int | None = None,
    on_problem: OnProblem = raise_problem,
    clock: Clock = wall_clock,
) -> Purged:
    """Delete the batches that were retired long enough ago: their records, then their associations, then their rows.

    `older_than` must exceed the longest stall of a writer (a `reconcile` is one too) and the longest
    redelivery of a message: a creation redelivered after the purge would create the batch anew.

    Args:
        store: the queue's storage.
        states: every state a record may be filed under: `lifecycle.states`.
        older_than: how long a batch stays after it was retired.
        limit: how many batches to delete at most; `None` for all.
        on_problem: is told of each unreadable row instead of the first ending the purge; it stays.
        clock: answers the present time in milliseconds since the epoch.

    Raises:
        InvalidValueError: `older_than`, `limit` or a state is none. Nothing was deleted.
        CorruptRowError, UnsupportedFormatError: a retired row cannot be read.
        StorageUnavailableError: the store could not be reached. What is gone is gone whole or found
            again by the next call.
    """
    due = clock() - milliseconds(older_than, "older_than", zero=True)
    if limit is not None and (type(limit) is not int or limit < 1):
        msg = f"limit must be an int of 1 or more, or None, not {limit!r}"
        raise InvalidValueError(msg)
    every = tuple(dict.fromkeys([*distinct_states(states), *RESERVED_STATES]))
    gone = 0
    for batches in _due_pages(store, due, on_problem):
        room = len(batches) if limit is None else limit - gone
        if batches[:room]:
            _raise_first(store.delete_batches(batches[:room], every))
        gone += len(batches[:room])
        if len(batches) > room:
            return Purged(gone, more=True)
    return Purged(gone, more=False)


def _due_pages(store: Storage, due: int, on_problem: OnProblem) -> Iterator[list[Batch]]:
    """Go through the batches retired up to `due`, longest ago first, a page at a time."""
    cursor: str | None = None
    while True:
        page = store.list_retired(cursor, limit=PAGE)
        batches: list[Batch] = []
        for row in page.items:
            if isinstance(row, BatchStateError):
                on_problem(row)
            elif row.retired_at is not None and row.retired_at > due:
                yield batches
                return
            else:
                batches.append(row)
        yield batches
        if page.cursor is None:
            return
        cursor = page.cursor


def _raise_first(outcomes: Iterable[BatchStateError | None]) -> None:
    for outcome in outcomes:
        if outcome is not None:
            raise outcome
