"""Settling each job on its own verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from batchstate.claims.policy import Backoff, JobPolicy
from batchstate.errors import ClaimLostError, InvalidValueError, StorageUnavailableError
from batchstate.job_calls import Settling as Call
from batchstate.jobs import Dead, Delay, Done, Retry, Settlement, Verdict
from batchstate.testing.contract.jobs.base import (
    JobTests,
    Queues,
    added,
    everything_of,
    ids,
    job,
    jobs_of,
    outcomes,
    place_of,
    places,
    served,
    taken,
)
from batchstate.testing.faults import Crash, crash_before, drop_reply

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Settling"]

KINDS: tuple[Literal["complete", "retry", "delay", "dead", "release"], ...] = (
    "complete", "retry", "delay", "dead", "release",
)  # fmt: skip


class Settling(JobTests):
    """Settling: each job by itself, once, and the report says what the store did."""

    def test_each_job_settles_by_itself(self, q: BatchQueue, harness: Harness) -> None:
        """One failed job costs the others nothing: they are gone, and it is due again with its error."""
        added(q, "abc")

        settlement = taken(q).settle({"a": Retry("no luck"), "b": Done(), "c": Done()})

        assert settlement == Settlement(completed=("b", "c"), retried=("a",), finished=True)
        assert (place_of(q, "b"), place_of(q, "c")) == ("gone", "gone")
        found = job(q, "a")
        assert (found.place, found.error, found.attempts, found.due_at) == (
            "scheduled",
            "no luck",
            1,
            harness.clock() + 10_000,
        )
        assert (found.expires_at, found.dead_at) == (None, None)
        harness.clock.advance("9.999s")
        assert q.claim(5) is None
        harness.clock.advance("1ms")
        assert served(q, 5) == ["a"]

    def test_every_verdict_in_one_call(self, q: BatchQueue, harness: Harness) -> None:
        """Every verdict goes into a list of its own, in the claim's order, whatever order the call has."""
        added(q, "abc")
        added(q, "de", max_attempts=1)
        added(q, "fgh")
        claim = taken(q)

        settlement = claim.settle(
            {
                "h": Done(), "g": Delay("40s"), "e": Retry("once"), "d": Dead("never"), "c": Retry("again", "5s"),
                "b": Done(), "a": Retry("again", 0),
            }
        )  # fmt: skip

        assert settlement == Settlement(
            completed=("b", "h"), retried=("a", "c"), delayed=("g",), dead=("d", "e"), finished=False
        )
        assert places(q) == {"waiting": ["a"], "active": ["f"], "scheduled": ["c", "g"], "dead": ["d", "e"]}
        now = harness.clock()
        assert [(one.due_at, one.attempts, one.error) for one in q.jobs("scheduled")] == [
            (now + 5_000, 1, "again"),
            (now + 40_000, 0, ""),
        ]
        assert [(one.dead_at, one.attempts, one.error) for one in q.jobs("dead")] == [
            (now, 0, "never"),
            (now, 1, "once"),
        ]
        assert claim.extend().held == 1
        assert claim.settle({"f": Done()}).finished

    def test_a_job_is_dead_on_exactly_its_last_attempt(self, q: BatchQueue, harness: Harness) -> None:
        """A job dies on the failure that reaches its attempts: the first of one, the third of three."""
        added(q, "a", max_attempts=1)
        added(q, "b")

        settlements = []
        for number in (1, 2, 3):
            claim = taken(q)
            settlements.append(claim.settle({one.id: Retry(f"failure {number}", "1s") for one in claim}))
            harness.clock.advance("1s")

        assert [(found.retried, found.dead) for found in settlements] == [(("b",), ("a",)), (("b",), ()), ((), ("b",))]
        assert [(one.id, one.error, one.attempts) for one in q.jobs("dead")] == [
            ("a", "failure 1", 1),
            ("b", "failure 3", 3),
        ]
        assert q.claim(5) is None

    def test_a_retry_names_its_delay(self, q: BatchQueue, harness: Harness) -> None:
        """A retried job is due to the millisecond when its verdict says."""
        added(q, "a")
        taken(q).settle({"a": Retry("wait", "10s")})

        harness.clock.advance("9.999s")
        assert q.claim(1) is None
        harness.clock.advance("1ms")
        assert served(q) == ["a"]

    def test_a_due_job_comes_before_younger_ones(self, q: BatchQueue, harness: Harness) -> None:
        """A job that was retried and is due again is served before a younger one that waited all along."""
        added(q, "ab")
        taken(q, 1).settle({"a": Retry("no", "1s")})
        harness.clock.advance("1s")

        assert served(q) == ["a", "b"]

    def test_a_retry_without_a_delay_waits_by_the_back_off(self, queues: Queues, harness: Harness) -> None:
        """The queue's back-off answers how long a job waits, from how often it has failed by then."""
        q = queues(policy=JobPolicy(max_attempts=4, backoff=Backoff(first="1s", factor=3, most="5s", jitter=False)))
        added(q, "a")

        waits = []
        for _ in range(3):
            taken(q).settle({"a": Retry("no")})
            waits.append((job(q, "a").due_at or 0) - harness.clock())
            harness.clock.advance("5s")

        assert waits == [1_000, 3_000, 5_000]

    def test_the_present_due_time_counts(self, q: BatchQueue, harness: Harness) -> None:
        """A job once added with a delay is due when its latest verdict says, neither earlier nor later."""
        q.add("a", delay="1h")
        added(q, "b")
        taken(q).settle({"b": Retry("no", "5m")})
        harness.clock.advance("1m")
        assert q.claim(1) is None
        harness.clock.advance("4m")
        assert served(q) == ["b"]
        harness.clock.advance("55m")

        taken(q).settle({"a": Retry("no", 0)})

        assert served(q) == ["a"]

    def test_settling_again_answers_the_same(self, q: BatchQueue, harness: Harness) -> None:
        """A settlement sent again is answered as before, says again that the claim has ended, and changes nothing."""
        added(q, "ab")
        claim = taken(q)
        verdicts: dict[str, Verdict] = {"a": Done(), "b": Retry("no")}
        first = claim.settle(verdicts)
        before = everything_of(q)
        harness.clock.advance("3s")

        assert claim.settle(verdicts) == first == Settlement(completed=("a",), retried=("b",), finished=True)
        after = everything_of(q)
        assert after["jobs"] == before["jobs"]
        assert outcomes(q, "a") == ["completed"]

    def test_the_first_verdict_stands(self, q: BatchQueue) -> None:
        """A second verdict of a claim on a job, whatever it says, is answered with what became of the first."""
        added(q, "abcde")
        claim = taken(q)
        claim.settle({"a": Done(), "b": Retry("first"), "c": Delay("1h"), "d": Dead("first")})
        claim.release(["e"])
        before = everything_of(q)

        seconds: list[Verdict] = [Done(), Retry("second", 0), Delay(0), Dead("second")]
        for verdict in seconds:
            assert claim.settle(dict.fromkeys("abcde", verdict)) == Settlement(
                ("a",), ("b",), ("c",), ("d",), ("e",), finished=True
            )
        assert claim.release(["a", "b", "c", "d", "e"]).released == ("e",)
        assert everything_of(q) == before
        assert [outcomes(q, name) for name in "abcde"] == [
            ["completed"], ["retried"], ["delayed"], ["dead"], ["released"],
        ]  # fmt: skip

    def test_the_first_verdict_stands_when_the_job_is_long_elsewhere(self, q: BatchQueue, harness: Harness) -> None:
        """A verdict that comes again after the job was claimed anew, or done, is answered with the first outcome."""
        added(q, "a")
        old = taken(q)
        old.settle({"a": Retry("no", 0)})
        new = taken(q)

        assert old.settle({"a": Dead("late")}).retried == ("a",)
        assert job(q, "a").claim == new.id
        new.settle({"a": Done()})
        harness.clock.advance("2d")
        q.tidy()
        assert old.settle({"a": Retry("later still")}).retried == ("a",)
        assert place_of(q, "a") == "gone"
        assert q.add("a")

    def test_a_job_named_twice_in_one_call(self, q: BatchQueue) -> None:
        """Of two settlings of one job in one call of the storage the first stands, and both are answered so."""
        added(q, "a")
        claim = taken(q)

        settled = jobs_of(q).settle_jobs(claim.id, [Call("a", "retry", "x"), Call("a", "dead", "y")], keep_done=0)

        assert settled.outcomes == ("retried", "retried")
        assert job(q, "a").attempts == 1

    @pytest.mark.parametrize("token", ["", "0", "None", "another"])
    def test_a_token_that_is_none(self, q: BatchQueue, token: str) -> None:
        """Without the claim's own ID nothing is settled, extended or released, and the holder still can."""
        added(q, "ab")
        claim, other = taken(q, 1), taken(q, 1)
        token = other.id if token == "another" else token  # noqa: S105 - a fencing token, no secret
        before = job(q, "a")
        calls = [Call("a", kind) for kind in KINDS]

        for call in calls:
            assert jobs_of(q).settle_jobs(token, [call], keep_done=0).outcomes == ("lost",)
        assert jobs_of(q).extend_job(token, "a", 60_000).lost == ("a",)
        assert job(q, "a") == before
        assert claim.settle({"a": Done()}).completed == ("a",)

    def test_a_job_that_never_was(self, q: BatchQueue) -> None:
        """A verdict on a job that the claim never held is answered as lost, after those of the claim."""
        added(q, "a")
        claim = taken(q)
        added(q, "b")

        settlement = claim.settle({"x": Done(), "b": Done(), "a": Done()})

        assert (settlement.completed, settlement.lost) == (("a",), ("x", "b"))
        assert places(q) == {"waiting": ["b"]}

    def test_a_lost_settlement_cannot_be_taken_for_success(self, q: BatchQueue) -> None:
        """A settlement with a lost job is false, names it, and raises when asked to."""
        added(q, "ab")
        claim = taken(q)
        q.remove(["a"], force=True)

        settlement = claim.settle({"a": Done(), "b": Done()})

        assert not settlement
        assert not settlement.ok
        assert settlement == Settlement(completed=("b",), lost=("a",), finished=True)
        with pytest.raises(ClaimLostError, match="a"):
            settlement.raise_for_lost()
        good = Settlement(completed=("b",))
        assert good
        good.raise_for_lost()

    def test_a_late_failure_makes_no_ghost(self, q: BatchQueue, harness: Harness) -> None:
        """A former holder's failure, coming after another has completed the job, leaves nothing behind."""
        added(q, "a")
        old = taken(q)
        harness.clock.advance("30s")
        q.sweep()
        taken(q).settle({"a": Done()})
        harness.clock.advance("1d")
        q.tidy()

        assert old.settle({"a": Retry("too late")}).lost == ("a",)
        assert old.settle({"a": Dead("too late")}).lost == ("a",)
        assert place_of(q, "a") == "gone"
        assert q.add("a")
        assert job(q, "a").error == ""

    def test_a_retried_job_succeeds_later(self, q: BatchQueue) -> None:
        """A job that failed once and then succeeded is completed; each claim keeps its own account of it."""
        added(q, "a")
        first = taken(q)
        assert first.settle({"a": Retry("no", 0)}).finished
        second = taken(q)

        assert second.jobs[0].attempts == 1
        assert second.settle({"a": Done()}) == Settlement(completed=("a",), finished=True)
        assert outcomes(q, "a") == ["retried", "completed"]
        assert [attempt.batch.id for attempt in q.attempts("a")] == [first.id, second.id]

    def test_a_long_error_is_cut(self, q: BatchQueue, harness: Harness) -> None:
        """A job failing a hundred times with long errors stays small, and its latest error is kept, cut."""
        added(q, "a", max_attempts=1000)
        for number in range(min(100, harness.scale)):
            taken(q).settle({"a": Retry(f"{number}: " + "\u00e9" * 5000, 0)})

        found = job(q, "a")
        assert found.attempts == min(100, harness.scale)
        assert found.error.startswith(f"{found.attempts - 1}: \u00e9")
        assert len(found.error) == 1000

    @pytest.mark.parametrize(
        "verdict", [None, True, "done", Done, Retry("x", -1), Retry(5), Delay(float("nan")), Delay("soon"), Dead(None)],  # type: ignore[arg-type]
        ids=repr,
    )  # fmt: skip
    def test_no_verdict(self, q: BatchQueue, verdict: Any) -> None:  # noqa: ANN401 - what must be refused
        """What is no verdict is refused before anything is settled."""
        added(q, "ab")
        claim = taken(q)
        before = everything_of(q)

        with pytest.raises(InvalidValueError):
            claim.settle({"a": Done(), "b": verdict})
        with pytest.raises(InvalidValueError):
            claim.record("b", verdict)
        assert everything_of(q) == before

    def test_a_store_that_cannot_be_reached(self, queues: Queues) -> None:
        """Where the store fails, each job named is in the errors, and the same call settles them later."""
        added(queues(), "ab")
        q = queues("q", drop_reply(2))
        claim = taken(q)

        failed = claim.settle({"a": Done(), "b": Retry("no")})

        assert list(failed.errors) == ["a", "b"]
        assert all(isinstance(error, StorageUnavailableError) for error in failed.errors.values())
        assert not failed
        assert failed == Settlement(errors=failed.errors)
        assert list(claim.settlement.errors) == ["a", "b"]
        again = claim.settle({"a": Done(), "b": Retry("no")})
        assert again == claim.settlement == Settlement(completed=("a",), retried=("b",), finished=True)
        assert job(q, "b").attempts == 1

    def test_a_worker_that_dies_before_settling(self, queues: Queues, harness: Harness) -> None:
        """What a dead worker held comes back, what it had settled does not."""
        added(queues(), "abc")
        q = queues("q", crash_before(3))
        claim = taken(q)
        claim.settle({"a": Done()})
        with pytest.raises(Crash):
            claim.settle({"b": Done()})

        harness.clock.advance("30s")
        assert q.sweep().returned == ("b", "c")
        assert ids(taken(q)) == ["b", "c"]
