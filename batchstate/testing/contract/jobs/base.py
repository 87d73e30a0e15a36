"""What all modules of the claim half share: queues to work on, and how to look at what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from batchstate.claims.policy import Backoff, JobPolicy
from batchstate.lifecycle import Lifecycle
from batchstate.queue import BatchQueue
from batchstate.readymade import CLAIM
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import paged
from batchstate.testing.faults import Fault, Record, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from batchstate.claims.claim import Claim
    from batchstate.claims.context import JobStore
    from batchstate.errors import BatchStateError
    from batchstate.jobs import Group, Job, Place
    from batchstate.testing.harness import Harness

__all__ = [
    "WALK",
    "JobTests",
    "Queues",
    "added",
    "batch_of",
    "everything_of",
    "group_of",
    "ids",
    "job",
    "jobs_of",
    "noted",
    "outcomes",
    "place_of",
    "places",
    "refused",
    "served",
    "taken",
]

WALK = Lifecycle.parse(
    "building > testing > merging > merged; building | testing | merging > failed; failed > building",
    settled="merged",
    abandoned="failed",
)
"""A lifecycle that a claim can walk: settled it is merged, which is terminal; abandoned it may begin anew."""

PLACES: tuple[Place, ...] = ("waiting", "active", "scheduled", "dead")

STEADY = JobPolicy(backoff=Backoff(first="10s", factor=1, jitter=False))
"""The policy of the tests: a failed job is due again after ten seconds, always."""


class Queues:
    """Opens queues on the store under test."""

    def __init__(self, harness: Harness, opened: Opener) -> None:
        self._harness = harness
        self._opened = opened

    def __call__(
        self,
        name: str = "q",
        *faults: Fault,
        policy: JobPolicy = STEADY,
        lifecycle: Lifecycle = CLAIM,
        by: str = "worker",
    ) -> BatchQueue:
        """Open a queue, as another process would have it, with these faults around its calls."""
        store = self._opened(name, *faults)
        return BatchQueue(store, lifecycle, by=by, policy=policy, clock=self._harness.clock)


class JobTests(Contract):
    """The fixtures of the claim half, whose steps have no variants: each is one step of the backend."""

    @pytest.fixture
    def queues(self, harness: Harness, opened_plain: Opener) -> Queues:
        """Open queues."""
        return Queues(harness, opened_plain)

    @pytest.fixture
    def q(self, queues: Queues) -> BatchQueue:
        """Open a queue."""
        return queues()


def jobs_of(q: BatchQueue) -> JobStore:
    """Answer the storage side of a queue's jobs."""
    return q.jobs_context.store


def noted(queues: Queues) -> tuple[BatchQueue, Record]:
    """Open a queue whose calls are noted."""
    notes = record()
    return queues("q", notes), notes


def added(q: BatchQueue, names: Iterable[str], *, group: str | None = None, max_attempts: int | None = None) -> None:
    """Add jobs of these names in their order."""
    for name in names:
        assert q.add(name, group=group, max_attempts=max_attempts)


def taken(q: BatchQueue, limit: int = 100, *, lease: str = "30s", group: Group | None = None) -> Claim:
    """Claim, where something must be there to be claimed."""
    claim = q.claim(limit, lease=lease, group=group)
    assert claim is not None
    return claim


def served(q: BatchQueue, limit: int = 100) -> list[str]:
    """Answer the jobs that one claim gets, which keeps them."""
    claim = q.claim(limit)
    return [] if claim is None else ids(claim)


def ids(jobs: Iterable[Job]) -> list[str]:
    """Answer the IDs of jobs, in their order."""
    return [one.id for one in jobs]


def job(q: BatchQueue, name: str) -> Job:
    """Load a job that must be there."""
    return q.get_job(name)


def place_of(q: BatchQueue, name: str) -> str:
    """Answer where a job is, `"gone"` where it is nowhere."""
    found = jobs_of(q).get_jobs([name]).get(name)
    return "gone" if found is None else cast("Job", found).place


def places(q: BatchQueue) -> dict[str, list[str]]:
    """Answer which jobs are in each place; a place that has none is left out."""
    return {place: found for place in PLACES if (found := ids(q.jobs(place)))}


def group_of(q: BatchQueue, group: str | None = None) -> dict[str, int]:
    """Answer what a group has, by place."""
    for counts in q.counts().groups:
        if counts.group == group:
            return {place: n for place in PLACES if (n := getattr(counts, place))}
    return {}


def outcomes(q: BatchQueue, name: str) -> list[str]:
    """Answer what became of a job in each of its attempts, first to last."""
    attempts = sorted(q.attempts(name), key=lambda attempt: (attempt.batch.created_at, attempt.batch.id))
    return [attempt.outcome for attempt in attempts]


def batch_of(q: BatchQueue, claim: Claim) -> tuple[str, int]:
    """Answer the state and the version of a claim's batch."""
    batch = q.get(claim.id)
    return batch.state, batch.version


def refused(answers: Iterable[BatchStateError | None]) -> list[type | None]:
    """Answer the types of errors among answers."""
    return [None if answer is None else type(answer) for answer in answers]


def everything_of(q: BatchQueue) -> Mapping[str, object]:
    """Answer all that can be seen of a queue's jobs, in a form that can be compared."""
    store = jobs_of(q)
    return {
        "jobs": [one for place in PLACES for one in q.jobs(place)],
        "counts": store.count_jobs(),
        "claims": sorted((claim for page in paged(store.list_claims) for claim in page), key=lambda claim: claim.id),
    }
