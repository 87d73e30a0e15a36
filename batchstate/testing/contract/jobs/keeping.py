"""What becomes of jobs afterwards: dead ones are revived, any are removed, old ones are purged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.claims.policy import JobPolicy
from batchstate.errors import InvalidNameError, InvalidTransitionError, NotFoundError
from batchstate.jobs import Dead, Done, Retry
from batchstate.testing.contract.jobs.base import (
    STEADY,
    JobTests,
    Queues,
    added,
    group_of,
    job,
    jobs_of,
    outcomes,
    place_of,
    places,
    refused,
    served,
    taken,
)

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Purging", "Removing", "Reviving"]


class Reviving(JobTests):
    """Bringing dead jobs back."""

    def test_a_revived_job_begins_anew(self, q: BatchQueue, harness: Harness) -> None:
        """A revived job waits in its old place with attempts, stalls, error and last claim cleared; deliveries stay."""
        added(q, "ab", max_attempts=1)
        claim = taken(q, 1)
        harness.clock.advance("30s")
        q.sweep()
        taken(q, 1).settle({"a": Retry("no")})
        assert (job(q, "a").place, job(q, "a").stalls, job(q, "a").attempts) == ("dead", 1, 1)

        assert q.revive(["a"]) == [None]

        found = job(q, "a")
        assert (found.place, found.deliveries, found.attempts, found.stalls) == ("waiting", 2, 0, 0)
        assert (found.error, found.claim, found.dead_at) == ("", None, None)
        assert served(q) == ["a", "b"]
        assert claim.settle({"a": Done()}).lost == ("a",)

    def test_a_job_is_revived_while_paused(self, q: BatchQueue) -> None:
        """A job can be revived in a paused queue or group, and waits."""
        added(q, "a", group="g")
        taken(q).settle({"a": Dead("no")})
        q.pause()
        q.pause("g")

        assert q.revive(["a"]) == [None]
        assert q.claim(1) is None
        q.resume()
        q.resume("g")
        assert served(q) == ["a"]

    def test_only_dead_jobs_are_revived(self, q: BatchQueue) -> None:
        """Each job is answered for itself: revived, waiting already, held or due later, or not there."""
        added(q, "abcd")
        claim = taken(q)
        claim.settle({"a": Dead("no"), "b": Retry("no", "1h")})
        claim.release(["d"])

        assert refused(q.revive(["a", "b", "c", "d", "x"])) == [
            None,
            InvalidTransitionError,
            InvalidTransitionError,
            None,
            NotFoundError,
        ]
        assert places(q) == {"waiting": ["a", "d"], "active": ["c"], "scheduled": ["b"]}
        assert q.revive([]) == []

    def test_a_revived_job_may_die_again(self, q: BatchQueue) -> None:
        """A revived job has all its attempts again, and dies of the last."""
        added(q, "a", max_attempts=2)
        for _ in range(2):
            taken(q).settle({"a": Retry("no", 0)})
        q.revive(["a"])

        taken(q).settle({"a": Retry("no", 0)})
        assert place_of(q, "a") == "waiting"
        taken(q).settle({"a": Retry("no", 0)})
        assert (place_of(q, "a"), job(q, "a").deliveries) == ("dead", 4)
        assert outcomes(q, "a") == ["retried", "dead", "retried", "dead"]


class Removing(JobTests):
    """Taking jobs out."""

    def test_jobs_are_removed_from_every_place(self, q: BatchQueue, harness: Harness) -> None:
        """A job that waits, is due later, or is dead is removed, is nowhere, and its ID is free."""
        added(q, "abcd")
        taken(q, 2).settle({"a": Dead("no"), "b": Retry("no", "1s")})

        assert q.remove(["a", "b", "c", "x"]) != [None] * 4
        assert places(q) == {"waiting": ["d"]}
        harness.clock.advance("1s")
        assert served(q) == ["d"]
        assert [q.add(name) for name in "abc"] == [True, True, True]
        assert served(q) == ["a", "b", "c"]

    def test_a_held_job_is_removed_by_force_alone(self, q: BatchQueue) -> None:
        """Removing a held job is refused unless forced; then its holder's verdict is lost, and its slot is free."""
        q.set_ceiling(2, group="g")
        added(q, "abcd", group="g")
        claim = taken(q)

        assert refused(q.remove(["a"])) == [InvalidTransitionError]
        assert place_of(q, "a") == "active"
        assert q.remove(["a"], force=True, by="admin") == [None]
        assert place_of(q, "a") == "gone"
        assert outcomes(q, "a") == ["removed"]
        assert served(q) == ["c"]
        assert claim.settle({"a": Done(), "b": Done()}).lost == ("a",)
        assert group_of(q, "g") == {"active": 1, "waiting": 1}

    def test_removing_the_last_held_job_ends_the_claim(self, q: BatchQueue) -> None:
        """The forced removal of a claim's last job ends it as settled, and says who did that."""
        added(q, "ab")
        claim = taken(q)
        q.remove(["a"], force=True)
        assert q.get(claim.id).state == "claimed"

        q.remove(["b"], force=True, by="admin")

        batch = q.get(claim.id)
        assert (batch.state, batch.version, batch.history[-1].by) == ("settled", 2, "admin")

    def test_a_remembered_id_is_forgotten(self, q: BatchQueue) -> None:
        """Removing a done job's ID frees it."""
        added(q, "a")
        taken(q).settle({"a": Done()})
        assert not q.add("a")

        assert q.remove(["a"]) == [None]
        assert refused(q.remove(["a"])) == [NotFoundError]
        assert q.add("a")

    def test_each_is_answered_for_itself(self, q: BatchQueue) -> None:
        """One that is held or not there costs the others nothing."""
        added(q, "abc")
        taken(q, 1)

        assert refused(q.remove(["x", "a", "b", "b"])) == [NotFoundError, InvalidTransitionError, None, NotFoundError]
        assert places(q) == {"waiting": ["c"], "active": ["a"]}
        with pytest.raises(InvalidNameError):
            q.remove([""])


