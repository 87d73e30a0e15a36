"""`RedisJobs`: the job storage protocol, one script an operation."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from batchstate.entities import Batch
from batchstate.errors import (
    BatchStateError,
    ClaimLostError,
    InvalidTransitionError,
    InvalidValueError,
    NotFoundError,
    StorageUnavailableError,
    TooLargeError,
)
from batchstate.job_calls import Claimed, Extended, Held, Settled, Settling, Swept
from batchstate.job_rules import STALLED, batch_of_claim
from batchstate.job_wire import JobRow, check_new_job, row_to_restore
from batchstate.marks import new_mark
from batchstate.moves import first_move
from batchstate.names import check_name
from batchstate_redis.job_listing import RedisJobListing
from batchstate_redis.job_rows import head_of, jobs_of, reason_text, who_and_why
from batchstate_redis.rows import MAX_ROW, read_row
from batchstate_redis.scripts import BYTES_A_COMMAND, in_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from batchstate.job_calls import Added, Claiming, NewJob, SettledAs
    from batchstate.jobs import Job
    from batchstate.storage import Outcome, Unreadable
    from batchstate_redis.waking import Listener

__all__ = ["RedisJobs"]

MAX_CLAIM: Final = 500
"""How many jobs one claim takes at most: some 2 ms, in which the server serves nobody else."""

MAX_ACROSS: Final = 100
"""How many jobs a claim across groups takes at most, since each may be of another group."""

SETTLED_AT_ONCE: Final = 250
SWEPT_AT_ONCE: Final = 250
CHANGED_AT_ONCE: Final = 250
LATEST: Final = 2**52
"""The largest number of milliseconds and of attempts: sums of two of them are exact for the scripts."""


class RedisJobs(RedisJobListing):
    """The part of `RedisStorage` that keeps jobs.

    Every operation is one script, so one round trip. A claim takes at most 500 jobs, one across groups at most 100, and
    looks at 250 due jobs of a group. Larger calls of other kinds are made in chunks of some 250 jobs, each whole.
    """

    max_claim = MAX_CLAIM

    _listener: Listener

    if TYPE_CHECKING:  # what `RedisStorage` has

        def get_batches(self, ids: Iterable[str]) -> dict[str, Batch | Unreadable]: ...

        def _introduce(self) -> None: ...

    def now(self) -> int:
        return int(self._jobs("read_clock"))

    def add_jobs(self, jobs: Sequence[NewJob]) -> list[Added | BatchStateError]:
        answers: list[Added | BatchStateError] = []
        sound: list[NewJob] = []
        for job in jobs:
            problem = _problem(job)
            answers.append("duplicate" if problem is None else problem)
            if problem is None:
                sound.append(job)
        if sound:
            self._introduce()
        told: list[int] = []
        for chunk in in_chunks(sound, _cost_of_adding):
            told += self._jobs("add_jobs", *[argument for job in chunk for argument in _told_of(job)])
        rest = iter(told)
        return ["added" if answer == "duplicate" and next(rest) == 1 else answer for answer in answers]

    def restore_jobs(self, jobs: Sequence[Job]) -> list[Added | BatchStateError]:
        rows = [_restored(job, self._queue) for job in jobs]
        sound = [row for row in rows if isinstance(row, JobRow)]
        if sound:
            self._introduce()
        told: list[int] = []
        for chunk in in_chunks(sound, _cost_of_adding):
            arguments = [argument for row in chunk for argument in (row.id, row.payload.encode(), head_of(row))]
            told += self._jobs("restore_jobs", *arguments)
        rest = iter(told)
        return [row if isinstance(row, BatchStateError) else "added" if next(rest) else "duplicate" for row in rows]

    def claim_jobs(self, claiming: Claiming) -> Claimed | None:
        check_name("claim", claiming.id)
        check_name("state", claiming.state)
        most = MAX_ACROSS if claiming.across_groups else MAX_CLAIM
        wanted = "*" if claiming.across_groups else "" if claiming.group is None else f"={claiming.group}"
        ending = claiming.ending
        attributes = claiming.attributes.encode()
        if len(attributes) > MAX_ROW:
            raise TooLargeError(f"the attributes of claim {claiming.id!r} take more than {MAX_ROW:,} bytes")
        arguments: list[bytes | str | int] = [
            claiming.id,
            min(claiming.limit, most),
            _checked(claiming.lease, "lease"),
            wanted,
            claiming.state,
            claiming.mark,
            attributes,
            *first_move(claiming.state, claiming.by),
            "\t".join([ending.settled, ending.abandoned, *ending.terminal]),
        ]
        answer = self._jobs("claim_jobs", *arguments)
        while answer == 1:  # so many groups fell due at once that another step goes on with them
            answer = self._jobs("claim_jobs", *arguments)
        if answer == 0:
            return None
        if answer == 2:  # noqa: PLR2004 - as the script's head says
            raise ClaimLostError(f"claim {claiming.id!r} holds nothing any more; claim again, with a new ID")
        first, expires, names, rows = answer
        if not first.isdigit():
            return self._claimed(claiming.id, answer)
        ids = [name.decode() for name in names]
        batch = batch_of_claim(self._queue, claiming, ids, int(first))
        return Claimed(batch, self._readable(claiming.id, ids, rows, int(expires)), int(expires))

    def get_claims(self, ids: Iterable[str]) -> dict[str, Claimed]:
        wanted = list(dict.fromkeys(ids))
        return {
            claim_id: self._claimed(claim_id, answer) for claim_id, answer in self._each_claim("get_claims", wanted)
        }

    def extend_claim(self, claim_id: str, lease: int) -> Extended:
        answer = self._jobs("extend_claim", claim_id, _checked(lease, "lease"))
        if answer == 0:
            return Extended(None, 0, self._lost(claim_id))
        expires, held, lost = answer
        return Extended(int(expires), held, tuple(job_id.decode() for job_id in lost))

    def extend_job(self, claim_id: str, job_id: str, lease: int) -> Extended:
        answer: bytes = self._jobs("extend_job", claim_id, job_id, _checked(lease, "lease"))
        if answer.isdigit():
            return Extended(int(answer), 1)
        settled = answer not in (b"", b"=", b"=swept", b"=removed")
        return Extended(None, 0, () if settled else (job_id,))

    def settle_jobs(
        self, claim_id: str, settlings: Sequence[Settling], *, keep_done: int, by: str = "", why: str = ""
    ) -> Settled:
        outcomes: list[SettledAs | BatchStateError] = []
        finished = False
        told, mark = who_and_why(by, why), new_mark()
        for start in range(0, max(1, len(settlings)), SETTLED_AT_ONCE):
            chunk = settlings[start : start + SETTLED_AT_ONCE]
            arguments: list[bytes | str | int] = [claim_id, keep_done, told, mark, len(chunk)]
            arguments += [one.id for one in chunk]
            for place, one in enumerate(chunk, 1):
                if one.verdict != "complete":
                    arguments += [place, one.verdict, reason_text(one.reason), _checked(one.delay, "delay")]
            try:
                answers, ended = self._jobs("settle_jobs", *arguments)
            except StorageUnavailableError as error:
                if not outcomes:
                    raise
                return Settled((*outcomes, *[error] * (len(settlings) - start)), finished=False)
            outcomes += answers.decode().split(",") if answers else []
            finished = bool(ended)
        return Settled(tuple(outcomes), finished)

    def sweep_jobs(self, limit: int, *, max_stalls: int, by: str = "", skew: int = 0) -> Swept:
        returned: list[str] = []
        dead: list[str] = []
        ended: list[str] = []
        told, mark = who_and_why(by, "swept"), new_mark()
        rest = "again"
        while rest:
            left = limit - len(returned) - len(dead)
            answer: bytes = self._jobs(
                "sweep_jobs", min(left, SWEPT_AT_ONCE), max_stalls, skew, told, mark, STALLED, secrets.token_hex(8)
            )
            _, *lists, tail = answer.decode().split("\1")
            for names, found in zip((returned, dead, ended), lists, strict=True):
                names.extend(found.split("\n") if found else [])
            rest = tail
            if tail == "more" and left <= SWEPT_AT_ONCE:
                break
        return Swept(tuple(returned), tuple(dead), tuple(ended), rest == "more")

    def revive_jobs(self, ids: Sequence[str]) -> list[Outcome]:
        answers: list[Outcome] = []
        for start in range(0, len(ids), CHANGED_AT_ONCE):
            chunk = ids[start : start + CHANGED_AT_ONCE]
            places = self._jobs("revive_jobs", *map(_bytes, chunk))
            answers += [self._revived(job_id, place) for job_id, place in zip(chunk, places, strict=True)]
        return answers

    def _revived(self, job_id: str, place: bytes) -> Outcome:
        if not place:
            return self._not_found(job_id)
        if place in (b"d", b"w"):
            return None
        word = "active" if place == b"a" else "scheduled"
        return InvalidTransitionError(f"job {job_id!r} is {word}, and only a dead one can be revived")

    def remove_jobs(self, ids: Sequence[str], *, force: bool = False, by: str = "") -> list[Outcome]:
        answers: list[Outcome] = []
        told, mark = who_and_why(by, "its last job was removed"), new_mark()
        for start in range(0, len(ids), CHANGED_AT_ONCE):
            chunk = ids[start : start + CHANGED_AT_ONCE]
            found = self._jobs("remove_jobs", int(force), told, mark, *map(_bytes, chunk))
            answers += [self._removed(job_id, answer) for job_id, answer in zip(chunk, found, strict=True)]
        return answers

    def _removed(self, job_id: str, answer: int) -> Outcome:
        if answer == 0:
            return self._not_found(job_id)
        if answer == 1:
            return None
        return InvalidTransitionError(f"job {job_id!r} is held by a worker; force=True removes it all the same")

    def move_job(self, job_id: str, group: str) -> Outcome:
        if group:
            check_name("group", group)
        answer = self._jobs("move_job", _bytes(job_id), group)
        if answer == 0:
            return self._not_found(job_id)
        if answer == 1:
            return None
        return InvalidTransitionError(f"job {job_id!r} is held, and its slot is its group's; move it afterwards")

    def set_paused(self, group: str | None, reason: str | None) -> None:
        self._jobs("set_paused", _group(group), b"" if reason is None else b"=" + reason_text(reason))

    def set_ceiling(self, group: str | None, ceiling: int | None) -> None:
        self._jobs("set_ceiling", _group(group), "" if ceiling is None else _checked(ceiling, "ceiling"))

    def take_hold(self, batch_id: str, token: str, lease: int) -> Held:
        answer = self._jobs("take_hold", batch_id, token, _checked(lease, "lease"))
        if answer == 0:
            raise NotFoundError(f"there is no batch {batch_id!r} in queue {self._queue!r}")
        return Held(batch_id, answer[0].decode(), int(answer[1]))

    def extend_hold(self, batch_id: str, token: str, lease: int) -> Held:
        answer = self._jobs("extend_hold", batch_id, token, _checked(lease, "lease"))
        if answer == 0:
            raise _hold_lost(batch_id)
        return Held(batch_id, answer[0].decode(), int(answer[1]))

    def release_hold(self, batch_id: str, token: str) -> None:
        if self._jobs("release_hold", batch_id, token) == 0:
            raise _hold_lost(batch_id)

    def listen(self, nudge: Callable[[], None]) -> Callable[[], None]:
        """As `Wakeable` says, for every process on this store."""
        return self._listener.listen(nudge)

    def _claimed(self, claim_id: str, answer: Sequence[Any]) -> Claimed:
        row, expires, names, rows = answer
        batch = read_row(row, claim_id, self._queue)
        if isinstance(batch, BatchStateError):
            raise batch
        ids = [name.decode() for name in names]
        return Claimed(batch, self._readable(claim_id, ids, rows, int(expires)), int(expires))

    def _readable(self, claim_id: str, ids: Sequence[str], rows: Sequence[bytes], expires_at: int) -> tuple[Job, ...]:
        """Answer a claim's jobs, but for those that cannot be read: they are settled as dead, where they are seen.

        Raises:
            CorruptRowError: it has no other job.
        """
        jobs, errors = jobs_of(ids, rows, self._queue, expires_at)
        if errors:
            dead = [Settling(job_id, "dead", str(error)) for job_id, error in errors.items()]
            self.settle_jobs(claim_id, dead, keep_done=0, why="its last job could not be read")
        if errors and not jobs:
            raise next(iter(errors.values()))
        return jobs

    def _lost(self, claim_id: str) -> tuple[str, ...]:
        """Answer the jobs that a claim which holds nothing any more never settled."""
        batch = self.get_batches([claim_id]).get(claim_id)
        if not isinstance(batch, Batch):
            return ()
        lost: list[str] = []
        for start in range(0, len(batch.request_ids), MAX_CLAIM):
            chunk = batch.request_ids[start : start + MAX_CLAIM]
            outcomes = self._jobs("get_outcomes", claim_id, *chunk)
            lost += [
                job_id for job_id, outcome in zip(chunk, outcomes, strict=True) if outcome in (b"swept", b"removed")
            ]
        return tuple(lost)

    def _not_found(self, job_id: str) -> NotFoundError:
        return NotFoundError(f"there is no job {job_id!r} in queue {self._queue!r}")


def _problem(job: NewJob) -> BatchStateError | None:
    try:
        check_new_job(job, most=MAX_ROW)
        for number in (job.max_attempts, job.delay, job.due_at or 0):
            _checked(number, f"a number of job {job.id!r}")
    except BatchStateError as error:
        return error
    return None


def _restored(job: Job, queue: str) -> JobRow | BatchStateError:
    try:
        row = row_to_restore(job, queue, most=MAX_ROW)
        for number in row:
            if isinstance(number, int):
                _checked(number, f"a number of job {job.id!r}")
    except BatchStateError as error:
        return error
    return row


def _cost_of_adding(job: NewJob | JobRow) -> int:
    return 5 + len(job.payload) // BYTES_A_COMMAND


def _told_of(job: NewJob) -> tuple[bytes | str | int, ...]:
    due = f"+{job.delay}" if job.due_at is None else job.due_at
    return job.id, job.payload.encode(), job.group, job.max_attempts, due, int(job.again)


def _checked(number: int, what: str) -> int:
    if number > LATEST:
        raise InvalidValueError(f"{what} must be at most 2**52 here, not {number}")
    return number


def _group(group: str | None) -> str:
    return "" if group is None else f"={group}"


def _bytes(name: str) -> bytes:
    # A lone surrogate is no name, so nothing is ever found under it.
    return name.encode("utf-8", "surrogatepass")


def _hold_lost(batch_id: str) -> ClaimLostError:
    return ClaimLostError(f"the hold on batch {batch_id!r} lapsed or is another's; its work must not go on")
