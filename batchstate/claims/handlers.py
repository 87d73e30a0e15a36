"""Handlers: how a function of a job, or of a batch of them, is called, and how its answer is read as verdicts.

Silence is a retry, a bug is loud: a job that a batch handler does not mention is retried with a reason of its own; an
answer that is no mapping at all is a fault of the program, not of fifty jobs.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from inspect import isasyncgen, isasyncgenfunction, isawaitable, iscoroutinefunction, isgenerator, isgeneratorfunction
from math import ceil, log2
from typing import TYPE_CHECKING, TypeAlias

from batchstate.claims.settling import NO_VERDICT, settling_of, text_of
from batchstate.errors import HandlerContractError, InvalidValueError
from batchstate.jobs import Dead, Delay, Done, Job, Retry, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from batchstate.claims.claim import Claim, Part

    BatchHandler: TypeAlias = Callable[[Part], Mapping[str, Verdict] | None]
    JobHandler: TypeAlias = Callable[[Job], Verdict | object]

__all__ = ["bisect_batch", "check_handler", "read_answer", "run_batch", "run_each"]

log = logging.getLogger("batchstate")

_LAZY = (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction)


def check_handler(handler: object) -> None:
    """Raise `InvalidValueError` for a coroutine or generator function: calling it does none of its work."""
    called = getattr(handler, "__call__", None)  # noqa: B004 - of an object that is called as a function
    if any(is_lazy(one) for one in (handler, called) for is_lazy in _LAZY):
        msg = "a handler is only called: wrap a coroutine function, as in lambda job: asyncio.run(send(job))"
        raise InvalidValueError(msg)


def run_each(claim: Claim, handler: JobHandler) -> None:
    """Call `handler` for each job of `claim` and record what became of it.

    Returning is `Done`, raising an `Exception` is `Retry` with its text; a verdict that is returned stands. Jobs
    known to be lost are not begun.

    Raises:
        HandlerContractError: it answered a coroutine or a generator, so that nothing was done.
    """
    for job in claim:
        if job.id in claim.lost:
            continue
        with claim.attempt(job):
            answer = handler(job)
            if isawaitable(answer) or isgenerator(answer) or isasyncgen(answer):
                msg = f"the handler answered a {type(answer).__name__}, which nobody runs: nothing was done"
                raise HandlerContractError(msg)
            if isinstance(answer, Done | Retry | Delay | Dead):
                claim.record(job, answer)


def run_batch(part: Part, handler: BatchHandler) -> None:
    """Call `handler` for all jobs of `part` and record what it answers; what it raises goes on.

    Raises:
        HandlerContractError: its answer is no mapping. `None` is one where every job has a recorded verdict.
    """
    answer = handler(part)
    if answer is None and not part.untouched():
        return
    if not isinstance(answer, Mapping):
        msg = (
            f"the handler answered {type(answer).__name__}, and must answer a mapping from job ID to verdict, or None "
            "where it has recorded a verdict for every job; the jobs without one are released"
        )
        raise HandlerContractError(msg)
    read_answer(part, answer)


def read_answer(part: Part, answer: Mapping[str, Verdict]) -> None:
    """Record the verdicts of `answer`; a job without one, or with an unreadable one, is retried with its own reason.

    A verdict that was recorded before stands. IDs that are none of these jobs are not touched, and noted in
    `part.unknown`.
    """
    for job in part:
        if job.id in part.verdicts:
            continue
        if job.id in answer:
            part.record(job, _readable(job, answer[job.id]))
        elif job.id not in part.lost:
            part.record(job, Retry(NO_VERDICT))
    known = {job.id for job in part}
    unknown = [job_id for job_id in answer if job_id not in known]
    if unknown:
        part.unknown.extend(unknown)
        log.warning("the handler gave verdicts for jobs it was not given: %s", ", ".join(map(str, unknown[:10])))


def _readable(job: Job, verdict: Verdict) -> Verdict:
    try:
        settling_of(job.id, verdict, job, lambda _: 0)
    except InvalidValueError as error:
        return Retry(f"the handler's verdict cannot be read: {error}")
    return verdict


def bisect_batch(claim: Claim, handler: BatchHandler) -> None:
    """Call `handler` for all jobs of `claim`, and where it raises for halves of what is left, down to the culprit.

    What has a verdict is settled before the rest is run again, under the same claim and lease. In the end only a job
    that raises by itself is charged. Good jobs may run more than once. After `4·⌈log2 n⌉` runs the rest is retried
    with the exception's text, so that an outage does not run a claim a hundred times.
    """
    runs = 4 * ceil(log2(len(claim))) if len(claim) > 1 else 1
    reason = ""
    parts: deque[Sequence[Job]] = deque([claim.jobs])
    while parts and runs > 0:
        jobs = [job for job in parts.popleft() if job.id not in claim.lost]
        if not jobs:
            continue
        runs -= 1
        part = claim.part(jobs)
        try:
            run_batch(part, handler)
        except HandlerContractError:
            raise
        except Exception as error:  # whatever the handler raises leads to the culprit
            log.debug("the handler raised for %d jobs", len(jobs), exc_info=True)
            reason = text_of(error)
            rest = part.untouched()
            if len(rest) == 1:
                claim.record(rest[0], Retry(reason))
            elif rest:
                parts.extend([rest[: len(rest) // 2], rest[len(rest) // 2 :]])
        said = {job.id: claim.verdicts[job.id] for job in jobs if job.id in claim.verdicts}
        if said and parts:
            claim.settle(said)
    for job in (job for jobs in parts for job in jobs if job.id not in claim.lost):
        claim.record(job, Retry(reason))