class Purging(JobTests):
    """Forgetting what was kept long enough."""

    @pytest.mark.parametrize("keep", ["0s", "1h"])
    def test_dead_and_done_ids_are_free_after_the_same_time(self, queues: Queues, harness: Harness, keep: str) -> None:
        """With equal retentions a dead job's ID is free when a done one's is, and after none at once."""
        q = queues(policy=JobPolicy(keep_done=keep, keep_dead=keep))
        added(q, ["done", "dead"])
        taken(q).settle({"done": Done(), "dead": Dead("no")})
        if keep == "1h":
            harness.clock.advance("3599.999s")
            q.tidy()
            assert [q.add("done"), q.add("dead")] == [False, False]
            harness.clock.advance("1ms")

        q.tidy()

        assert [q.add("done"), q.add("dead")] == [True, True]
        assert places(q) == {"waiting": ["done", "dead"]}

    def test_dead_jobs_are_kept_for_ever(self, q: BatchQueue, harness: Harness) -> None:
        """Unless the policy says otherwise, dead jobs stay."""
        added(q, "a")
        taken(q).settle({"a": Dead("no")})
        harness.clock.advance("3650d")

        q.tidy()
        assert [one.error for one in q.jobs("dead")] == ["no"]

    def test_living_jobs_are_never_purged(self, queues: Queues, harness: Harness) -> None:
        """Jobs that wait, are held or are due later stay, however old, and so does one that was revived."""
        q = queues(policy=JobPolicy(keep_done=0, keep_dead=0, keep_settled=0, max_stalls=100))
        added(q, "abcd")
        taken(q, 3).settle({"a": Retry("no", "9d"), "c": Dead("no")})
        q.revive(["c"])
        harness.clock.advance("8d")

        q.tidy()
        assert places(q) == {"waiting": ["b", "c", "d"], "scheduled": ["a"]}

    def test_purging_has_a_limit(self, q: BatchQueue, harness: Harness) -> None:
        """One step of purging deletes about as many as it may and says whether more remain, until all are gone."""
        names = [f"{number}" for number in range(30)]
        added(q, names)
        taken(q).settle({name: Done() if int(name) % 2 else Dead("no") for name in names})
        harness.clock.advance("2d")

        steps = []
        for _ in range(20):
            steps.append(jobs_of(q).purge_jobs(7, keep_dead=0))
            if not steps[-1][1]:
                break

        assert sum(gone for gone, _ in steps) == 30
        assert all(gone <= 14 for gone, _ in steps)
        assert places(q) == {}
        assert jobs_of(q).purge_jobs(7, keep_dead=0) == (0, False)

    def test_ended_claims_are_purged_after_their_time(self, queues: Queues, harness: Harness) -> None:
        """Ended claims are found by their jobs until their time is over, and then nothing is left of them."""
        q = queues(policy=JobPolicy(keep_settled="2h", max_stalls=9, backoff=STEADY.backoff))
        added(q, "ab")
        first = taken(q, 1)
        first.settle({"a": Done()})
        second = taken(q)
        harness.clock.advance("1h")
        third = q.sweep().ended
        assert third == (second.id,)
        held = taken(q)
        held.extend("9h")
        harness.clock.advance("3599.999s")

        assert q.tidy().purged.batches == 0
        assert [batch.id for batch in q.find_by_request_id("a").batches] == [first.id]
        harness.clock.advance("1ms")
        assert q.tidy().purged.batches == 1
        harness.clock.advance("1h")
        assert q.tidy().purged.batches == 1
        assert q.find_by_request_id("a") == ((), 0)
        assert [batch.id for batch in q.find_by_request_id("b").batches] == [held.id]
        assert first.settle({"a": Done()}).lost == ("a",)
        assert held.settle({"b": Done()}) == held.settlement

    def test_what_tidying_did(self, q: BatchQueue, harness: Harness) -> None:
        """Tidying sweeps, reconciles and purges, and says what it did."""
        added(q, "ab")
        taken(q, 1).settle({"a": Done()})
        taken(q)
        harness.clock.advance("16d")

        tidied = q.tidy()

        assert tidied.swept.returned == ("b",)
        assert (tidied.purged.batches, tidied.forgotten) == (1, 1)
        assert tidied.reconciled.removed == 0
