"""Jobs as they are stored and as scripts are told of them: heads, which change, apart from payloads, which do not.

A head is one text, with tabs between: format, place (its first letter), claim, group, deliveries, attempts, stalls,
when (it is due, or is extended to, or died), order, when it was added, max_attempts, error. Names have no tabs, and the
error stands last.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pydantic_core import from_json

from batchstate.errors import CorruptRowError
from batchstate.job_wire import decode_job
from batchstate.jobs import Job
from batchstate.moves import LONGEST_TEXT, Move, append_move

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.job_wire import JobRow

__all__ = ["head_of", "jobs_of", "read_job", "read_or_answer", "reason_text", "who_and_why"]

_FIELDS: Final = 12
_PLACES: Final = {"w": "waiting", "a": "active", "s": "scheduled", "d": "dead"}


def read_job(job_id: str, queue: str, head: bytes, payload: bytes, expires_at: int | None) -> Job:
    """Answer a stored job; `expires_at` is when the lease of the claim that holds it ends.

    Raises:
        CorruptRowError: it is not what any of ours writes.
    """
    try:
        form, letter, claim, group, deliveries, attempts, stalls, when, order, added_at, max_attempts, error = (
            head.decode().split("\t", _FIELDS - 1)
        )
        instant = int(when) if when else None
        values = (
            int(form),
            job_id,
            group,
            _PLACES.get(letter, letter),
            int(order),
            payload.decode(),
            int(max_attempts),
            int(deliveries),
            int(attempts),
            int(stalls),
            error,
            claim or None,
            int(added_at),
            instant if letter == "s" else None,
            instant if letter == "a" else None,
            instant if letter == "d" else None,
        )
    except ValueError as problem:
        msg = f"the row of job {job_id!r} cannot be read: it does not have the fields of one; look at it with redis-cli"
        raise CorruptRowError(msg, key=job_id) from problem
    return decode_job(values, queue, claim_expires_at=expires_at)


def head_of(row: JobRow) -> bytes:
    """Answer the head of a row that is not held."""
    when = {"scheduled": row.due_at, "dead": row.dead_at}.get(row.place)
    numbers = (row.deliveries, row.attempts, row.stalls, "" if when is None else when, row.order, row.added_at)
    fields = (row.format, row.place[0], row.claim or "", row.group, *numbers, row.max_attempts)
    return "\t".join(map(str, fields)).encode() + b"\t" + reason_text(row.error)


def jobs_of(
    ids: Sequence[str], rows: Sequence[bytes], queue: str, expires_at: int
) -> tuple[tuple[Job, ...], dict[str, CorruptRowError]]:
    """Answer a claim's jobs from head and payload of each, flat, and the errors of those that cannot be read."""
    jobs: list[Job] = []
    errors: dict[str, CorruptRowError] = {}
    for job_id, head, payload in zip(ids, rows[::2], rows[1::2], strict=True):
        try:
            jobs.append(_held_job(job_id, queue, head, payload, expires_at))
        except CorruptRowError as error:
            errors[job_id] = error
    return tuple(jobs), errors


def _held_job(job_id: str, queue: str, head: bytes, payload: bytes, expires_at: int) -> Job:
    """As `read_job`, in half the time: a script has just looked at the head, and written it anew."""
    try:
        _, _, claim, group, deliveries, attempts, stalls, until, order, added_at, max_attempts, error = (
            head.decode().split("\t", _FIELDS - 1)
        )
        return Job(
            job_id,
            queue,
            from_json(payload),
            group or None,
            "active",
            int(order),
            int(deliveries),
            int(attempts),
            int(stalls),
            int(max_attempts),
            error,
            claim,
            int(added_at),
            None,
            max(expires_at, int(until)) if until else expires_at,
        )
    except ValueError:  # the payload is no JSON: have it told as everywhere
        return read_job(job_id, queue, head, payload, expires_at)


def reason_text(reason: str) -> bytes:
    """Answer a reason as it is stored."""
    return reason[:LONGEST_TEXT].encode("utf-8", "backslashreplace")


@lru_cache(256)
def who_and_why(by: str, why: str) -> bytes:
    """Answer what a line of history ends with: two JSON texts, a comma between."""
    return append_move("", Move("", "", 1, 0, by, why))[len('["","",1,0,') : -1].encode()


def read_or_answer(job_id: str, queue: str, head: bytes, payload: bytes, expires: bytes) -> Job | CorruptRowError:
    """Answer a stored job, or the error that names it."""
    try:
        return read_job(job_id, queue, head, payload, int(expires) if expires else None)
    except CorruptRowError as error:
        return error
