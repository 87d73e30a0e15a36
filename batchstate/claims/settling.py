"""Settling: from verdicts to what the store is asked, and from its answers to the settlement. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.errors import BatchStateError, InvalidValueError
from batchstate.job_calls import Settling
from batchstate.jobs import Dead, Delay, Done, Job, Retry, Settlement
from batchstate.times import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from batchstate.claims.policy import BackoffFunction
    from batchstate.job_calls import Settled

__all__ = ["NO_VERDICT", "in_claim_order", "partition", "settling_of", "text_of"]

NO_VERDICT = "the handler gave no verdict"
"""The reason of a job that a batch handler's answer does not name."""


def settling_of(job_id: str, verdict: object, job: Job | None, backoff: BackoffFunction) -> Settling:
    """Answer what the store is asked for a verdict.

    Args:
        job_id: the job.
        verdict: what the handler says of it.
        job: the job as it was claimed, for the back-off; `None` where it is not at hand.
        backoff: how long a failed job waits where the verdict does not say.

    Raises:
        InvalidValueError: it is no verdict, or its delay or reason is none.
    """
    match verdict:
        case Done():
            return Settling(job_id, "complete")
        case Retry(reason=reason, delay=delay):
            wait = delay if delay is not None else backoff((job.attempts if job is not None else 0) + 1)
            return Settling(job_id, "retry", _reason(reason), milliseconds(wait, "a retry's delay", zero=True))
        case Delay(delay=delay):
            return Settling(job_id, "delay", "", milliseconds(delay, "a delay", zero=True))
        case Dead(reason=reason):
            return Settling(job_id, "dead", _reason(reason))
        case _:
            msg = f"job {job_id!r}: {verdict!r:.80} is no verdict; give Done(), Retry(...), Delay(...) or Dead(...)"
            raise InvalidValueError(msg)


def partition(asked: Sequence[str], answer: Settled) -> Settlement:
    """Answer the settlement of the jobs `asked` for, read from what the store answered: exhaustive and disjoint."""
    lists: dict[str, list[str]] = {}
    errors: dict[str, BatchStateError] = {}
    for job_id, outcome in zip(asked, answer.outcomes, strict=True):
        if isinstance(outcome, BatchStateError):
            errors[job_id] = outcome
        else:
            lists.setdefault(outcome, []).append(job_id)
    return Settlement(**{name: tuple(ids) for name, ids in lists.items()}, errors=errors, finished=answer.finished)


def in_claim_order(jobs: Iterable[Job], verdicts: Mapping[str, object]) -> list[str]:
    """Answer the IDs that `verdicts` names: those of `jobs` in their order, then the others as given."""
    ours = dict.fromkeys([job.id for job in jobs if job.id in verdicts])
    return [*ours, *[job_id for job_id in verdicts if job_id not in ours]]


def text_of(error: BaseException) -> str:
    """Answer what an exception says, as the reason of a retry."""
    said = str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _reason(reason: object) -> str:
    if type(reason) is not str:
        msg = f"a reason must be a str, not {type(reason).__name__}"
        raise InvalidValueError(msg)
    return reason.encode(errors="replace").decode()
