"""Stalls: jobs whose worker let the lease lapse, and the sweep that takes them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.claims.policy import JobPolicy
from batchstate.errors import InvalidValueError
from batchstate.job_calls import Swept
from batchstate.jobs import Done, Retry
from batchstate.testing.contract.jobs.base import (
    STEADY,
    JobTests,
    Queues,
    added,
    batch_of,
    everything_of,
    group_of,
    ids,
    job,
    jobs_of,
    outcomes,
    place_of,
    places,
    served,
    taken,
)

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Stalls"]


def stalling(max_stalls: int) -> JobPolicy:
    """Answer a policy that allows so many recoveries."""
    return JobPolicy(max_stalls=max_stalls, backoff=STEADY.backoff)


class Stalls(JobTests):
    """The one way in which jobs of dead workers come back: counted, and bounded."""

    def test_a_swept_job_waits_in_its_old_place(self, q: BatchQueue, harness: Harness) -> None:
        """A swept job waits ahead of younger ones, with a stall counted and no attempt."""
        added(q, "ab")
        claim = taken(q, 1)
        harness.clock.advance("30s")

        assert q.sweep(by="sweeper") == Swept(returned=("a",), ended=(claim.id,))

        found = job(q, "a")
        assert (found.place, found.deliveries, found.attempts, found.stalls) == ("waiting", 1, 0, 1)
        assert (found.expires_at, found.due_at, found.claim) == (None, None, claim.id)
        assert "stalled" in found.error
        assert served(q) == ["a", "b"]
        assert q.get(claim.id).history[-1].by == "sweeper"

    @pytest.mark.parametrize("max_stalls", [0, 1, 3])
    def test_a_job_that_kills_its_worker_dies(self, queues: Queues, harness: Harness, max_stalls: int) -> None:
        """With so many recoveries allowed a job that stalls each time is dead after one claim more, and says why."""
        q = queues(policy=stalling(max_stalls))
        added(q, "a")

        swept = []
        for _ in range(max_stalls + 1):
            taken(q)
            harness.clock.advance("30s")
            swept.append(q.sweep())

        assert [found.returned for found in swept] == [("a",)] * max_stalls + [()]
        assert [found.dead for found in swept] == [()] * max_stalls + [("a",)]
        found = job(q, "a")
        assert (found.place, found.deliveries, found.stalls, found.attempts) == (
            "dead",
            max_stalls + 1,
            max_stalls + 1,
            0,
        )
        assert "stalled" in found.error
        assert found.dead_at == harness.clock()
        assert outcomes(q, "a") == ["swept"] * (max_stalls + 1)
        assert q.claim(1) is None

    def test_a_sweep_has_a_limit(self, q: BatchQueue, harness: Harness) -> None:
        """A dead worker's jobs come back as many at a time as the sweep is allowed, in the end in their old order."""
        names = [f"job-{number:02}" for number in range(50)]
        added(q, names)
        first = taken(q, 50)
        harness.clock.advance("30s")

        sweeps = [q.sweep(limit=20) for _ in range(3)]

        assert [len(swept.returned) for swept in sweeps] == [20, 20, 10]
        assert [swept.more for swept in sweeps] == [True, True, False]
        assert [swept.ended for swept in sweeps] == [(), (), (first.id,)]
        assert sorted(name for swept in sweeps for name in swept.returned) == names
        second = taken(q, 50)
        assert ids(second) == names
        assert {one.deliveries for one in second} == {2}
        assert (batch_of(q, first)[0], batch_of(q, second)[0]) == ("abandoned", "claimed")
        assert [batch.id for batch in q.find_by_request_id("job-07").batches] == [first.id, second.id]

    def test_a_sweep_goes_over_many_claims(self, q: BatchQueue, harness: Harness) -> None:
        """A sweep takes back what lapsed of all claims, and leaves those that live; its limit may end within one."""
        added(q, "abcdefgh")
        claims = [taken(q, 2) for _ in range(4)]
        claims[1].extend("1h")
        harness.clock.advance("30s")

        first, second, third = q.sweep(limit=3), q.sweep(limit=3), q.sweep(limit=3)

        assert (len(first.returned), first.more) == (3, True)
        assert (len(second.returned), second.more) == (3, False)
        assert third == Swept()
        assert {*first.ended, *second.ended} == {claims[0].id, claims[2].id, claims[3].id}
        assert places(q) == {"waiting": ["a", "b", "e", "f", "g", "h"], "active": ["c", "d"]}

    @pytest.mark.parametrize("limit", [0, -1, True, 1.5])
    def test_a_limit_that_is_none(self, q: BatchQueue, harness: Harness, limit: int) -> None:
        """A limit that is no positive whole number is the caller's error, and nothing is swept."""
        added(q, "ab")
        taken(q)
        harness.clock.advance("30s")

        with pytest.raises(InvalidValueError):
            q.sweep(limit=limit)
        assert places(q) == {"active": ["a", "b"]}

    def test_a_paused_queue_is_swept(self, q: BatchQueue, harness: Harness) -> None:
        """Sweeping goes on in a paused queue; what came back waits, and is not served."""
        added(q, "a")
        taken(q)
        q.pause()
        harness.clock.advance("30s")

        assert q.sweep().returned == ("a",)
        assert place_of(q, "a") == "waiting"
        assert q.claim(1) is None

    def test_a_settled_job_is_not_swept(self, q: BatchQueue, harness: Harness) -> None:
        """A job settled between the lapse and the sweep stays as it was settled, its neighbours come back."""
        q.set_ceiling(3, group="g")
        added(q, "abc", group="g")
        claim = taken(q)
        harness.clock.advance("31s")
        claim.settle({"a": Done(), "b": Retry("no", "1m")})
        before = job(q, "b")

        assert q.sweep() == Swept(returned=("c",), ended=(claim.id,))
        assert job(q, "b") == before
        assert place_of(q, "a") == "gone"
        assert group_of(q, "g") == {"waiting": 1, "scheduled": 1}
        assert [outcomes(q, name) for name in "abc"] == [["completed"], ["retried"], ["swept"]]

    def test_a_removed_job_is_not_swept(self, q: BatchQueue, harness: Harness) -> None:
        """A job that was removed before the sweep does not come back as an empty shell."""
        added(q, "ab")
        taken(q)
        harness.clock.advance("30s")
        q.remove(["a"], force=True)

        assert q.sweep().returned == ("b",)
        assert place_of(q, "a") == "gone"
        assert served(q) == ["b"]

    def test_a_dead_one_does_not_stop_the_sweep(self, queues: Queues, harness: Harness) -> None:
        """A job that dies in a sweep is in its result, and so are those after it."""
        q = queues(policy=stalling(1))
        added(q, "b")
        taken(q)
        harness.clock.advance("30s")
        q.sweep()
        q.add("c")
        q.remove(["b"])
        q.add("z")
        added(q, "a")
        claim = taken(q, 1)
        assert ids(claim) == ["c"]
        harness.clock.advance("30s")
        q.sweep()
        added(q, "d")
        middle = taken(q)
        assert ids(middle) == ["c", "z", "a", "d"]
        harness.clock.advance("30s")

        swept = q.sweep()

        assert (swept.returned, swept.dead) == (("z", "a", "d"), ("c",))
        assert places(q) == {"waiting": ["z", "a", "d"], "dead": ["c"]}

    def test_nothing_is_swept_that_is_not_held(self, q: BatchQueue, harness: Harness) -> None:
        """Jobs that wait, are due later or are dead, are never swept, however long."""
        added(q, "abc")
        taken(q, 1).settle({"a": Retry("no", "1d")})
        taken(q, 1).release()
        before = everything_of(q)["jobs"]
        harness.clock.advance("12h")

        assert q.sweep() == Swept()
        assert everything_of(q)["jobs"] == before

    def test_no_job_is_held_without_a_lease(self, q: BatchQueue) -> None:
        """A job is never seen active without a claim, a deadline and a delivery."""
        added(q, "abc")
        taken(q, 2)

        for one in q.jobs("active"):
            assert one.claim is not None
            assert one.expires_at is not None
            assert one.deliveries == 1
        [claim] = jobs_of(q).list_claims().items
        assert claim.jobs == (("a", claim.expires_at), ("b", claim.expires_at))

    def test_sweeping_allows_for_clocks_that_differ(self, queues: Queues, harness: Harness) -> None:
        """Where workers' clocks may differ, a sweep waits for that much longer, and the holder can still extend."""
        q = queues(policy=JobPolicy(skew="2s", backoff=STEADY.backoff))
        added(q, "ab")
        claim = taken(q, 1)
        taken(q)
        harness.clock.advance("31.999s")

        assert not q.sweep().returned
        assert claim.extend("1s")
        harness.clock.advance("1ms")
        assert q.sweep().returned == ("b",)
        harness.clock.advance("3s")
        assert q.sweep().returned == ("a",)

    def test_each_queue_sweeps_its_own(self, queues: Queues, harness: Harness) -> None:
        """A sweep of one queue takes back and reports no job of another."""
        one, two = queues("one"), queues("two")
        for q in (one, two):
            added(q, "ab")
            taken(q)
        harness.clock.advance("30s")

        assert one.sweep().returned == ("a", "b")
        assert places(two) == {"active": ["a", "b"]}

    def test_kept_however_long_done_ids_are(self, queues: Queues, harness: Harness) -> None:
        """A dead worker's job is back after one lease, whatever the retention."""
        q = queues(policy=JobPolicy(keep_done="90d", keep_settled="90d"))
        added(q, "a")
        taken(q)
        harness.clock.advance("30s")

        q.sweep()
        assert served(q) == ["a"]
