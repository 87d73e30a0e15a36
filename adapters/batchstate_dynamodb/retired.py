"""Retired rows: listed from a bucket of their own, oldest first, and deleted for good.

An entry is filed before the swap that retires its row, so that no retired row is ever without one.
A swap that loses, or a crash in between, leaves an entry whose mark its row does not carry: it is
passed over, and removed once no writer can still need it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from batchstate.errors import (
    BatchStateError,
    InvalidTransitionError,
    StorageUnavailableError,
    VersionMismatchError,
)
from batchstate.storage import Page
from batchstate.tidying import RETENTION
from batchstate.times import milliseconds
from batchstate_dynamodb.expressions import delete_record, delete_row
from batchstate_dynamodb.layout import Filing, Key, key_of, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from batchstate.entities import Batch
    from batchstate.storage import Outcome, Unreadable
    from batchstate.times import Clock
    from batchstate_dynamodb.layout import Item, Layout
    from batchstate_dynamodb.requests import Requests
    from batchstate_dynamodb.sharding import Shards

__all__ = ["Retired"]

_LONGEST_STALL: Final = milliseconds(RETENTION, "retention")


class _Entries(NamedTuple):
    filings: list[tuple[Filing, int]]
    last: str | None


class Retired:
    """The bucket of retired rows of one queue.

    Args:
        requests: the way to the table.
        layout: where things lie.
        shards: over how many partitions the bucket is spread, as records are.
        clock: answers the time.
    """

    def __init__(self, requests: Requests, layout: Layout, shards: Shards, clock: Clock) -> None:
        self._requests = requests
        self._layout = layout
        self._shards = shards
        self._clock = clock

    def key(self, batch: Batch) -> Key:
        """The key of the entry of a batch that is retired, or shall be."""
        filing = Filing(batch.retired_at or 0, batch.id, batch.mark)
        return Key(self._layout.retired(self._shards.home(batch.id)), filing.sk)

    def page(self, cursor: str | None, limit: int) -> Page[Batch | Unreadable]:
        """Answer one page of the retired rows; the cursor is the last entry's sort key."""
        entries = self._entries(cursor, max(limit, 1))
        found = self._requests.get_many(
            (self._layout.row(filing.batch_id) for filing, _ in entries.filings), self._read_row
        )
        rows: dict[str, Batch | Unreadable] = {}
        strays: list[Key] = []
        for filing, shard in entries.filings:
            row, retired = found.get(self._layout.row(filing.batch_id), (None, False))
            if isinstance(row, BatchStateError):
                if retired:
                    rows[filing.batch_id] = row
            elif row is not None and row.retired_at == filing.at and row.mark == filing.mark:
                rows[filing.batch_id] = row
            elif row is None or filing.at <= self._clock() - _LONGEST_STALL:
                strays.append(Key(self._layout.retired(shard), filing.sk))
        if strays:
            with suppress(StorageUnavailableError):  # they cost a read each, and the next listing sees them again
                self._requests.delete_many(strays)
        return Page(list(rows.values()), entries.last)

    def _read_row(self, item: Item) -> tuple[Batch | Unreadable, bool]:
        """Answer a row, and whether it is retired, which is seen also of one that cannot be read."""
        return self._layout.read_row(item), "retired_at" in item

    def _entries(self, cursor: str | None, limit: int) -> _Entries:
        """Answer the next entries with their shards, in order over all shards, and where the next page begins."""
        shards = self._shards.all
        each = -(-limit // len(shards))
        pages = self._requests.side_by_side(
            lambda shard: self._requests.query(self._layout.retired(shard), cursor, each), shards
        )
        open_ends = [page.last for page in pages if page.last is not None]
        horizon = min(open_ends) if open_ends else None
        found = sorted(
            (read_text(item, "sk"), shard) for shard, page in zip(shards, pages, strict=True) for item in page.items
        )
        return _Entries([(Filing.of(sk), shard) for sk, shard in found if horizon is None or sk <= horizon], horizon)

    def delete(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        """Delete what is left of retired batches: records, associations, rows, and at last their entries here."""
        rows = self._requests.get_many((self._layout.row(batch.id) for batch in batches), self._layout.read_row)
        outcomes: list[Outcome] = []
        present: list[Batch] = []
        gone: list[Batch] = []
        for batch in batches:
            row = rows.get(self._layout.row(batch.id))
            outcomes.append(None if row is None else _refusal(batch, row))
            if row is None:
                gone.append(batch)
            elif outcomes[-1] is None and not isinstance(row, BatchStateError):
                present.append(row)
        self._delete_records(present, states)
        self._requests.delete_many(
            Key(self._layout.attempts(request_id), batch.id) for batch in present for request_id in batch.request_ids
        )
        self._requests.side_by_side(self._delete_row, present)
        self._requests.delete_many(
            self.key(batch)._replace(pk=self._layout.retired(shard))
            for batch in [*present, *gone]
            for shard in self._shards.places(batch.id)
        )
        return outcomes

    def _delete_records(self, batches: Iterable[Batch], states: Sequence[str]) -> None:
        """Look which records there are, a hundred a request, and delete those: most batches have none left."""
        versions = {
            Key(self._layout.bucket(state, shard), batch.id): batch.version
            for batch in batches
            for state in states
            for shard in self._shards.places(batch.id)
        }
        self._requests.side_by_side(
            lambda key: self._delete_record(key, versions[key]), self._requests.get_many(versions, key_of)
        )

    def _delete_record(self, key: Key, up_to: int) -> None:
        self._requests.attempt("delete_item", **delete_record(key, up_to))

    def _delete_row(self, batch: Batch) -> None:
        # A retired row accepts no change: where the condition fails, another purge was faster.
        self._requests.attempt("delete_item", **delete_row(self._layout.row(batch.id), batch.version))


def _refusal(batch: Batch, row: Batch | Unreadable) -> Outcome:
    if isinstance(row, BatchStateError):
        return row
    if row.retired_at is None:
        return InvalidTransitionError(f"batch {batch.id!r} is not retired, and only retired ones are deleted")
    if row.version != batch.version:
        return VersionMismatchError(
            f"batch {batch.id!r} is at version {row.version}, and you hold {batch.version}",
            batch_id=batch.id,
            expected=batch.version,
            current=row,
            applied=False,
        )
    return None
