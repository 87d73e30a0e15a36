"""`Claim`: the jobs one worker holds under one lease, as people use it."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from batchstate.claims.settling import in_claim_order, partition, settling_of, text_of
from batchstate.errors import BatchStateError, HandlerContractError, InvalidValueError, StorageUnavailableError
from batchstate.job_calls import Extended, Settled, Settling
from batchstate.jobs import Done, Job, Retry, Settlement, Verdict
from batchstate.times import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from batchstate.claims.context import JobContext
    from batchstate.entities import Batch
    from batchstate.job_calls import Claimed, SettledAs
    from batchstate.times import Duration

__all__ = ["Claim", "Part"]

log = logging.getLogger("batchstate")

_UNKNOWN = BatchStateError()
"""What is known of a job that was not settled yet."""


class Part:
    """Some of a claim's jobs, to be worked on and given verdicts: what a handler sees.

    Attributes:
        jobs: the jobs, oldest first.
        verdicts: what was said of them so far, by job ID.
        lost: the jobs that are known to be this claim's no longer; work on them should stop.
        unknown: what a batch handler's answer named besides, and is none of these jobs; nothing was done about it.
    """

    def __init__(self, jobs: Sequence[Job], verdicts: dict[str, Verdict], lost: set[str], unknown: list[str]) -> None:
        self.jobs: tuple[Job, ...] = tuple(jobs)
        self.verdicts = verdicts
        self.lost = lost
        self.unknown = unknown
        self._by_id = {job.id: job for job in self.jobs}

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)

    def record(self, job: Job | str, verdict: Verdict) -> None:
        """Say what became of a job, to be settled with the others; a later verdict replaces an earlier one.

        Raises:
            InvalidValueError: it is no verdict, or the job is none of these.
        """
        job_id = job if isinstance(job, str) else job.id
        found = self._by_id.get(job_id)
        if found is None:
            msg = f"job {job_id!r} is none of the {len(self.jobs)} jobs here"
            raise InvalidValueError(msg)
        settling_of(job_id, verdict, found, lambda _: 0)
        self.verdicts[job_id] = verdict

    @contextmanager
    def attempt(self, job: Job) -> Iterator[Job]:
        """Work on one job: leaving means `Done`, raising an `Exception` means `Retry` with its text, and is swallowed.

        A verdict recorded inside stands. Interrupts and `HandlerContractError` go on, and leave the job without a
        verdict.
        """
        try:
            yield job
        except HandlerContractError:
            raise
        except Exception as error:  # whatever the handler raises is its verdict
            log.debug("job %s failed", job.id, exc_info=True)
            if job.id not in self.verdicts:
                self.record(job, Retry(text_of(error)))
        else:
            if job.id not in self.verdicts:
                self.record(job, Done())

    def part(self, jobs: Sequence[Job]) -> Part:
        """Answer some of these jobs as a part of this one, which shares its verdicts."""
        return Part(jobs, self.verdicts, self.lost, self.unknown)

    def untouched(self) -> list[Job]:
        """Answer the jobs without a verdict that are not known to be lost."""
        return [job for job in self.jobs if job.id not in self.verdicts and job.id not in self.lost]


class Claim(Part):
    """The jobs held under one lease.

    As a context manager it extends itself meanwhile, and settles on leaving: each job on the verdict recorded for it;
        the jobs without one are released where the block ends or is interrupted, and retried with the exception's
        text where it raises. A job that was found lost is settled too if it has a verdict: its work is done, and the
        store takes that while nobody else has claimed it.

    Attributes:
        id: the claim's ID, which is its batch's and the fencing token.
        batch: the claim's batch as it was when it was claimed.
        jobs: the jobs, oldest first.
        expires_at: when the lease ends, in milliseconds since the epoch by the store's clock; never later than the
            store has it.
        lease_ms: how long the lease is, in milliseconds.
        verdicts, unknown: as for `Part`.
        lost: the jobs that extending or settling has found to be this claim's no longer.
        on_lost: called with the claim and the IDs of jobs newly found lost, also from the keeper's thread.
    """

    def __init__(
        self,
        context: JobContext,
        claimed: Claimed,
        lease_ms: int,
        *,
        on_lost: Callable[[Claim, Sequence[str]], None] | None = None,
    ) -> None:
        super().__init__(claimed.jobs, {}, set(), [])
        self._context = context
        self.id: str = claimed.batch.id
        self.batch: Batch = claimed.batch
        self.expires_at: int = claimed.expires_at
        self.lease_ms: int = lease_ms
        self.on_lost = on_lost
        self._answers: dict[str, SettledAs | BatchStateError] = {}
        self._finished = False

    def __repr__(self) -> str:
        return f"<Claim {self.id} of {len(self.jobs)} jobs>"

    @property
    def settlement(self) -> Settlement:
        """What became of the jobs settled so far, over all calls; a job whose settling failed is in its errors."""
        named = in_claim_order(self.jobs, self._answers)
        return partition(named, Settled(tuple(self._answers[job_id] for job_id in named), self._finished))

    def extend(self, lease: Duration | None = None) -> Extended:
        """Set the lease's end to now + `lease` (by default its length so far), for all jobs held, in one write.

        Returns:
            When it ends now, how many jobs are held, and which are lost; false where any is, or nothing is held.

        Raises:
            InvalidValueError: the lease is not positive. Nothing was changed.
            StorageUnavailableError: the store could not be reached; whether the lease was extended is unknown.
        """
        lease_ms = self.lease_ms if lease is None else milliseconds(lease, "lease")
        extended = self._context.store.extend_claim(self.id, lease_ms)
        if extended.expires_at is not None:
            self.expires_at = extended.expires_at
        if lease_ms != self.lease_ms:
            self.lease_ms = lease_ms
            self._context.keeper.changed(self)
        self._lose(extended.lost)
        return extended

    def extend_job(self, job: Job | str, lease: Duration) -> Extended:
        """Hold one job until now + `lease`, beyond the claim's own lease; never shortens. Raises as `extend` does."""
        job_id = job if isinstance(job, str) else job.id
        extended = self._context.store.extend_job(self.id, job_id, milliseconds(lease, "lease"))
        self._lose(extended.lost)
        return extended

    def keep(self) -> bool:
        """Extend by the lease's length; answer whether anything is still held. What the keeper calls."""
        return self.extend().held > 0

    def settle(self, verdicts: Mapping[str, Verdict] | None = None, *, why: str = "") -> Settlement:
        """Settle each job by itself on its verdict, in one round trip for all.

        Args:
            verdicts: by job ID; by default all that were recorded. A job that is not named stays held.
            why: the reason, for the batch's history, should this end the claim.

        Returns:
            What became of every job named, as the store answered. Settling again answers the same.

        Raises:
            InvalidValueError: something is no verdict. Nothing was settled.
        """
        chosen = verdicts if verdicts is not None else self.verdicts
        backoff = self._context.policy.backoff
        return self._send(
            [
                settling_of(job_id, chosen[job_id], self._by_id.get(job_id), backoff)
                for job_id in in_claim_order(self.jobs, chosen)
            ],
            why,
        )

    def release(self, jobs: Iterable[Job | str] | None = None, *, why: str = "released") -> Settlement:
        """Give jobs back to their old places, uncharged; by default all that were not settled. Answers as `settle`."""
        if jobs is None:
            ids = [job.id for job in self._unsettled()]
        else:
            ids = [job if isinstance(job, str) else job.id for job in jobs]
        return self._send([Settling(job_id, "release") for job_id in ids], why)

    def __enter__(self) -> Self:
        self._context.keeper.hold(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._context.keeper.drop(self)
        if isinstance(error, Exception) and not isinstance(error, HandlerContractError):
            for job in self.untouched():
                self.record(job, Retry(text_of(error)))
        self._leave()

    def _leave(self) -> None:
        """Settle what has a verdict and release the rest, both in one call."""
        backoff = self._context.policy.backoff
        settlings = [
            settling_of(job.id, self.verdicts[job.id], job, backoff)
            if job.id in self.verdicts
            else Settling(job.id, "release")
            for job in self._unsettled()
        ]
        settlement = self._send(settlings, "")
        if not settlement:
            lost, errors = len(settlement.lost), len(settlement.errors)
            log.warning("claim %s: %d jobs were lost, %d could not be settled", self.id, lost, errors)

    def _unsettled(self) -> list[Job]:
        return [job for job in self.jobs if isinstance(self._answers.get(job.id, _UNKNOWN), BatchStateError)]

    def _send(self, settlings: Sequence[Settling], why: str) -> Settlement:
        if not settlings:
            return Settlement(finished=self._finished)
        context = self._context
        keep_done = milliseconds(context.policy.keep_done, "keep_done", zero=True)
        try:
            answer = context.store.settle_jobs(self.id, settlings, keep_done=keep_done, by=context.by, why=why)
        except StorageUnavailableError as error:
            answer = Settled((error,) * len(settlings), finished=False)
        self._finished = self._finished or answer.finished
        for settling, outcome in zip(settlings, answer.outcomes, strict=True):
            self._answers[settling.id] = outcome
        settlement = partition([settling.id for settling in settlings], answer)
        self._lose(settlement.lost)
        return settlement

    def _lose(self, job_ids: Iterable[str]) -> None:
        fresh = [job_id for job_id in job_ids if job_id not in self.lost]
        self.lost.update(fresh)
        if fresh and self.on_lost is not None:
            self.on_lost(self, fresh)
