"""A storage that stands before another: every primitive call goes through one method, `_send`.

`isinstance` on a runtime-checkable protocol asks the class of an object, and the core chooses its
path by it. So a storage that stands before another must have a class with exactly the other's
capabilities; it is made here, once for each set of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from attrs import field, frozen

from batchstate.job_storage import JobStorage, Restorable
from batchstate.storage import AtomicCreates, AtomicMoves, SnapshotListing, Storage

if TYPE_CHECKING:
    from types import TracebackType

    from batchstate.entities import Association, Batch, MembershipRecord
    from batchstate.storage import Kind, Outcome, Page, Swap, Unreadable

__all__ = ["JOB_WRITES", "Call", "Forwarding"]

P = ParamSpec("P")
T = TypeVar("T")


@frozen
class Call:
    """One primitive call.

    Attributes:
        method: the name of the storage's method.
        args: its arguments by position.
        kwargs: its arguments by name.
    """

    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(factory=dict)


class Forwarding:
    """Sends every call of the protocol and of the other's capabilities through `_send`.

    Not so `queue` and `check_batches`, which do no I/O, and `close`, which closes nothing: this
    is not the other's owner.

    Args:
        store: the storage that does the work.
    """

    def __new__(cls, store: Storage, *_args: object) -> Self:
        """Answer an instance of the subclass that has the capabilities of `store`, and no others."""
        return object.__new__(_variant(cls, tuple(isinstance(store, able) for able in _ABILITIES)))

    def __init__(self, store: Storage) -> None:
        self._store: Any = store  # any storage, with what capabilities the class says

    def _send(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Answer what `method`, one of the other storage's, answers to these arguments."""
        raise NotImplementedError

    @property
    def inner(self) -> Any:  # noqa: ANN401 - whatever was wrapped
        """The storage inside."""
        return self._store

    @property
    def queue(self) -> str:
        return self._inside.queue

    def check_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return self._inside.check_batches(batches)

    def create_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return self._send(self._inside.create_batches, batches)

    def get_batches(self, ids: Iterable[str]) -> dict[str, Batch | Unreadable]:
        return self._send(self._inside.get_batches, list(ids))

    def update_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        return self._send(self._inside.update_batches, swaps)

    def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._send(self._inside.put_records, records)

    def delete_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._send(self._inside.delete_records, records)

    def get_records(self, keys: Iterable[tuple[str, str]]) -> list[MembershipRecord]:
        return self._send(self._inside.get_records, list(keys))

    def list_records(self, state: str, cursor: str | None = None, *, limit: int = 500) -> Page[MembershipRecord]:
        return self._send(self._inside.list_records, state, cursor, limit=limit)

    def put_associations(self, associations: Sequence[Association]) -> list[Outcome]:
        return self._send(self._inside.put_associations, associations)

    def list_associations(self, request_id: str) -> list[Association]:
        return self._send(self._inside.list_associations, request_id)

    def list_retired(self, cursor: str | None = None, *, limit: int = 500) -> Page[Batch | Unreadable]:
        return self._send(self._inside.list_retired, cursor, limit=limit)

    def delete_batches(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        return self._send(self._inside.delete_batches, batches, states)

    def list_queues(self) -> list[str]:
        return self._send(self._inside.list_queues)

    def scan(self, kind: Kind, cursor: str | None = None, *, limit: int = 500) -> Page[object]:
        return self._send(self._inside.scan, kind, cursor, limit=limit)

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

    @property
    def _inside(self) -> Storage:
        store: Storage = self._store
        return store


class _Moves(Forwarding):
    def move_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        inside: AtomicMoves = self._store
        return self._send(inside.move_batches, swaps)


class _Creates(Forwarding):
    def create_whole(self, batches: Sequence[Batch]) -> list[Outcome]:
        inside: AtomicCreates = self._store
        return self._send(inside.create_whole, batches)


class _Snapshots(Forwarding):
    def list_records_of(self, states: Sequence[str]) -> list[MembershipRecord] | None:
        inside: SnapshotListing = self._store
        return self._send(inside.list_records_of, states)


def _sent(name: str) -> Callable[..., object]:
    def forward(self: Forwarding, *args: object, **kwargs: object) -> object:
        return self._send(getattr(self.inner, name), *args, **kwargs)

    return forward


JOB_WRITES = (
    "add_jobs",
    "claim_jobs",
    "extend_claim",
    "extend_job",
    "settle_jobs",
    "sweep_jobs",
    "revive_jobs",
    "remove_jobs",
    "move_job",
    "set_paused",
    "set_ceiling",
    "purge_jobs",
    "take_hold",
    "extend_hold",
    "release_hold",
)
"""The calls of a `JobStorage` that change the store."""

_JOB_READS = ("count_jobs", "count_claimable", "get_claims", "get_jobs", "list_jobs", "list_claims", "now")

_Jobs: type[Forwarding] = type(
    "_Jobs",
    (Forwarding,),
    {
        "max_claim": property(lambda self: self.inner.max_claim),
        **{name: _sent(name) for name in (*JOB_WRITES, *_JOB_READS)},
    },
)
_Restoring: type[Forwarding] = type("_Restoring", (Forwarding,), {"restore_jobs": _sent("restore_jobs")})
_ABILITIES: dict[Any, type[Forwarding]] = {
    AtomicMoves: _Moves,
    AtomicCreates: _Creates,
    SnapshotListing: _Snapshots,
    JobStorage: _Jobs,
    Restorable: _Restoring,
}
_variants: dict[tuple[type, tuple[bool, ...]], type] = {}


def _variant(cls: type[T], able: tuple[bool, ...]) -> type[T]:
    if (cls, able) not in _variants:
        parts = [part for part, has in zip(_ABILITIES.values(), able, strict=True) if has]
        _variants[cls, able] = type(cls.__name__, (cls, *parts), {"__module__": cls.__module__})
    return _variants[cls, able]
