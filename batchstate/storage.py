"""The `Storage` protocol: what a backend must do, and what it may do better. The contract is in the docstrings.

Every method takes many and answers for each of them, in the order given, so one is many of one and
the adapter decides how many round trips that costs. A refusal of one item is *answered*, as an
error object in its place; what concerns the whole call (the store cannot be reached) is *raised* as
`StorageUnavailableError`, and may then have been done for some items, all or none, each one whole.
Items of one call that name the same row are applied in the order given.

A storage is bound to one queue and can neither read nor write another's rows. Every read sees every
write acknowledged before it, by whichever client. Methods may be called from several threads at
once. `batchstate.testing` has the contract as a suite of tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Generic, Literal, Protocol, Self, TypeAlias, TypeGuard, TypeVar, runtime_checkable

from attrs import frozen

from batchstate.entities import Association, Batch, MembershipRecord
from batchstate.errors import (
    AlreadyExistsError,
    BatchStateError,
    CorruptRowError,
    InvalidTransitionError,
    InvalidValueError,
    NotFoundError,
    UnsupportedFormatError,
    VersionMismatchError,
)
from batchstate.marks import mark_at
from batchstate.wire import check_version

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "AtomicCreates",
    "AtomicMoves",
    "Kind",
    "Outcome",
    "Page",
    "SnapshotListing",
    "Storage",
    "Swap",
    "Unreadable",
    "judge_creation",
    "judge_swap",
    "moves_at_once",
]

T_co = TypeVar("T_co", covariant=True)

Outcome: TypeAlias = BatchStateError | None
"""What became of one item of a writing call: `None` for done, else why it was refused."""

Unreadable: TypeAlias = CorruptRowError | UnsupportedFormatError
"""What a reading call answers in place of a row that it cannot read."""

Kind: TypeAlias = Literal["batches", "records", "associations"]
"""What `scan` can go through."""


@frozen
class Page(Generic[T_co]):
    """One page of a listing.

    Attributes:
        items: what it holds; a page may be empty though more follow.
        cursor: what to ask the next page with; `None` at the end. Opaque, and good for this listing
            only.
    """

    items: Sequence[T_co]
    cursor: str | None = None


@frozen
class Swap:
    """One compare-and-swap of a row.

    Attributes:
        before: the batch as it was read. The stored row must be at its version and, where `before`
            knows the mark of that version, carry that mark: a store that lost acknowledged writes
            may have reached the same version by another history.
        after: the batch as it shall be: one version up, with this write's mark as the last of its
            marks.

    Raises:
        InvalidValueError: the two are not the same batch one version apart, so that no write could
            lower a version or skip one.
    """

    before: Batch
    after: Batch

    def __attrs_post_init__(self) -> None:
        """Check that the two belong together."""
        before, after = self.before, self.after
        check_version(before.version, "version")
        if (after.id, after.queue, after.version) != (before.id, before.queue, before.version + 1):
            msg = (
                f"a swap leads from one version of a batch to the next, not from {before.id!r} of {before.queue!r} at "
                f"{before.version} to {after.id!r} of {after.queue!r} at {after.version}"
            )
            raise InvalidValueError(msg)


@runtime_checkable
class Storage(Protocol):
    """One queue's rows in a store."""

    @property
    def queue(self) -> str:
        """The queue this storage is bound to."""

    def check_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        """Say, without I/O, which of these `create_batches` would refuse for what they hold or for their size.

        Answers per item: `QueueMismatchError`, `InvalidNameError`, `InvalidValueError`,
            `TooLargeError`, or `None`.
        """

    def create_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        """Insert each batch as it stands, at its own version, if there is no row of its ID.

        Answers per item: `None` once the row is there, also where it already is and carries this
            very write's mark (a re-sent creation); `AlreadyExistsError` with the row that was met,
            which stays as it is (`judge_creation`); or as `check_batches` does, with nothing
            written. The queue's name is known to `list_queues` from then on.
        """

    def get_batches(self, ids: Iterable[str]) -> dict[str, Batch | Unreadable]:
        """Load rows by key, strongly consistent.

        Missing IDs are absent from the answer, duplicates in `ids` are fine. A row that cannot be
        read is answered with the error that names it, and costs the others nothing. Nothing handed
        out is shared with the store.
        """

    def update_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        """Swap each row whose version, and mark where `before` knows it, are those of `before`, for `after`.

        The whole row is written except `request_ids` and `created_at`, which stay as they are
        stored. An update that sets `retired_at` also files the row for `list_retired`, no later
        than the swap is seen.

        Answers per item: `None` once the row is `after`; `VersionMismatchError` with the row that
            was met; `NotFoundError` where there is none; `InvalidTransitionError` where the row is
            retired, which accepts no change; or as `check_batches`. A failed condition whose row
            remembers our mark is success (`judge_swap`).
        """

    def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        """File each record; one that is there with a version as high or higher stays as it is.

        Where the step can see the row, a put for an absent or retired batch does nothing,
        successfully.
        Answers per item: `None`, `QueueMismatchError`, `InvalidNameError` or `InvalidValueError`.
        """

    def delete_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        """Delete each record unless the stored one's version is above the one given; an absent one is no error.

        Answers per item as `put_records` does.
        """

    def get_records(self, keys: Iterable[tuple[str, str]]) -> list[MembershipRecord]:
        """Load records by `(state, batch_id)`, strongly consistent; missing ones are absent from the answer."""

    def list_records(self, state: str, cursor: str | None = None, *, limit: int = 500) -> Page[MembershipRecord]:
        """List the records filed under `state`, a page of about `limit` at a time.

        A record that is there throughout the paging is returned, in some order of the backend's
        own, once or more.
        """

    def put_associations(self, associations: Sequence[Association]) -> list[Outcome]:
        """File each association; one that is there stays as it is, with its outcome.

        Answers per item as `put_records` does.
        """

    def list_associations(self, request_id: str) -> list[Association]:
        """List all associations of a request, past any page limit, in no particular order."""

    def list_retired(self, cursor: str | None = None, *, limit: int = 500) -> Page[Batch | Unreadable]:
        """List the retired rows, those retired longest ago first, a page of about `limit` at a time."""

    def delete_batches(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        """Delete what is left of retired batches: records, then associations, then the row, in that order.

        Args:
            batches: as they were read. Only a row still at that version and retired is deleted.
            states: every state a record may be filed under; those up to the batch's version go.

        Answers per item: `None` once it is gone or where it already was; `VersionMismatchError`
            where the row is not at that version; `InvalidTransitionError` where it is not retired;
            or as `put_records` does. In all these cases nothing was deleted.
        """

    def list_queues(self) -> list[str]:
        """List the names of all queues that have rows in this store, sorted."""

    def scan(self, kind: Kind, cursor: str | None = None, *, limit: int = 500) -> Page[object]:
        """Go through all rows of a kind in this queue, a page of about `limit` at a time, however slowly.

        `"batches"` gives `Batch` or the error that names an unreadable row, retired ones too;
        `"records"` gives `MembershipRecord`; `"associations"` gives `Association`. A row there
        throughout is returned, once or more.
        """

    def close(self) -> None:
        """Give back what this storage opened itself; a borrowed client is left open. Twice is harmless."""

    def __enter__(self) -> Self:
        """Answer itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""


@runtime_checkable
class AtomicMoves(Protocol):
    """A storage that does the three steps of a move as one."""

    def move_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        """As `update_batches`, and in the same step file the record of `after` and delete that of `before`.

        For each swap that is applied, or found applied already: the record `(after.state, id,
            after.version)` is put and, where the states differ, `(before.state, id)` is deleted up
            to `before.version`, in one step with the row; both by the rules of `put_records` and
            `delete_records`. Where the answer is an error, no record was touched.
        """


@runtime_checkable
class AtomicCreates(Protocol):
    """A storage that creates a batch with its associations and record as one."""

    def create_whole(self, batches: Sequence[Batch]) -> list[Outcome]:
        """As `create_batches`, and in the same step file each batch's associations and the record of its state.

        Where the answer is an error, nothing of that item was written.
        """


@runtime_checkable
class SnapshotListing(Protocol):
    """A storage that can read several buckets as they were at one instant."""

    def list_records_of(self, states: Sequence[str]) -> list[MembershipRecord] | None:
        """List the records of all these states as of one instant, in the order of `states`.

        Answers `None` where they are too many for one snapshot; they are then to be paged, with the
        weaker promise.
        """


def moves_at_once(store: Storage) -> TypeGuard[AtomicMoves]:
    """Answer whether the storage does a move in one step.

    As `isinstance(store, AtomicMoves)`, which looks at every method each time, remembered for the storage's class.
    """
    return _has(type(store), AtomicMoves)


@cache
def _has(kind: type, capability: type) -> bool:
    return issubclass(kind, capability)


def judge_creation(batch: Batch, met: Batch | Unreadable) -> Outcome:
    """Answer what a creation that met a row amounts to; `met` is what stands there.

    The row carrying the creation's own mark at its version is success: the command was sent twice.
    """
    if isinstance(met, BatchStateError):
        return met
    if batch.mark and mark_at(met.marks, batch.version) == batch.mark:
        return None
    return AlreadyExistsError(
        f"batch {batch.id!r} of queue {batch.queue!r} exists, in state {met.state!r} at version {met.version}; "
        "batch IDs are never reused",
        current=met,
    )


def judge_swap(swap: Swap, met: Batch | Unreadable | None) -> Outcome:
    """Answer what a swap whose condition failed amounts to; `met` is the row that was met, `None` where there is none.

    The row remembering the swap's own mark at the version it wanted to write is success: the
    command was sent twice.
    """
    before, after = swap.before, swap.after
    if met is None:
        return NotFoundError(f"there is no batch {before.id!r} in queue {before.queue!r}")
    if isinstance(met, BatchStateError):
        return met
    remembered = mark_at(met.marks, after.version)
    if remembered is not None and remembered == after.mark:
        return None
    if met.retired_at is not None and met.version == before.version:
        return InvalidTransitionError(f"batch {before.id!r} is retired and accepts no change")
    if met.version == before.version:
        what = f"is at version {met.version} by another history: the store lost writes it had acknowledged"
    else:
        what = f"is at version {met.version}, in state {met.state!r}, and you hold version {before.version}"
    return VersionMismatchError(
        f"batch {before.id!r} {what}; read it again and decide anew",
        batch_id=before.id,
        expected=before.version,
        current=met,
        applied=None if remembered is None and met.version >= after.version else False,
    )
