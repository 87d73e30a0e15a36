"""The three steps of the protocol, whatever the store could do better: what `atomic=False` opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from batchstate.entities import Association, Batch, MembershipRecord
    from batchstate.storage import Kind, Outcome, Page, Storage, Swap, Unreadable

__all__ = ["ThreeSteps"]


class ThreeSteps:
    """A storage with its capabilities hidden: every move is a swap, a put and a delete, one after the other.

    It means the same and may be mixed with the other kind on one store. It shows what the protocol
    does on a backend without transactions, and leaves something to repair where a worker is killed.

    Args:
        store: the storage that does the work; closing this one closes that.
    """

    def __init__(self, store: Storage) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<ThreeSteps of {self._store!r}>"

    @property
    def whole(self) -> Storage:
        """The storage that does the work, with its capabilities."""
        return self._store

    @property
    def queue(self) -> str:
        return self._store.queue

    def check_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return self._store.check_batches(batches)

    def create_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return self._store.create_batches(batches)

    def get_batches(self, ids: Iterable[str]) -> dict[str, Batch | Unreadable]:
        return self._store.get_batches(ids)

    def update_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        return self._store.update_batches(swaps)

    def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._store.put_records(records)

    def delete_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._store.delete_records(records)

    def get_records(self, keys: Iterable[tuple[str, str]]) -> list[MembershipRecord]:
        return self._store.get_records(keys)

    def list_records(self, state: str, cursor: str | None = None, *, limit: int = 500) -> Page[MembershipRecord]:
        return self._store.list_records(state, cursor, limit=limit)

    def put_associations(self, associations: Sequence[Association]) -> list[Outcome]:
        return self._store.put_associations(associations)

    def list_associations(self, request_id: str) -> list[Association]:
        return self._store.list_associations(request_id)

    def list_retired(self, cursor: str | None = None, *, limit: int = 500) -> Page[Batch | Unreadable]:
        return self._store.list_retired(cursor, limit=limit)

    def delete_batches(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        return self._store.delete_batches(batches, states)

    def list_queues(self) -> list[str]:
        return self._store.list_queues()

    def scan(self, kind: Kind, cursor: str | None = None, *, limit: int = 500) -> Page[object]:
        return self._store.scan(kind, cursor, limit=limit)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
