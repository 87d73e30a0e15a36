"""`MemoryStorage`: the storage protocol over a `MemoryStore`."""

from __future__ import annotations

import json
from bisect import bisect_right
from heapq import nsmallest
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from batchstate.entities import Association, Batch, MembershipRecord
from batchstate.errors import (
    BatchStateError,
    CorruptRowError,
    InvalidTransitionError,
    UnsupportedFormatError,
    VersionMismatchError,
)
from batchstate.names import check_name
from batchstate.storage import Kind, Outcome, Page, Swap, Unreadable, judge_creation, judge_swap
from batchstate.times import Clock, wall_clock
from batchstate.transition import record_of
from batchstate.wire import BatchRow, check_association, check_record, decode_batch, encode_each
from batchstate_memory.frozen import Frozen, freeze, thaw
from batchstate_memory.jobs import MemoryJobs
from batchstate_memory.store import MemoryStore, QueueRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from batchstate.urls import StorageURL

__all__ = ["MemoryStorage"]

Item = TypeVar("Item")

_named: dict[str, MemoryStore] = {}
_named_lock = Lock()


class MemoryStorage(MemoryJobs):
    """One queue of an in-memory store.

    Args:
        queue: the queue.
        store: the store, to be shared by the storages of several queues; a new one without it.
        clock: answers the time in milliseconds since the epoch; this machine's by default.
    """

    sees_rows: ClassVar[bool] = True
    """Whether a put is a no-op for an absent or retired row; a backend without transactions cannot see it."""

    def __init__(self, queue: str, store: MemoryStore | None = None, *, clock: Clock | None = None) -> None:
        self._queue = check_name("queue", queue)
        self.store = store if store is not None else MemoryStore()
        self._rows: QueueRows = self.store.rows(queue)
        self._lock = self.store.lock
        self.clock = clock or wall_clock

    @classmethod
    def from_url(cls, url: StorageURL, queue: str, *, clock: Clock | None = None) -> Self:
        """Open `memory://`, a store of its own, or `memory://name`, which this process shares under that name."""
        if not url.host:
            return cls(queue, clock=clock)
        with _named_lock:
            return cls(queue, _named.setdefault(url.host, MemoryStore()), clock=clock)

    def __repr__(self) -> str:
        return f"<MemoryStorage of queue {self._queue!r}>"

    @property
    def queue(self) -> str:
        return self._queue

    def freeze(self) -> Frozen:
        """Answer all that the queue has, as it is now."""
        with self._lock:
            return freeze(self._rows)

    def thaw(self, frozen: Frozen) -> None:
        """Go back to what `freeze` answered."""
        with self._lock:
            thaw(self._rows, frozen)

    def check_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return [row if isinstance(row, BatchStateError) else None for row in encode_each(batches, self._queue)]

    def create_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        rows = encode_each(batches, self._queue)
        with self._lock:
            return [self._create(batch, row) for batch, row in zip(batches, rows, strict=True)]

    def create_whole(self, batches: Sequence[Batch]) -> list[Outcome]:
        rows = encode_each(batches, self._queue)
        with self._lock:
            outcomes = []
            for batch, row in zip(batches, rows, strict=True):
                outcome = self._create(batch, row)
                outcomes.append(outcome)
                if outcome is None:
                    self._rows.bucket(batch.state).put(batch.id, batch.version)
                    for request_id in batch.request_ids:
                        self._rows.outcomes.setdefault(request_id, {}).setdefault(batch.id, "")
            return outcomes

    def get_batches(self, ids: Iterable[str]) -> dict[str, Batch | Unreadable]:
        with self._lock:
            rows = [row for batch_id in dict.fromkeys(ids) if (row := self._rows.batches.get(batch_id)) is not None]
        return {row[1]: self._decode(row) for row in rows}

    def update_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        rows = encode_each([swap.after for swap in swaps], self._queue)
        with self._lock:
            return [self._swap(swap, row) for swap, row in zip(swaps, rows, strict=True)]

    def move_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        rows = encode_each([swap.after for swap in swaps], self._queue)
        with self._lock:
            outcomes = []
            for swap, row in zip(swaps, rows, strict=True):
                outcome = self._swap(swap, row)
                outcomes.append(outcome)
                if outcome is None:
                    self._put(swap.after.state, swap.after.id, swap.after.version)
                    if swap.before.state != swap.after.state:
                        self._rows.bucket(swap.before.state).delete(swap.before.id, swap.before.version)
            return outcomes

    def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        outcomes = [self._refusal(record, check_record) for record in records]
        with self._lock:
            for record, outcome in zip(records, outcomes, strict=True):
                if outcome is None:
                    self._put(record.state, record.batch_id, record.version)
        return outcomes

    def delete_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        outcomes = [self._refusal(record, check_record) for record in records]
        with self._lock:
            for record, outcome in zip(records, outcomes, strict=True):
                if outcome is None:
                    self._rows.bucket(record.state).delete(record.batch_id, record.version)
        return outcomes

    def get_records(self, keys: Iterable[tuple[str, str]]) -> list[MembershipRecord]:
        with self._lock:
            return [
                MembershipRecord(self._queue, state, batch_id, self._rows.buckets[state].versions[batch_id])
                for state, batch_id in dict.fromkeys(keys)
                if state in self._rows.buckets and batch_id in self._rows.buckets[state].versions
            ]

    def list_records(self, state: str, cursor: str | None = None, *, limit: int = 500) -> Page[MembershipRecord]:
        with self._lock:
            bucket = self._rows.bucket(state)
            ids, more = bucket.after(cursor or "", limit)
            items = [MembershipRecord(self._queue, state, batch_id, bucket.versions[batch_id]) for batch_id in ids]
        return Page(items, ids[-1] if more else None)

    def list_records_of(self, states: Sequence[str]) -> list[MembershipRecord] | None:
        with self._lock:
            return [
                MembershipRecord(self._queue, state, batch_id, version)
                for state in states
                if state in self._rows.buckets
                for batch_id, version in self._rows.buckets[state].versions.items()
            ]

    def put_associations(self, associations: Sequence[Association]) -> list[Outcome]:
        outcomes = [self._refusal(association, check_association) for association in associations]
        with self._lock:
            for association, outcome in zip(associations, outcomes, strict=True):
                if outcome is None:
                    attempts = self._rows.outcomes.setdefault(association.request_id, {})
                    attempts.setdefault(association.batch_id, association.outcome)
        return outcomes

    def list_associations(self, request_id: str) -> list[Association]:
        with self._lock:
            attempts = list(self._rows.outcomes.get(request_id, {}).items())
        return [Association(self._queue, request_id, batch_id, outcome) for batch_id, outcome in attempts]

    def list_retired(self, cursor: str | None = None, *, limit: int = 500) -> Page[Batch | Unreadable]:
        after = (0, "") if cursor is None else tuple(json.loads(cursor))
        with self._lock:
            retired = self._rows.retired
            start = 0 if cursor is None else bisect_right(retired, after)
            keys = retired[start : start + limit]
            more = start + limit < len(retired)
            rows = [self._rows.batches[batch_id] for _, batch_id in keys]
        return Page([self._decode(row) for row in rows], json.dumps(keys[-1]) if more else None)

    def delete_batches(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        outcomes = [self._refusal(record_of(batch), check_record) for batch in batches]
        with self._lock:
            return [outcome or self._delete(batch, states) for batch, outcome in zip(batches, outcomes, strict=True)]

    def list_queues(self) -> list[str]:
        with self._lock:
            return sorted(name for name, rows in self.store.queues.items() if rows.batches or rows.jobs.added)

    def scan(self, kind: Kind, cursor: str | None = None, *, limit: int = 500) -> Page[object]:
        rows = self._rows
        with self._lock:
            if kind == "batches":
                return _page(rows.batches, cursor, limit, lambda batch_id: self._decode(rows.batches[batch_id]))
            if kind == "records":
                filed = ((state, batch_id) for state, bucket in rows.buckets.items() for batch_id in bucket.versions)
                return _page(filed, cursor, limit, self._record)
            tried = ((request_id, batch_id) for request_id, tries in rows.outcomes.items() for batch_id in tries)
            return _page(tried, cursor, limit, self._association)

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _refusal(self, item: Item, check: Callable[[Item, str], None]) -> Outcome:
        try:
            check(item, self._queue)
        except BatchStateError as error:
            return error
        return None

    def _record(self, key: tuple[str, str]) -> MembershipRecord:
        state, batch_id = key
        return MembershipRecord(self._queue, state, batch_id, self._rows.buckets[state].versions[batch_id])

    def _association(self, key: tuple[str, str]) -> Association:
        request_id, batch_id = key
        return Association(self._queue, request_id, batch_id, self._rows.outcomes[request_id][batch_id])

    def _decode(self, row: BatchRow) -> Batch | Unreadable:
        try:
            return decode_batch(row, self._queue)
        except (CorruptRowError, UnsupportedFormatError) as error:
            return error

    def _create(self, batch: Batch, row: BatchRow | BatchStateError) -> Outcome:
        if isinstance(row, BatchStateError):
            return row
        stored = self._rows.batches.get(row.id)
        if stored is not None:
            return judge_creation(batch, self._decode(stored))
        self._rows.write(row)
        return None

    def _swap(self, swap: Swap, row: BatchRow | BatchStateError) -> Outcome:
        if isinstance(row, BatchStateError):
            return row
        stored = self._rows.batches.get(row.id)
        if stored is None:
            return judge_swap(swap, None)
        mark = swap.before.mark
        if stored.version != swap.before.version or stored.retired_at is not None or (mark and stored.mark != mark):
            return judge_swap(swap, self._decode(stored))
        self._rows.write(row._replace(requests=stored.requests, created_at=stored.created_at))
        return None

    def _put(self, state: str, batch_id: str, version: int) -> None:
        if not self.sees_rows or self._rows.is_live(batch_id):
            self._rows.bucket(state).put(batch_id, version)

    def _delete(self, batch: Batch, states: Sequence[str]) -> Outcome:
        row = self._rows.batches.get(batch.id)
        if row is None:
            return None
        if row.retired_at is None:
            return InvalidTransitionError(f"batch {batch.id!r} is not retired, and only retired ones are deleted")
        if row.version != batch.version:
            return VersionMismatchError(
                f"batch {batch.id!r} is at version {row.version}, and you hold {batch.version}",
                batch_id=batch.id,
                expected=batch.version,
                applied=False,
            )
        for state in states:
            self._rows.bucket(state).delete(batch.id, batch.version)
        for request_id in batch.request_ids:
            attempts = self._rows.outcomes.get(request_id)
            if attempts is not None:
                attempts.pop(batch.id, None)
                if not attempts:
                    del self._rows.outcomes[request_id]
        self._rows.jobs.holds.pop(batch.id, None)
        self._rows.forget(row)
        return None


Key = TypeVar("Key", str, tuple[str, str])


def _page(keys: Iterable[Key], cursor: str | None, limit: int, read: Callable[[Key], object]) -> Page[object]:
    """Answer what is read at the keys that come after the one in `cursor`, in order, a page of them."""
    if cursor is not None:
        after = json.loads(cursor)
        keys = (key for key in keys if _plain(key) > after)
    found = nsmallest(limit + 1, keys)
    return Page([read(key) for key in found[:limit]], json.dumps(found[limit - 1]) if len(found) > limit else None)


def _plain(key: str | tuple[str, str]) -> Any:  # noqa: ANN401 - compared with what JSON gives back
    """Answer a key as JSON gives it back."""
    return key if isinstance(key, str) else list(key)
