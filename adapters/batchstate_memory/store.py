"""What an in-memory store holds: a lock, and for each queue its rows, buckets and associations."""

from __future__ import annotations

from bisect import bisect_right, insort
from threading import RLock
from typing import TYPE_CHECKING

from batchstate_memory.job_rows import JobRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.wire import BatchRow

__all__ = ["Bucket", "MemoryStore", "QueueRows"]


class Bucket:
    """The records of one state: batch ID to version, listed in the order of IDs."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self._ordered: list[str] | None = []

    def put(self, batch_id: str, version: int) -> None:
        """Keep the higher version."""
        stored = self.versions.get(batch_id)
        if stored is None:
            self._ordered = None
            self.versions[batch_id] = version
        elif stored < version:
            self.versions[batch_id] = version

    def delete(self, batch_id: str, up_to: int) -> None:
        """Delete the record unless its version is above the one given."""
        stored = self.versions.get(batch_id)
        if stored is not None and stored <= up_to:
            self._ordered = None
            del self.versions[batch_id]

    def after(self, batch_id: str, limit: int) -> tuple[list[str], bool]:
        """Answer up to `limit` IDs that come after this one, and whether more follow."""
        if self._ordered is None:
            self._ordered = sorted(self.versions)
        start = bisect_right(self._ordered, batch_id)
        return self._ordered[start : start + limit], start + limit < len(self._ordered)


class QueueRows:
    """One queue's rows."""

    def __init__(self) -> None:
        self.batches: dict[str, BatchRow] = {}
        self.buckets: dict[str, Bucket] = {}
        self.outcomes: dict[str, dict[str, str]] = {}
        """Request ID to batch ID to outcome: the associations."""
        self.retired: list[tuple[int, str]] = []
        """`(retired_at, batch ID)`, sorted."""
        self.jobs = JobRows()

    def bucket(self, state: str) -> Bucket:
        """Answer the bucket of a state, made where there is none."""
        found = self.buckets.get(state)
        if found is None:
            found = self.buckets[state] = Bucket()
        return found

    def is_live(self, batch_id: str) -> bool:
        """Answer whether the batch has a row that is not retired."""
        row = self.batches.get(batch_id)
        return row is not None and row.retired_at is None

    def write(self, row: BatchRow) -> None:
        """Store a row, filing it where it is retired."""
        self.batches[row.id] = row
        if row.retired_at is not None:
            insort(self.retired, (row.retired_at, row.id))

    def forget(self, row: BatchRow) -> None:
        """Delete a retired row."""
        del self.batches[row.id]
        self.retired.remove((row.retired_at or 0, row.id))


class MemoryStore:
    """A store in this process's memory, for any number of queues and threads."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.queues: dict[str, QueueRows] = {}
        self._listeners: list[Callable[[], None]] = []

    def rows(self, queue: str) -> QueueRows:
        """Answer the rows of a queue."""
        with self.lock:
            return self.queues.setdefault(queue, QueueRows())

    def listen(self, nudge: Callable[[], None]) -> Callable[[], None]:
        """Call `nudge` when jobs may have become claimable, until the answer is called."""
        with self.lock:
            self._listeners.append(nudge)

        def forget() -> None:
            with self.lock:
                self._listeners.remove(nudge)

        return forget

    def nudge(self) -> None:
        """Tell whoever listens that jobs may have become claimable."""
        for listener in tuple(self._listeners):
            listener()
