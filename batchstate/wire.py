"""What is stored of a batch: one neutral row, the same for every backend, validated on the way in.

A backend lays the row out as suits it, compares its scalars, and only carries its texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from pydantic import Field, Json, TypeAdapter, ValidationError

from batchstate.entities import Association, Batch, History, MembershipRecord, RowMemory
from batchstate.errors import (
    BatchStateError,
    CorruptRowError,
    InvalidValueError,
    QueueMismatchError,
    TooLargeError,
    UnsupportedFormatError,
)
from batchstate.names import MAX_NAME_BYTES, check_name
from batchstate.values import encode_object, encode_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "FORMAT",
    "BatchRow",
    "check_association",
    "check_record",
    "check_version",
    "decode_batch",
    "encode_batch",
    "encode_each",
    "requests_text",
]

FORMAT: Final = 1
"""The format of the rows that this program writes; it reads this one and every earlier one."""


class BatchRow(NamedTuple):
    """A batch as it is stored.

    Attributes:
        format: of the row, see `FORMAT`.
        id: the batch's ID.
        version: the compare-and-swap guard.
        state: the state the batch is in.
        entered: the version at which it entered that state.
        created_at: milliseconds since the epoch, as all times.
        updated_at: the same.
        retired_at: the same, or `None`.
        marks: the last 8 `version:mark`, oldest first, a space between; the last is this version's.
        moves: the last 20 moves, a JSON array a line.
        requests: the request IDs, a JSON array. Written once; an update leaves the stored ones
            alone.
        attributes: the user's JSON object.
    """

    format: int
    id: str
    version: int
    state: str
    entered: int
    created_at: int
    updated_at: int
    retired_at: int | None
    marks: str
    moves: str
    requests: str
    attributes: str

    @property
    def mark(self) -> str:
        """This version's mark."""
        return self.marks[self.marks.rfind(":") + 1 :]

    @property
    def size(self) -> int:
        """How many bytes the texts of the row take, which is all of it but some 100 bytes."""
        text = f"{self.id}{self.state}{self.marks}{self.moves}{self.requests}{self.attributes}"
        return len(text) if text.isascii() else len(text.encode())


def encode_batch(batch: Batch, queue: str, *, most: int | None = None) -> BatchRow:
    """Answer the row of `batch`, checked in full and before any I/O.

    Args:
        batch: the batch as it shall be stored.
        queue: the queue of the storage that will write it.
        most: how large the backend's rows may be, in bytes; `None` for no limit.

    Raises:
        QueueMismatchError: the batch belongs to another queue.
        InvalidNameError: one of its names is none.
        InvalidValueError: its version is no positive int, it carries no mark of that version, or its
            attributes are not JSON.
        TooLargeError: the row would be larger than `most`.
    """
    _check_queue(batch.queue, queue, f"batch {batch.id!r}")
    check_name("batch", batch.id)
    check_name("state", batch.state)
    check_version(batch.version, "version")
    check_version(batch.entered, "entered")
    if not batch.marks.rpartition(" ")[2].startswith(f"{batch.version}:"):
        msg = f"batch {batch.id!r} carries no mark of its version {batch.version}; create_batch and transition give one"
        raise InvalidValueError(msg)
    row = BatchRow(
        FORMAT,
        batch.id,
        batch.version,
        batch.state,
        batch.entered,
        batch.created_at,
        batch.updated_at,
        batch.retired_at,
        batch.marks,
        batch.history.text,
        requests_text(batch),
        encode_object(batch.attributes, "attributes"),
    )
    if most is not None and row.size > most:
        msg = f"batch {batch.id!r} takes {row.size:,} bytes, and this backend stores at most {most:,}"
        raise TooLargeError(msg)
    return row


def requests_text(batch: Batch) -> str:
    """Answer the JSON array of the batch's request IDs, checked; raises `InvalidNameError` or `InvalidValueError`."""
    memory = batch.memory
    if memory is not None and memory.request_ids is batch.request_ids:
        return memory.requests
    if type(batch.request_ids) is not tuple:
        msg = f"request_ids must be a tuple of str, not {type(batch.request_ids).__name__}"
        raise InvalidValueError(msg)
    for request_id in batch.request_ids:
        check_name("request", request_id)
    return encode_plain(batch.request_ids, "request_ids")


