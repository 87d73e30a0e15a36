"""Variants of the memory adapter that the model tests run on: what other backends do, and what none may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from batchstate.entities import Batch, MembershipRecord
from batchstate.errors import InvalidTransitionError
from batchstate.three_steps import ThreeSteps
from batchstate_memory import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.storage import Outcome
    from batchstate.testing.forwarding import Forwarding

FOR_EVER = 10**9
"""A version that no batch comes to."""


class Blind(MemoryStorage):
    """Its put cannot see the row, as on a backend without transactions."""

    sees_rows: ClassVar[bool] = False


class Unfenced(Blind):
    """Its put and its delete heed no version: the published form of the protocol."""

    def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        """Overwrite whatever is there."""
        super().delete_records([_at(record, FOR_EVER) for record in records])
        return super().put_records(records)

    def delete_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        """Delete whatever is there."""
        return super().delete_records([_at(record, FOR_EVER) for record in records])


class Piecemeal(MemoryStorage):
    """What is left of a batch is deleted in three calls; see `InPieces`."""

    def delete_associations(self, batch: Batch) -> None:
        """Delete the associations of a batch with its requests."""
        for request_id in batch.request_ids:
            self._rows.outcomes.get(request_id, {}).pop(batch.id, None)

    def delete_row(self, batch: Batch) -> None:
        """Delete the row of a batch, if it is at that version."""
        row = self._rows.batches.get(batch.id)
        if row is not None and row.version == batch.version:
            self._rows.forget(row)


class BlindPiecemeal(Piecemeal, Blind):
    """Both."""


class InPieces(ThreeSteps):
    """Sees a `Piecemeal` store as a purge does that has no transaction: records, then associations, then the row."""

    def delete_batches(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        """Delete what is left of each, in three calls."""
        asking = cast("Forwarding", self._store)
        inside: Piecemeal = asking.inner
        outcomes: list[Outcome] = []
        for batch in batches:
            row = self.get_batches([batch.id]).get(batch.id)
            if isinstance(row, Batch) and row.retired_at is None:
                outcomes.append(InvalidTransitionError(f"batch {batch.id!r} is not retired"))
                continue
            if row is not None:
                self.delete_records([_record(batch, state) for state in states])
                asking._send(inside.delete_associations, batch)
                asking._send(inside.delete_row, batch)
            outcomes.append(None)
        return outcomes


def _at(record: MembershipRecord, version: int) -> MembershipRecord:
    return type(record)(record.queue, record.state, record.batch_id, version)


def _record(batch: Batch, state: str) -> MembershipRecord:
    return MembershipRecord(batch.queue, state, batch.id, batch.version)
