"""Listing: by state, where records say where to look and rows decide, and by request.

Buckets are read in lifecycle order, old before new, so that a batch which moves forward meanwhile
is seen in the one or in the other. Where the buckets read lie on a cycle there is no such order;
all but the last are then read once more, and a batch is not missed if the steps of at most one move
fall within the listing. A storage that reads all buckets as of one instant needs neither.

Between a swap and its put, a batch is filed under an earlier state than its own. Asking for its own
state alone can then miss it, though nothing moves; `complete=True` also reads the buckets of every
state that can precede those asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from batchstate.entities import Batch, Found, MembershipRecord
from batchstate.errors import (
    BatchStateError,
    DanglingRecordError,
    InvalidLifecycleError,
    InvalidValueError,
)
from batchstate.names import check_name
from batchstate.storage import SnapshotListing, Storage

if TYPE_CHECKING:
    from batchstate.lifecycle import Lifecycle

__all__ = [
    "OnProblem",
    "dangling_among",
    "distinct_states",
    "find_by_request_id",
    "iter_by_states",
    "list_by_states",
    "pages_of",
    "raise_problem",
]

OnProblem: TypeAlias = Callable[[BatchStateError], None]
"""Is told of each row that dangles or cannot be read, so that an inspector sees the good ones too."""

HYDRATED = 500
"""How many rows are loaded by key at a time."""


def raise_problem(problem: BatchStateError) -> None:
    """Raise `problem`: what is done with a dangling or corrupt row unless the caller says otherwise."""
    raise problem


def list_by_states(
    store: Storage,
    states: Iterable[str],
    *,
    lifecycle: Lifecycle | None = None,
    complete: bool = False,
    on_problem: OnProblem = raise_problem,
) -> list[Batch]:
    """List the batches whose own state is one of `states`, each once, whatever bucket they were found in.

    Args:
        store: the queue's storage.
        states: the states asked for.
        lifecycle: gives the order in which buckets are read; without one it is the order of
            `states`.
        complete: also read the buckets of all states that can precede these, so that no batch is
            missed whose record is not up to date; needs a lifecycle.
        on_problem: is told of each dangling record and unreadable row instead of the listing being
            ended by the first.

    Returns:
        The batches, ordered by state (as the lifecycle orders them, else as asked), then by ID.
        Retired ones are not listed.

    Raises:
        DanglingRecordError: a record names a batch that has no row: rows were lost.
        CorruptRowError, UnsupportedFormatError: a row cannot be read.
        InvalidLifecycleError: `complete=True` without a lifecycle.
        InvalidValueError: a state is none of the lifecycle's.
        StorageUnavailableError: the store could not be reached.
    """
    asked, buckets, again = _plan(states, lifecycle, complete=complete)
    found: dict[str, Batch] = {}
    for records in _candidates(store, buckets, again):
        fresh = {record.batch_id: record for record in records if record.batch_id not in found}
        for batch in _hydrate(store, list(fresh.values()), on_problem):
            if batch.state in asked and batch.retired_at is None:
                found[batch.id] = batch
    rank = {state: place for place, state in enumerate(asked)}
    return sorted(found.values(), key=lambda batch: (rank[batch.state], batch.id))


def iter_by_states(
    store: Storage,
    states: Iterable[str],
    *,
    lifecycle: Lifecycle | None = None,
    complete: bool = False,
    on_problem: OnProblem = raise_problem,
    page: int = HYDRATED,
) -> Iterator[Batch]:
    """Go through the batches whose own state is one of `states`, holding one page of them in memory.

    No batch is missed that `list_by_states` would not miss. They come bucket by bucket, in no
    particular order within one. A batch that moves while you iterate may come again, in its newer
    version. Where the buckets read lie on a cycle, or without a lifecycle, the IDs seen (not the
    batches) are held as well.

    Args:
        store, states, lifecycle, complete, on_problem: as for `list_by_states`.
        page: how many batches are loaded at a time.

    Raises:
        InvalidValueError: `page` is not positive; raised by the call itself, as are all errors
            about arguments.
        BatchStateError: as for `list_by_states`, when the iteration comes to it.
    """
    if type(page) is not int or page < 1:
        msg = f"page must be an int of 1 or more, not {page!r}"
        raise InvalidValueError(msg)
    asked, buckets, again = _plan(states, lifecycle, complete=complete)
    ordered = lifecycle is not None and not again
    return _iterate(store, asked, (*buckets, *again), on_problem, page, ordered=ordered)


def _iterate(
    store: Storage,
    asked: Sequence[str],
    buckets: Sequence[str],
    on_problem: OnProblem,
    page: int,
    *,
    ordered: bool,
) -> Iterator[Batch]:
    """Go through `buckets`; `ordered` means that a batch's own bucket comes after those it has left."""
    seen: set[str] = set()
    for bucket in buckets:
        for records in pages_of(store, bucket, page):
            fresh = [
                record
                for record in {record.batch_id: record for record in records}.values()
                if record.batch_id not in seen
            ]
            for batch in _hydrate(store, fresh, on_problem, page):
                if batch.state not in asked or batch.retired_at is not None:
                    continue
                if not ordered or batch.state != bucket:
                    seen.add(batch.id)
                yield batch