def encode_each(batches: Sequence[Batch], queue: str, *, most: int | None = None) -> list[BatchRow | BatchStateError]:
    """Answer for each batch its row, or the error why it has none; arguments as for `encode_batch`."""
    answers: list[BatchRow | BatchStateError] = []
    for batch in batches:
        try:
            answers.append(encode_batch(batch, queue, most=most))
        except BatchStateError as error:
            answers.append(error)
    return answers


def check_record(record: MembershipRecord, queue: str) -> None:
    """Raise the `BatchStateError` that says why this storage cannot file or look for `record`, if it cannot."""
    _check_queue(record.queue, queue, f"the record of batch {record.batch_id!r}")
    check_name("state", record.state)
    check_name("batch", record.batch_id)
    check_version(record.version, "a record's version")


def check_association(association: Association, queue: str) -> None:
    """Raise the `BatchStateError` that says why this storage cannot file `association`, if it cannot."""
    _check_queue(association.queue, queue, f"the association of batch {association.batch_id!r}")
    check_name("request", association.request_id)
    check_name("batch", association.batch_id)


def _check_queue(theirs: str, ours: str, what: str) -> None:
    if theirs != ours:
        msg = f"{what} belongs to queue {theirs!r}, and this storage is bound to {ours!r}"
        raise QueueMismatchError(msg)


def check_version(version: object, what: str) -> None:
    """Raise `InvalidValueError` unless `version` is an int of 1 or more (a bool is none)."""
    if type(version) is not int or version < 1:
        msg = f"{what} must be an int of 1 or more, not {version!r:.80}; use a batch as it was read from the store"
        raise InvalidValueError(msg)


_Name = Annotated[str, Field(strict=True, min_length=1, max_length=MAX_NAME_BYTES)]
_Text = Annotated[str, Field(strict=True)]
_Version = Annotated[int, Field(strict=True, ge=1)]
_Instant = Annotated[int, Field(strict=True)]
_ROW: TypeAdapter[tuple[Any, ...]] = TypeAdapter(
    tuple[
        Annotated[int, Field(strict=True, ge=1, le=FORMAT)],
        _Name,
        _Version,
        _Name,
        _Version,
        _Instant,
        _Instant,
        _Instant | None,
        Annotated[str, Field(strict=True, min_length=1)],
        _Text,
        Json[tuple[_Name, ...]],
        Json[dict[str, Any]],
    ]
)


def decode_batch(values: Sequence[Any], queue: str) -> Batch:
    """Answer the batch of a stored row.

    Args:
        values: the row's fields in the order of `BatchRow`, as the backend returned them.
        queue: the queue it was read from.

    Raises:
        UnsupportedFormatError: a newer program wrote the row.
        CorruptRowError: it is not what any of ours writes. It names the row and is never skipped
            silently.
    """
    try:
        (
            _,
            id_,
            version,
            state,
            entered,
            created,
            updated,
            retired,
            marks,
            moves,
            requests,
            attributes,
        ) = _ROW.validate_python(values)
    except ValidationError as error:
        raise _unreadable(values, error) from error
    return Batch(
        id_,
        queue,
        state,
        version,
        entered,
        requests,
        attributes,
        History(moves, id_),
        created,
        updated,
        retired,
        RowMemory(marks, requests, values[10]),
    )


def _unreadable(values: Sequence[Any], error: ValidationError) -> CorruptRowError | UnsupportedFormatError:
    key = str(values[1]) if len(values) > 1 else ""
    if values and type(values[0]) is int and values[0] > FORMAT:
        return UnsupportedFormatError(
            f"batch {key!r} is stored in format {values[0]}, and this program reads up to {FORMAT}: upgrade batchstate"
        )
    first = error.errors(include_url=False, include_input=False)[0]
    index = first["loc"][0] if first["loc"] else 0
    name = BatchRow._fields[index] if isinstance(index, int) and index < len(BatchRow._fields) else "row"
    return CorruptRowError(
        f"the row of batch {key!r} cannot be read: its {name}: {first['msg']}; look at it with the backend's own tools",
        key=key,
    )
