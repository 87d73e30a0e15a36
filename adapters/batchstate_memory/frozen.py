"""Keeping a queue as it is at one instant, and going back to that, as explorers of states do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batchstate_memory.frozen_jobs import FrozenJobs, freeze_jobs, thaw_jobs
from batchstate_memory.store import Bucket, QueueRows

if TYPE_CHECKING:
    from collections.abc import Hashable

    from batchstate.wire import BatchRow

__all__ = ["Frozen", "freeze", "thaw"]


class Frozen(NamedTuple):
    """The rows, records and associations of a queue at one instant.

    Attributes:
        key: equal for two instants at which the store would answer every later call alike. The
            histories are not in it: they decide nothing, and the marks tell them apart.
        rows: the rows in full.
        buckets: state, and its records as `(batch ID, version)`.
        outcomes: request ID, and its associations as `(batch ID, outcome)`.
        jobs: the jobs.
    """

    key: Hashable
    rows: tuple[BatchRow, ...]
    buckets: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    outcomes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    jobs: FrozenJobs


def freeze(rows: QueueRows) -> Frozen:
    """Answer what is in `rows` now."""
    batches = tuple(sorted(rows.batches.values(), key=lambda row: row.id))
    buckets = tuple(
        (state, tuple(sorted(bucket.versions.items())))
        for state, bucket in sorted(rows.buckets.items())
        if bucket.versions
    )
    outcomes = tuple((request, tuple(sorted(attempts.items()))) for request, attempts in sorted(rows.outcomes.items()))
    jobs = freeze_jobs(rows.jobs)
    key = (tuple(row._replace(moves="") for row in batches), buckets, outcomes, jobs)
    return Frozen(key, batches, buckets, outcomes, jobs)


def thaw(rows: QueueRows, frozen: Frozen) -> None:
    """Make `rows` what they were."""
    rows.batches = {row.id: row for row in frozen.rows}
    rows.buckets = {}
    for state, records in frozen.buckets:
        bucket = rows.buckets[state] = Bucket()
        for batch_id, version in records:
            bucket.put(batch_id, version)
    rows.outcomes = {request: dict(attempts) for request, attempts in frozen.outcomes}
    rows.retired = sorted((row.retired_at, row.id) for row in frozen.rows if row.retired_at is not None)
    rows.jobs = thaw_jobs(frozen.jobs)
