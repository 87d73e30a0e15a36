"""Keeping the jobs of a queue as they are at one instant, and going back to them."""

from __future__ import annotations

from heapq import heapify
from typing import TYPE_CHECKING, NamedTuple

from batchstate_memory.job_rows import ClaimState, JobRows

if TYPE_CHECKING:
    from batchstate.job_calls import Ending
    from batchstate.job_wire import JobRow

__all__ = ["FrozenJobs", "freeze_jobs", "thaw_jobs"]


class FrozenJobs(NamedTuple):
    """A queue's jobs at one instant, equal for two at which the store would answer every later call alike.

    Attributes:
        rows: the jobs, by order.
        done: the remembered IDs, with the instant each is forgotten.
        groups: each group that has a ceiling or is paused, with both.
        ring: the groups in turn.
        claims: the claims in flight: ID, deadline, end, jobs held.
        holds: the holds: batch ID, token and deadline.
        limits: why the queue is paused, its default ceiling, and how many jobs were added.
    """

    rows: tuple[JobRow, ...]
    done: tuple[tuple[str, int], ...]
    groups: tuple[tuple[str, int | None, str | None], ...]
    ring: tuple[str, ...]
    claims: tuple[tuple[str, int, Ending, tuple[str, ...]], ...]
    holds: tuple[tuple[str, tuple[str, int]], ...]
    limits: tuple[str | None, int | None, int]


def freeze_jobs(jobs: JobRows) -> FrozenJobs:
    """Answer what is in `jobs` now."""
    return FrozenJobs(
        tuple(sorted(jobs.rows.values(), key=lambda row: row.order)),
        tuple(sorted(jobs.done.items())),
        tuple(
            (name, group.ceiling, group.paused)
            for name, group in sorted(jobs.groups.items())
            if group.ceiling is not None or group.paused is not None
        ),
        tuple(jobs.ring),
        tuple((name, claim.expires_at, claim.ending, tuple(claim.held)) for name, claim in sorted(jobs.claims.items())),
        tuple(sorted(jobs.holds.items())),
        (jobs.paused, jobs.ceiling, jobs.added),
    )


def thaw_jobs(frozen: FrozenJobs) -> JobRows:
    """Answer the jobs as they were."""
    jobs = JobRows()
    for name, ceiling, paused in frozen.groups:
        group = jobs.group(name)
        group.ceiling, group.paused = ceiling, paused
    for row in frozen.rows:
        jobs.store(row)
        if row.extended_to is not None and row.claim is not None:
            jobs.leases.append((row.extended_to, row.claim))
    for name, expires_at, ending, held in frozen.claims:
        jobs.claims[name] = ClaimState(expires_at, ending, dict.fromkeys(held))
        jobs.leases.append((expires_at, name))
    heapify(jobs.leases)
    jobs.done = dict(frozen.done)
    jobs.forgetting = sorted((until, name) for name, until in frozen.done)
    jobs.ring = dict.fromkeys(frozen.ring)
    jobs.holds = dict(frozen.holds)
    jobs.paused, jobs.ceiling, jobs.added = frozen.limits
    return jobs
