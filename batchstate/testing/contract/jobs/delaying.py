"""Delaying jobs, and giving them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.jobs import Delay, Done, Retry, Settlement
from batchstate.testing.contract.jobs.base import (
    JobTests,
    added,
    group_of,
    ids,
    job,
    outcomes,
    place_of,
    places,
    served,
    taken,
)

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Delaying"]


class Delaying(JobTests):
    """Verdicts that charge nothing."""

    def test_a_delayed_job_is_due_later(self, q: BatchQueue, harness: Harness) -> None:
        """A delayed job has left its lease, charged nothing, and is served again when it is due."""
        added(q, "a")
        assert taken(q).settle({"a": Delay("40s")}) == Settlement(delayed=("a",), finished=True)

        found = job(q, "a")
        assert (found.place, found.attempts, found.expires_at) == ("scheduled", 0, None)
        harness.clock.advance("39.999s")
        assert not q.sweep().returned
        assert q.claim(1) is None
        harness.clock.advance("1ms")
        [again] = taken(q)
        assert (again.id, again.deliveries, again.stalls, again.attempts) == ("a", 2, 0, 0)

    def test_delays_do_not_wear_a_job_out(self, q: BatchQueue, harness: Harness) -> None:
        """A job that was delayed five times and then failed once has failed once."""
        added(q, "a", max_attempts=2)
        for _ in range(5):
            taken(q).settle({"a": Delay("1s")})
            harness.clock.advance("1s")

        assert taken(q).settle({"a": Retry("no")}).retried == ("a",)
        assert (job(q, "a").place, job(q, "a").attempts, job(q, "a").deliveries) == ("scheduled", 1, 6)

    def test_a_lost_claim_delays_nothing(self, q: BatchQueue, harness: Harness) -> None:
        """A former holder's delay is lost and leaves the new lease alone, whose holder may delay."""
        added(q, "a")
        old = taken(q)
        harness.clock.advance("30s")
        q.sweep()
        new = taken(q)

        assert old.settle({"a": Delay("5s")}).lost == ("a",)
        assert job(q, "a").expires_at == harness.clock() + 30_000
        assert new.settle({"a": Delay("5s")}).delayed == ("a",)

    def test_a_delayed_job_outlasts_many_leases(self, q: BatchQueue, harness: Harness) -> None:
        """A job due a hundred lease lengths from now, added or settled so, is touched by no sweep and served once."""
        q.add("added", delay="50m")
        added(q, ["settled"])
        taken(q).settle({"settled": Delay("50m")})
        for _ in range(9):
            harness.clock.advance("5m")
            assert not q.sweep().returned
            assert q.claim(5) is None
        harness.clock.advance("5m")

        assert [(one.id, one.attempts, one.stalls) for one in taken(q)] == [("added", 0, 0), ("settled", 0, 0)]
        assert q.claim(5) is None

    def test_a_delayed_head_holds_nobody_up(self, q: BatchQueue) -> None:
        """Jobs behind one that is due later are served, in its group too."""
        q.add("head", group="g", delay="1h")
        added(q, "ab", group="g")

        assert served(q) == ["a", "b"]

    def test_a_released_job_is_back_in_its_place(self, q: BatchQueue) -> None:
        """A released job waits in its old place, uncharged, and the claim's later verdicts change nothing."""
        added(q, "abc")
        claim = taken(q, 2)

        assert claim.release(["a"]) == Settlement(released=("a",))
        found = job(q, "a")
        assert (found.place, found.attempts, found.stalls, found.deliveries) == ("waiting", 0, 0, 1)
        assert claim.release(["a"]).released == ("a",)
        assert claim.settle({"a": Done()}).released == ("a",)
        assert claim.settle({"a": Retry("no")}).released == ("a",)
        assert place_of(q, "a") == "waiting"
        assert outcomes(q, "a") == ["released"]
        assert served(q) == ["a", "c"]

    def test_releasing_a_claim_gives_back_what_was_not_settled(self, q: BatchQueue) -> None:
        """Releasing a claim settles nothing anew: the rest is claimable at once, in its old places, its slots free."""
        q.set_ceiling(5)
        added(q, "abcdefg", group="g")
        claim = taken(q, 5)
        claim.settle({"b": Done(), "d": Retry("no")})

        assert claim.release() == Settlement(released=("a", "c", "e"), finished=True)
        assert group_of(q, "g") == {"waiting": 5, "scheduled": 1}
        again = taken(q, 5)
        assert [(one.id, one.attempts) for one in again] == [("a", 0), ("c", 0), ("e", 0), ("f", 0), ("g", 0)]
        assert claim.release() == Settlement(finished=True)
        assert not claim.extend()
        assert not claim.extend_job("a", "1h")
        assert places(q) == {"active": ids(again), "scheduled": ["d"]}
