"""What is stored of a job: one neutral row, the same for every backend, validated on the way in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field, Json, TypeAdapter, ValidationError

from batchstate.errors import CorruptRowError, InvalidValueError, QueueMismatchError, TooLargeError
from batchstate.jobs import Job
from batchstate.moves import LONGEST_TEXT
from batchstate.names import MAX_NAME_BYTES, check_name
from batchstate.values import encode_json
from batchstate.wire import check_version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.job_calls import NewJob

__all__ = ["JOB_FORMAT", "JobRow", "check_new_job", "decode_job", "row_to_restore"]

JOB_FORMAT: Final = 1
"""The format of the job rows that this program writes."""


class JobRow(NamedTuple):
    """A job as it is stored.

    Attributes:
        format: of the row, see `JOB_FORMAT`.
        id: the job's ID.
        group: its group, `""` for none.
        place: `"waiting"`, `"active"`, `"scheduled"` or `"dead"`.
        order: its place in the line.
        payload: JSON text.
        max_attempts: with how many failures it is dead.
        deliveries: how often it was claimed.
        attempts: how many failures were charged.
        stalls: how often it was swept.
        error: the latest reason, cut at 1,000 characters.
        claim: the claim that holds it or held it last.
        added_at: milliseconds since the epoch, as all times.
        due_at: while scheduled.
        extended_to: while active, its own extension beyond the claim's lease.
        dead_at: while dead.
    """

    format: int
    id: str
    group: str
    place: str
    order: int
    payload: str
    max_attempts: int
    deliveries: int
    attempts: int
    stalls: int
    error: str
    claim: str | None
    added_at: int
    due_at: int | None
    extended_to: int | None
    dead_at: int | None


def check_new_job(job: NewJob, *, most: int | None = None) -> None:
    """Raise the error that says why `job` cannot be added, if it cannot; `most` is the largest payload in bytes."""
    check_name("job", job.id)
    if job.group:
        check_name("group", job.group)
    check_version(job.max_attempts, "max_attempts")
    if type(job.delay) is not int or job.delay < 0:
        msg = f"a job's delay must be an int of 0 or more, in milliseconds, not {job.delay!r}"
        raise InvalidValueError(msg)
    if most is not None and len(job.payload.encode()) > most:
        msg = f"the payload of job {job.id!r} is larger than this backend's {most:,} bytes"
        raise TooLargeError(msg)


_Name = Annotated[str, Field(strict=True, min_length=1, max_length=MAX_NAME_BYTES)]
_Text = Annotated[str, Field(strict=True)]
_Int = Annotated[int, Field(strict=True)]
_Count = Annotated[int, Field(strict=True, ge=0)]
_ROW: TypeAdapter[tuple[Any, ...]] = TypeAdapter(
    tuple[
        Annotated[int, Field(strict=True, ge=1, le=JOB_FORMAT)],
        _Name,
        _Text,
        Literal["waiting", "active", "scheduled", "dead"],
        _Int,
        Json[Any],
        Annotated[int, Field(strict=True, ge=1)],
        _Count,
        _Count,
        _Count,
        _Text,
        _Name | None,
        _Int,
        _Int | None,
        _Int | None,
        _Int | None,
    ]
)

_validate = _ROW.validator.validate_python
"""Called without the adapter's own wrapper, which takes as long as a quarter of the validation."""


def decode_job(values: Sequence[Any], queue: str, *, claim_expires_at: int | None = None) -> Job:
    """Answer the job of a stored row.

    Args:
        values: the row's fields in the order of `JobRow`, as the backend returned them.
        queue: the queue it was read from.
        claim_expires_at: when the lease of the claim that holds it ends.

    Raises:
        CorruptRowError: it is not what any of ours writes.
    """
    try:
        row = _validate(values)
    except ValidationError as error:
        key = str(values[1]) if len(values) > 1 else ""
        first = error.errors(include_url=False, include_input=False)[0]
        index = first["loc"][0] if first["loc"] else 0
        name = JobRow._fields[index] if isinstance(index, int) and index < len(JobRow._fields) else "row"
        msg = f"the row of job {key!r} cannot be read: its {name}: {first['msg']}"
        raise CorruptRowError(msg, key=key) from error
    (
        _,
        id_,
        group,
        place,
        order,
        payload,
        max_attempts,
        deliveries,
        attempts,
        stalls,
        error_text,
        claim,
        added_at,
        due_at,
        extended_to,
        dead_at,
    ) = row
    expires_at = max(claim_expires_at or 0, extended_to or 0) or None if place == "active" else None
    return Job(
        id_,
        queue,
        payload,
        group or None,
        place,
        order,
        deliveries,
        attempts,
        stalls,
        max_attempts,
        error_text,
        claim,
        added_at,
        due_at,
        expires_at,
        dead_at,
    )


def row_to_restore(job: Job, queue: str, *, most: int | None = None) -> JobRow:
    """Answer the row of a job that is to be inserted as it stands.

    Args:
        job: the job; waiting, scheduled or dead.
        queue: the queue of the storage that will write it.
        most: the largest payload in bytes; `None` for no limit.

    Raises:
        QueueMismatchError: it belongs to another queue.
        InvalidNameError: one of its names is none.
        InvalidValueError: it is held, or what it says of itself does not fit together.
        TooLargeError: its payload is larger than `most`.
    """
    if job.queue != queue:
        msg = f"job {job.id!r} belongs to queue {job.queue!r}, and this storage is bound to {queue!r}"
        raise QueueMismatchError(msg)
    check_name("job", job.id)
    if job.group is not None:
        check_name("group", job.group)
    if job.claim is not None:
        check_name("claim", job.claim)
    check_version(job.order, "a job's order")
    payload = encode_json(job.payload, "payload")
    if most is not None and len(payload.encode()) > most:
        msg = f"the payload of job {job.id!r} is larger than this backend's {most:,} bytes"
        raise TooLargeError(msg)
    if job.place == "active" or (job.due_at is None, job.dead_at is None) != (
        job.place != "scheduled",
        job.place != "dead",
    ):
        msg = f"job {job.id!r} is {job.place} and cannot be restored as it stands"
        raise InvalidValueError(msg)
    row = JobRow(
        JOB_FORMAT,
        job.id,
        job.group or "",
        job.place,
        job.order,
        payload,
        job.max_attempts,
        job.deliveries,
        job.attempts,
        job.stalls,
        job.error[:LONGEST_TEXT],
        job.claim,
        job.added_at,
        job.due_at,
        None,
        job.dead_at,
    )
    try:
        decode_job(row, queue)
    except CorruptRowError as error:
        msg = f"job {job.id!r} cannot be restored: {error}"
        raise InvalidValueError(msg) from error
    return row
