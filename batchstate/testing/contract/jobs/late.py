"""Settling late: after the sweep took the job back, and before anybody else has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.claims.policy import JobPolicy
from batchstate.jobs import Dead, Delay, Done, Retry, Settlement, Verdict
from batchstate.testing.contract.jobs.base import (
    STEADY,
    JobTests,
    Queues,
    added,
    everything_of,
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
    from collections.abc import Iterable

    from batchstate.claims.claim import Claim
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["LateSettling"]

VERDICTS = [Done(), Retry("late", "5s"), Retry("late", 0), Delay("5s"), Dead("late")]


def lapsed(q: BatchQueue, harness: Harness, names: Iterable[str] = "a", group: str | None = None) -> Claim:
    """Answer a claim whose jobs were swept."""
    added(q, names, group=group)
    claim = taken(q)
    harness.clock.advance("30s")
    q.sweep()
    return claim


class LateSettling(JobTests):
    """Who lost the lease may still settle while nobody else has touched the job."""

    def test_a_lapse_alone_loses_nothing(self, q: BatchQueue, harness: Harness) -> None:
        """A holder whose lease has lapsed can extend and settle until somebody sweeps."""
        added(q, "ab")
        claim = taken(q)
        harness.clock.advance("1h")

        assert claim.settle({"a": Done()}).completed == ("a",)
        extended = claim.extend("10s")
        assert (extended.held, extended.lost, extended.expires_at) == (1, (), harness.clock() + 10_000)
        assert not q.sweep().returned
        assert claim.settle({"b": Done()}) == Settlement(completed=("b",), finished=True)

    @pytest.mark.parametrize("verdict", VERDICTS, ids=repr)
    def test_a_swept_job_is_settled_late(self, q: BatchQueue, harness: Harness, verdict: Verdict) -> None:
        """The last holder of a swept job may give any verdict: its work is done, and the job leaves waiting."""
        claim = lapsed(q, harness, group="g")
        assert outcomes(q, "a") == ["swept"]

        settlement = claim.settle({"a": verdict})

        expected = {"Done": "completed", "Delay": "delayed", "Dead": "dead", "Retry": "retried"}[type(verdict).__name__]
        assert getattr(settlement, expected) == ("a",)
        assert settlement.ok
        assert outcomes(q, "a") == [expected]
        where = {"completed": "gone", "delayed": "scheduled", "dead": "dead"}.get(
            expected, "waiting" if verdict == Retry("late", 0) else "scheduled"
        )
        assert place_of(q, "a") == where
        assert group_of(q, "g") == ({} if where == "gone" else {where: 1})
        assert claim.settle({"a": Done()}) == settlement

    def test_a_late_failure_charges_an_attempt_besides_the_stall(self, q: BatchQueue, harness: Harness) -> None:
        """A job that was swept and then reported as failed has one stall and one attempt."""
        claim = lapsed(q, harness)

        claim.settle({"a": Retry("late", 0)})

        found = job(q, "a")
        assert (found.deliveries, found.attempts, found.stalls, found.error) == (1, 1, 1, "late")
        assert served(q) == ["a"]

    def test_a_late_failure_may_be_the_last(self, q: BatchQueue, harness: Harness) -> None:
        """A late failure kills a job at its last attempt."""
        added(q, "a", max_attempts=1)
        claim = lapsed(q, harness, ())

        assert claim.settle({"a": Retry("late")}).dead == ("a",)
        assert place_of(q, "a") == "dead"

    def test_a_late_retry_of_nothing_is_served_once(self, q: BatchQueue, harness: Harness) -> None:
        """A job that was swept, failed late and is due again is one job, served once."""
        claim = lapsed(q, harness, "ab")
        claim.settle({"a": Retry("late", "1s")})
        harness.clock.advance("1s")

        assert served(q) == ["a", "b"]
        assert group_of(q) == {"active": 2}

    def test_extending_and_releasing_are_refused_after_the_sweep(self, q: BatchQueue, harness: Harness) -> None:
        """After the sweep a lease cannot be had back, nor the job given back."""
        claim = lapsed(q, harness)
        before = everything_of(q)

        extended = claim.extend()
        assert (bool(extended), extended.held, extended.lost, extended.expires_at) == (False, 0, ("a",), None)
        assert claim.extend_job("a", "1h").lost == ("a",)
        assert claim.release(["a"]).lost == ("a",)
        assert everything_of(q) == before
        assert claim.lost == {"a"}
        assert claim.settle({"a": Done()}).completed == ("a",)

    @pytest.mark.parametrize("after", ["claimed", "completed", "removed", "dead", "revived", "added anew", "retried"])
    @pytest.mark.parametrize("verdict", VERDICTS, ids=repr)
    def test_it_is_too_late(self, q: BatchQueue, harness: Harness, after: str, verdict: Verdict) -> None:
        """Once the job was claimed again, removed, dead, revived or added anew, all by the old claim is lost."""
        claim = lapsed(q, harness, "ab")
        claim.settle({"b": Done()})
        if after in ("claimed", "completed", "dead", "revived", "retried"):
            other = taken(q)
            if after != "claimed":
                verdicts: dict[str, Verdict] = {"completed": Done(), "retried": Retry("x", 0)}
                other.settle({"a": verdicts.get(after, Dead("x"))})
            if after == "revived":
                q.revive(["a"])
        else:
            q.remove(["a"])
            if after == "added anew":
                q.add("a")
        before = everything_of(q)

        assert claim.settle({"a": verdict, "b": Done()}) == Settlement(completed=("b",), lost=("a",), finished=True)
        assert claim.release(["a"]).lost == ("a",)
        assert not claim.extend()
        assert not claim.extend_job("a", "1h")
        assert everything_of(q) == before

    def test_a_job_that_the_sweep_killed_is_lost(self, queues: Queues, harness: Harness) -> None:
        """A job that stalled once too often is dead, and its last holder's verdict comes too late."""
        q = queues(policy=JobPolicy(max_stalls=0, backoff=STEADY.backoff))
        claim = lapsed(q, harness)
        assert place_of(q, "a") == "dead"

        assert claim.settle({"a": Done()}).lost == ("a",)
        assert q.revive(["a"]) == [None]
        assert claim.settle({"a": Done()}).lost == ("a",)
        assert places(q) == {"waiting": ["a"]}

    def test_the_new_holder_is_not_disturbed(self, q: BatchQueue, harness: Harness) -> None:
        """Whatever the old holder tries, the new one keeps its lease and can settle."""
        old = lapsed(q, harness)
        new = taken(q)
        until = job(q, "a").expires_at

        for attempt in (
            lambda: old.settle({"a": Delay("1h")}),
            lambda: old.settle({"a": Done()}),
            lambda: old.release(["a"]),
            lambda: old.extend("1h"),
            lambda: old.extend_job("a", "1h"),
        ):
            assert not attempt()
            assert (job(q, "a").expires_at, job(q, "a").claim) == (until, new.id)
        assert new.settle({"a": Delay("5s")}).delayed == ("a",)

    def test_a_swept_job_in_another_group_is_settled_late(self, q: BatchQueue, harness: Harness) -> None:
        """A swept job that was moved to another group meanwhile leaves that one, and no slot is freed twice."""
        q.set_ceiling(1, group="g")
        q.set_ceiling(1, group="h")
        claim = lapsed(q, harness, group="g")
        q.move_job("a", "h")
        added(q, "bc", group="h")
        holder = taken(q, group="h")
        assert [one.id for one in holder] == ["a"]
        holder.release()

        assert claim.settle({"a": Done()}).lost == ("a",)
        assert group_of(q, "h") == {"waiting": 3}

    def test_a_late_settlement_frees_no_slot_twice(self, q: BatchQueue, harness: Harness) -> None:
        """A slot that the sweep freed is another's by then, and stays so when the old holder settles late."""
        q.set_ceiling(1, group="g")
        claim = lapsed(q, harness, "ab", group="g")
        assert group_of(q, "g") == {"waiting": 2}
        q.move_job("a", "parked")
        assert ids(taken(q, group="g")) == ["b"]

        assert claim.settle({"a": Done()}).completed == ("a",)
        assert group_of(q, "g") == {"active": 1}
        assert q.claim(5, group="g") is None

    def test_late_settling_changes_no_end(self, q: BatchQueue, harness: Harness) -> None:
        """A claim that a sweep ended stays abandoned, whatever is settled late."""
        claim = lapsed(q, harness)
        before = q.get(claim.id)
        assert before.state == "abandoned"

        assert claim.settle({"a": Done()}).finished
        assert q.get(claim.id) == before