def find_by_request_id(store: Storage, request_id: str, *, on_problem: OnProblem = raise_problem) -> Found:
    """Find every attempt at a request.

    An association without a row is what a creation leaves that never came to its end; one whose
    batch does not contain the request, what a creation leaves that lost. Both are skipped and
    counted.

    Args:
        store: the queue's storage.
        request_id: the request.
        on_problem: is told of each unreadable row instead of the search being ended by the first.

    Returns:
        `(batches, stale)`: the attempts ordered by ID, and how many associations led nowhere.

    Raises:
        InvalidNameError: `request_id` is no name.
        CorruptRowError, UnsupportedFormatError: a row cannot be read.
        StorageUnavailableError: the store could not be reached.
    """
    check_name("request", request_id)
    ids = sorted({association.batch_id for association in store.list_associations(request_id)})
    batches: list[Batch] = []
    stale = 0
    for start in range(0, len(ids), HYDRATED):
        chunk = ids[start : start + HYDRATED]
        rows = store.get_batches(chunk)
        for batch_id in chunk:
            row = rows.get(batch_id)
            if isinstance(row, BatchStateError):
                on_problem(row)
            elif row is None or request_id not in row.request_ids:
                stale += 1
            else:
                batches.append(row)
    return Found(tuple(batches), stale)


def _plan(
    states: Iterable[str], lifecycle: Lifecycle | None, *, complete: bool
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Answer the states asked for, the buckets to read, and those to read once more at the end, all in order."""
    asked = distinct_states(states)
    if lifecycle is None:
        if complete:
            msg = "complete=True also reads the states that can precede those asked for: give the lifecycle"
            raise InvalidLifecycleError(msg)
        return asked, asked, ()
    buckets = lifecycle.ordered({*asked, *lifecycle.preceding(asked)} if complete else asked)
    return lifecycle.ordered(asked), buckets, buckets[:-1] if lifecycle.any_cycle(buckets) else ()


def distinct_states(states: Iterable[str]) -> tuple[str, ...]:
    """Answer these states, each once; raises `InvalidValueError` where one is no name or a single text is given."""
    if isinstance(states, str):
        msg = f"states must be several, such as [{states!r}], not a str"
        raise InvalidValueError(msg)
    return tuple(dict.fromkeys(check_name("state", state) for state in states))


def _candidates(store: Storage, buckets: Sequence[str], again: Sequence[str]) -> Iterator[Sequence[MembershipRecord]]:
    snapshot = store.list_records_of(buckets) if buckets and isinstance(store, SnapshotListing) else None
    if snapshot is not None:
        yield snapshot
        return
    for bucket in (*buckets, *again):
        yield from pages_of(store, bucket, HYDRATED)


def pages_of(store: Storage, state: str, limit: int) -> Iterator[Sequence[MembershipRecord]]:
    """Go through the pages of a state's bucket."""
    page = store.list_records(state, limit=limit)
    yield page.items
    while page.cursor is not None:
        page = store.list_records(state, page.cursor, limit=limit)
        yield page.items


def _hydrate(
    store: Storage, records: Sequence[MembershipRecord], on_problem: OnProblem, most: int = HYDRATED
) -> Iterator[Batch]:
    """Load the rows that these records, of distinct batches, name, up to `most` at a time."""
    for start in range(0, len(records), most):
        chunk = records[start : start + most]
        rows = store.get_batches([record.batch_id for record in chunk])
        for problem in dangling_among(store, [record for record in chunk if record.batch_id not in rows]):
            on_problem(problem)
        for row in rows.values():
            if isinstance(row, BatchStateError):
                on_problem(row)
            else:
                yield row


def dangling_among(store: Storage, rowless: Sequence[MembershipRecord]) -> list[DanglingRecordError]:
    """Answer which of these records, whose rows were not found, dangle.

    The others are gone by now as well: a purge deleted them and their rows, in that order, while we
        looked.
    """
    if not rowless:
        return []
    still_there = store.get_records([(record.state, record.batch_id) for record in rowless])
    return [
        DanglingRecordError(
            f"the record of batch {record.batch_id!r} under {record.state!r} has no row: the store lost rows; "
            "compare it with a backup before anything else",
            state=record.state,
            batch_id=record.batch_id,
        )
        for record in still_there
    ]
