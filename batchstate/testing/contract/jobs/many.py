"""Large numbers of jobs; how large, the harness says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.claims.methods import JobSpec
from batchstate.jobs import Dead, Done
from batchstate.testing.contract.jobs.base import JobTests, Queues, ids, jobs_of, places, taken

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Many"]


class Many(JobTests):
    """No call has a size at which it fails."""

    def test_many_added_claimed_and_settled(self, q: BatchQueue, harness: Harness) -> None:
        """As many jobs as the harness allows are added in one call, claimed at once, extended and settled."""
        names = [f"job-{number:06}" for number in range(harness.scale)]
        assert set(q.add_many(JobSpec(name) for name in names)) == {"added"}
        size = min(harness.scale, jobs_of(q).max_claim)

        claim = taken(q, harness.scale)

        assert ids(claim) == names[:size]
        assert claim.extend("1h").held == size
        assert claim.settle({one.id: Done() for one in claim}).finished
        assert q.counts().waiting == harness.scale - size
        assert q.get(claim.id).request_ids == tuple(names[:size])

    def test_more_than_a_claim_takes(self, q: BatchQueue) -> None:
        """A limit above what the backend claims at once is served as far as it goes."""
        most = jobs_of(q).max_claim
        q.add_many(JobSpec(f"{number}") for number in range(min(most, 500) + 5))

        claim = q.claim(most + 1000)

        assert claim is not None
        assert len(claim) == min(most, min(most, 500) + 5)

    def test_many_swept(self, queues: Queues, harness: Harness) -> None:
        """Thousands of lapsed jobs come back in bounded steps, while a claim of another group is served beside."""
        q = queues()
        total = harness.scale
        q.add_many(JobSpec(f"{number:06}", group="stalled") for number in range(total))
        claims = list(_taking(q, total))
        harness.clock.advance("30s")
        q.add("new", group="new")

        first = q.sweep(limit=100)
        assert (len(first.returned), first.more) == (min(100, total), total > 100)
        assert ids(taken(q, 1, group="new")) == ["new"]
        rest = q.sweep()

        assert len(first.returned) + len(rest.returned) == total
        assert not rest.more
        assert len({*first.ended, *rest.ended}) == len(claims)
        assert q.counts().active == 1

    def test_many_listed_and_purged(self, q: BatchQueue, harness: Harness) -> None:
        """Thousands of jobs are listed in order, and thousands of dead ones purged."""
        names = [f"{number:06}" for number in range(harness.scale)]
        q.add_many(JobSpec(name) for name in names)
        assert ids(q.jobs("waiting")) == names
        for claim in q.claims(500):
            claim.settle({one.id: Dead("no") if int(one.id) % 2 else Done() for one in claim})
        assert ids(q.jobs("dead")) == names[1::2]

        harness.clock.advance("2d")
        gone, more = 0, True
        while more:
            step, more = jobs_of(q).purge_jobs(1000, keep_dead=0)
            gone += step

        assert gone == len(names)
        assert places(q) == {}

    def test_many_groups(self, q: BatchQueue, harness: Harness) -> None:
        """With hundreds of groups each has its turn."""
        groups = [f"g{number:04}" for number in range(min(300, harness.scale))]
        q.add_many(JobSpec(f"{group}-{letter}", group=group) for letter in "ab" for group in groups)

        assert [taken(q, 1).jobs[0].group for _ in groups] == groups
        claim = q.claim(len(groups), across_groups=True)
        assert claim is not None
        assert [one.group for one in claim] == groups[: len(claim)]


def _taking(q: BatchQueue, total: int) -> list[str]:
    claims = []
    while total > 0:
        claim = taken(q, min(1000, total))
        total -= len(claim)
        claims.append(claim.id)
    return claims
