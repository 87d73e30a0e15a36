"""Checking: reads a store and says where it breaks a promise, each fault with the command that mends it.

Works beside running pipelines. A move under way looks like a fault for a moment, so what looks wrong is looked at
again, and told only if it is still so and nobody has touched the batch for a while. Holds a page of rows at a time,
however many there are.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import frozen

from batchstate.balance import Balance, pages_of_kind
from batchstate.entities import Association, Batch, MembershipRecord
from batchstate.errors import BatchStateError
from batchstate.lifecycle import RESERVED_STATES
from batchstate.marks import REMEMBERED
from batchstate.times import Clock, Duration, milliseconds, wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from batchstate.lifecycle import Lifecycle
    from batchstate.storage import Storage

__all__ = ["Fault", "FaultKind", "check_batches"]

FaultKind: TypeAlias = Literal[
    "unreadable row",
    "unfiled batch",
    "stale record",
    "dangling record",
    "record of a retired batch",
    "missing association",
    "unknown state",
    "broken marks",
    "broken history",
]
"""What may be wrong with batches."""


@frozen
class Fault:
    """One broken promise.

    Attributes:
        kind: which promise.
        key: the batch or job it is about.
        says: what is wrong, in a sentence.
        mend: the command that mends it, `""` where only somebody who knows the data can.
        safe: whether mending can lose nothing, so that it may be done without asking.
        record: the record that is wrong, where it is one.
    """

    kind: str
    key: str
    says: str
    mend: str = ""
    safe: bool = False
    record: MembershipRecord | None = None


def check_batches(
    store: Storage,
    lifecycle: Lifecycle | None,
    *,
    settled_for: Duration = "1m",
    clock: Clock = wall_clock,
    on_progress: Callable[[str, int], None] = lambda *_: None,
) -> Iterator[Fault]:
    """Go through the batches of a queue, their records and associations, and answer what is wrong.

    Args:
        store: the queue's storage.
        lifecycle: the states of its batches; without one any state will do.
        settled_for: a batch that was written more recently than this may be on its way, and is not judged by its
            records.
        clock: answers the time in milliseconds since the epoch.
        on_progress: called with the kind of row and how many were looked at, page by page.

    Raises:
        StorageUnavailableError: the store could not be reached.
    """
    before = clock() - milliseconds(settled_for, "settled_for", zero=True)
    balance = Balance()
    seen = 0
    for rows in pages_of_kind(store, "batches"):
        batches = [row for row in rows if isinstance(row, Batch)]
        yield from (_unreadable(row) for row in rows if isinstance(row, BatchStateError))
        for batch in batches:
            yield from _faults_within(batch, lifecycle)
            for request_id in dict.fromkeys(batch.request_ids):
                balance.put_in(request_id, batch.id)
        yield from _unfiled(store, _settled(batches, before))
        seen += len(rows)
        on_progress("batches", seen)
    yield from _unassociated(store, balance, before, on_progress)
    seen = 0
    for rows in pages_of_kind(store, "records"):
        records = [row for row in rows if isinstance(row, MembershipRecord)]
        yield from _misfiled(store, records, before)
        seen += len(rows)
        on_progress("records", seen)


def mending(queue: str, verb: str, key: str | None = None) -> str:
    """Answer the command that mends a batch, a job, a claim or a queue, names quoted as a shell needs them."""
    command = f"batchstate {verb} --queue {shlex.quote(queue)}"
    return command if key is None else f"{command} {'-- ' if key.startswith('-') else ''}{shlex.quote(key)}"


def _settled(batches: Sequence[Batch], before: int) -> list[Batch]:
    return [batch for batch in batches if batch.retired_at is None and batch.updated_at <= before]


def _unassociated(
    store: Storage, balance: Balance, before: int, on_progress: Callable[[str, int], None]
) -> Iterator[Fault]:
    """Answer the batches that their requests do not lead to; asks request by request only where the balance is off."""
    seen = 0
    for rows in pages_of_kind(store, "associations"):
        for association in rows:
            if isinstance(association, Association):
                balance.take_out(association.request_id, association.batch_id)
        seen += len(rows)
        on_progress("associations", seen)
    for rows in pages_of_kind(store, "batches") if balance.is_off else ():
        for batch in _settled([row for row in rows if isinstance(row, Batch)], before):
            lacking = [
                request_id
                for request_id in dict.fromkeys(batch.request_ids)
                if balance.doubts(request_id, batch.id)
                and all(known.batch_id != batch.id for known in store.list_associations(request_id))
            ]
            if lacking and any(True for _ in _unchanged(store, [batch])):
                says = f"is not found by its requests {', '.join(map(repr, lacking[:5]))}"
                yield Fault("missing association", batch.id, says, mending(store.queue, "ensure", batch.id), safe=True)


def _unreadable(error: BatchStateError) -> Fault:
    return Fault("unreadable row", str(getattr(error, "key", "")), str(error))


def _faults_within(batch: Batch, lifecycle: Lifecycle | None) -> Iterator[Fault]:
    """Answer what is wrong with a row by itself."""
    if lifecycle is not None and batch.state not in (*lifecycle.states, *RESERVED_STATES):
        says = f"is in {batch.state!r}, which the lifecycle does not know; was it written with another one?"
        yield Fault("unknown state", batch.id, says)
    versions = [int(at) if (at := item.partition(":")[0]).isdecimal() else -1 for item in batch.marks.split(" ")]
    expected = list(range(batch.version - len(versions) + 1, batch.version + 1))
    if not versions or len(versions) > REMEMBERED or versions != expected or batch.entered > batch.version:
        yield Fault("broken marks", batch.id, f"is at version {batch.version}, and its marks remember {versions}")
    try:
        last = batch.history[-1] if batch.history else None
    except BatchStateError as error:
        yield Fault("broken history", batch.id, str(error))
        return
    if last is None or (last.version, last.to) != (batch.version, batch.state):
        yield Fault("broken history", batch.id, f"is in {batch.state!r}, and its history does not end there")


def _unfiled(store: Storage, batches: Sequence[Batch]) -> Iterator[Fault]:
    """Answer the batches that have no record under their own state, and still have none at a second look."""
    missing = _not_filed(store, _not_filed(store, batches))
    # Last of all whether they are as they were: so they were, too, when their records were missing.
    for batch in _unchanged(store, missing):
        says = f"is in {batch.state!r} and not filed there, so that its listing misses it"
        yield Fault("unfiled batch", batch.id, says, mending(store.queue, "ensure", batch.id), safe=True)


def _not_filed(store: Storage, batches: Sequence[Batch]) -> list[Batch]:
    if not batches:
        return []
    filed = {(record.state, record.batch_id) for record in store.get_records((b.state, b.id) for b in batches)}
    return [batch for batch in batches if (batch.state, batch.id) not in filed]


def _misfiled(store: Storage, records: Sequence[MembershipRecord], before: int) -> Iterator[Fault]:
    """Answer the records that disagree with their rows, and still do at a second look."""
    rows = store.get_batches(record.batch_id for record in records)
    mend = mending(store.queue, "reconcile")
    wrong: list[tuple[MembershipRecord, Fault]] = []

    def suspect(record: MembershipRecord, kind: FaultKind, says: str, mend: str = "") -> None:
        fault = Fault(kind, record.batch_id, says, mend, safe=bool(mend), record=record if mend else None)
        wrong.append((record, fault))

    for record in records:
        row = rows.get(record.batch_id)
        if row is None:
            says = f"is filed under {record.state!r} and has no row: the store lost rows"
            suspect(record, "dangling record", says)
        elif isinstance(row, BatchStateError) or row.updated_at > before:
            continue
        elif row.retired_at is not None:
            suspect(record, "record of a retired batch", f"is retired and still filed under {record.state!r}", mend)
        elif row.state != record.state:
            says = f"is in {row.state!r} and also filed under {record.state!r}, which costs a read at each listing"
            suspect(record, "stale record", says, mend)
    still = set(store.get_records((record.state, record.batch_id) for record, _ in wrong)) if wrong else set()
    yield from (fault for record, fault in wrong if record in still)


def _unchanged(store: Storage, batches: Sequence[Batch]) -> Iterator[Batch]:
    """Answer those of these batches that are as they were."""
    rows = store.get_batches(batch.id for batch in batches) if batches else {}
    for batch in batches:
        row = rows.get(batch.id)
        if isinstance(row, Batch) and row.version == batch.version:
            yield batch
