"""What can be seen of a store at one instant: what the promises are held against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import frozen

from batchstate.entities import Batch, MembershipRecord
from batchstate.lifecycle import Lifecycle
from batchstate.listing import pages_of
from batchstate.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable


__all__ = ["World", "look"]


@frozen
class World:
    """One instant of a store.

    Attributes:
        store: the store at that instant, to be asked further.
        lifecycle: its lifecycle.
        rows: the rows by batch ID, retired ones too.
        records: all membership records.
        acknowledged: the batches whose creation was acknowledged.
    """

    store: Storage
    lifecycle: Lifecycle
    rows: Mapping[str, Batch]
    records: tuple[MembershipRecord, ...]
    acknowledged: frozenset[str]

    @property
    def live(self) -> list[Batch]:
        """The rows that are not retired and whose creation was acknowledged."""
        return [batch for batch in self.rows.values() if batch.retired_at is None and batch.id in self.acknowledged]

    def __str__(self) -> str:
        rows = [
            f"{batch.id} {batch.state} v{batch.version}{' retired' if batch.retired_at is not None else ''}"
            for batch in self.rows.values()
        ]
        records = [f"{record.state}: {record.batch_id} v{record.version}" for record in self.records]
        return f"{', '.join(rows) or 'no row'} | {', '.join(records) or 'no record'}"


def look(store: Storage, lifecycle: Lifecycle, batch_ids: Iterable[str], acknowledged: frozenset[str]) -> World:
    """Look at a store that nobody else is writing to.

    Args:
        store: the store.
        lifecycle: its lifecycle; the records under all of its states are read.
        batch_ids: the batches there may be.
        acknowledged: those among them whose creation was acknowledged.
    """
    rows = store.get_batches(batch_ids)
    records = [record for state in lifecycle.states for page in pages_of(store, state, 500) for record in page]
    batches = {batch_id: row for batch_id, row in sorted(rows.items()) if isinstance(row, Batch)}
    return World(store, lifecycle, batches, tuple(records), acknowledged)
