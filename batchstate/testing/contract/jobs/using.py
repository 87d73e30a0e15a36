"""Claims as people use them: `with claim:`, `claim.attempt`, `claim.record`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from batchstate.errors import HandlerContractError, InvalidValueError
from batchstate.job_calls import Settling as Call
from batchstate.jobs import Dead, Delay, Done, Retry, Settlement
from batchstate.testing.contract.jobs.base import (
    JobTests,
    Queues,
    added,
    ids,
    job,
    noted,
    outcomes,
    place_of,
    places,
    taken,
)
from batchstate.testing.faults import drop_reply

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Using"]


class Using(JobTests):
    """A claim as a context manager."""

    def test_leaving_settles_what_was_attempted(self, q: BatchQueue) -> None:
        """An attempt that ends is done, one that raises is retried with what it said, and nothing escapes."""
        added(q, "abc")

        with taken(q) as claim:
            for one in claim:
                with claim.attempt(one) as handed:
                    assert handed is one
                    if one.id == "b":
                        raise ValueError("no luck")

        assert claim.settlement == Settlement(completed=("a", "c"), retried=("b",), finished=True)
        assert job(q, "b").error == "ValueError: no luck"

    def test_leaving_is_one_call(self, queues: Queues) -> None:
        """Whatever the verdicts are, leaving settles and releases in one call."""
        q, notes = noted(queues)
        added(q, "abcde")
        with taken(q) as claim:
            notes.calls.clear()
            claim.record("a", Done())
            claim.record("b", Retry("no"))
            claim.record("c", Delay("1s"))
            claim.record("d", Dead("no"))

        assert notes.methods == ["settle_jobs"]
        assert claim.settlement == Settlement(("a",), ("b",), ("c",), ("d",), ("e",), finished=True)

    def test_leaving_with_nothing_left_is_no_call(self, queues: Queues) -> None:
        """A claim that was settled whole inside its block is not settled again."""
        q, notes = noted(queues)
        added(q, "ab")
        with taken(q) as claim:
            claim.settle({"a": Done()})
            claim.release(["b"])
            notes.calls.clear()

        assert notes.methods == []
        assert claim.settlement == Settlement(completed=("a",), released=("b",), finished=True)

    def test_untouched_jobs_are_released(self, q: BatchQueue) -> None:
        """Jobs without a verdict are given back when the block ends, uncharged."""
        added(q, "abc")
        with taken(q) as claim:
            claim.record("b", Done())
            assert ids(claim.untouched()) == ["a", "c"]

        assert claim.settlement.released == ("a", "c")
        assert [(one.attempts, one.place) for one in q.jobs("waiting")] == [(0, "waiting")] * 2

    def test_a_block_that_raises(self, q: BatchQueue) -> None:
        """Where the block raises, recorded verdicts stand, the rest is retried with what was raised, which goes on."""
        added(q, "abc")
        claim = taken(q)
        claim.record("a", Done())
        with pytest.raises(ZeroDivisionError), claim:
            raise ZeroDivisionError("oops")

        assert (place_of(q, "a"), job(q, "b").error, job(q, "c").error) == (
            "gone",
            "ZeroDivisionError: oops",
            "ZeroDivisionError: oops",
        )

    @pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit])
    def test_an_interrupt_charges_nobody(self, q: BatchQueue, interrupt: type[BaseException]) -> None:
        """An interrupt goes on, inside an attempt too; recorded verdicts stand, the other jobs are released."""
        added(q, "abc")
        claim = taken(q)
        claim.record("a", Done())
        with pytest.raises(interrupt), claim, claim.attempt(claim.jobs[1]):
            raise interrupt

        assert claim.settlement == Settlement(completed=("a",), released=("b", "c"), finished=True)
        assert job(q, "b").attempts == 0

    def test_a_fault_of_the_program_charges_nobody(self, q: BatchQueue) -> None:
        """An answer that cannot be read as verdicts releases the jobs without one, and goes on."""
        added(q, "ab")
        claim = taken(q)
        claim.record("a", Done())
        with pytest.raises(HandlerContractError), claim:
            raise HandlerContractError

        assert claim.settlement == Settlement(completed=("a",), released=("b",), finished=True)

    def test_a_recorded_verdict_stands_in_an_attempt(self, q: BatchQueue) -> None:
        """What an attempt records for its job stands, whether it ends or raises."""
        added(q, "ab")
        with taken(q) as claim:
            with claim.attempt(claim.jobs[0]):
                claim.record("a", Delay("1m"))
            with claim.attempt(claim.jobs[1]):
                claim.record("b", Dead("hopeless"))
                int("nonsense")

        assert claim.settlement == Settlement(delayed=("a",), dead=("b",), finished=True)
        assert job(q, "b").error == "hopeless"

    def test_a_later_verdict_replaces_an_earlier_one(self, q: BatchQueue) -> None:
        """Until it is settled a job's verdict can be changed."""
        added(q, "a")
        with taken(q) as claim:
            claim.record("a", Done())
            claim.record(claim.jobs[0], Retry("on second thought"))

        assert claim.settlement.retried == ("a",)

    def test_a_verdict_for_none_of_the_jobs(self, q: BatchQueue) -> None:
        """A verdict for a job that the claim does not have is refused."""
        added(q, "a")
        claim = taken(q)

        with pytest.raises(InvalidValueError, match="none of the 1"):
            claim.record("x", Done())

    def test_the_settlement_is_of_all_calls(self, queues: Queues) -> None:
        """What became of a claim is told over all its calls, in the claim's order, errors only while they last."""
        added(queues(), "abcdef")
        q = queues("q", drop_reply(3))
        with taken(q) as claim:
            assert claim.settlement == Settlement()
            assert claim.settle({"e": Done()}) == Settlement(completed=("e",))
            assert list(claim.settle({"c": Done()}).errors) == ["c"]
            assert list(claim.settlement.errors) == ["c"]
            claim.release(["b"])
            claim.record("c", Done())
            claim.record("a", Done())
            claim.record("d", Retry("no"))

        assert claim.settlement == Settlement(
            completed=("a", "c", "e"), retried=("d",), released=("b", "f"), finished=True
        )

    def test_a_lost_job_with_a_verdict_is_settled_late(self, q: BatchQueue, harness: Harness) -> None:
        """A job found lost while worked on is settled all the same, where nobody else has it: its work is done."""
        added(q, "abc")
        with taken(q) as claim:
            harness.clock.advance("30s")
            q.sweep()
            claim.extend()
            assert claim.lost == {"a", "b", "c"}
            for name in "ab":
                claim.record(name, Done())
            other = taken(q, 1)
            assert ids(other) == ["a"]

        assert claim.settlement == Settlement(completed=("b",), lost=("a", "c"), finished=True)
        assert places(q) == {"waiting": ["c"], "active": ["a"]}
        assert outcomes(q, "b") == ["completed"]

    def test_jobs_that_are_lost_are_told_once(self, q: BatchQueue) -> None:
        """The callback is told of each lost job once, whichever call found it out."""
        added(q, "abc")
        told: list[list[str]] = []
        claim = q.claim(3, on_lost=lambda claim, lost: told.append([claim.id, *lost]))
        assert claim is not None
        q.remove(["a"], force=True)
        claim.extend()
        claim.extend()
        q.remove(["b", "c"], force=True)
        claim.settle({"a": Done(), "b": Done()})
        claim.extend_job("c", 10)

        assert told == [[claim.id, "a"], [claim.id, "b"], [claim.id, "c"]]
        assert claim.lost == {"a", "b", "c"}
        assert claim.untouched() == []

    def test_leaving_while_the_store_is_away(self, queues: Queues, caplog: pytest.LogCaptureFixture) -> None:
        """Where leaving cannot reach the store, it says so in the log and in the settlement, and the jobs lapse."""
        added(queues(), "ab")
        q = queues("q", drop_reply(2))
        with caplog.at_level(logging.WARNING), taken(q) as claim:
            claim.record("a", Done())

        assert list(claim.settlement.errors) == ["a", "b"]
        assert not claim.settlement
        assert "2 could not be settled" in caplog.text

    def test_extending_by_hand_inside(self, q: BatchQueue, harness: Harness) -> None:
        """A claim can be extended inside its block, by another length, which it is kept by from then on."""
        added(q, "a")
        with taken(q) as claim:
            assert claim.extend("2m").expires_at == harness.clock() + 120_000
            assert claim.lease_ms == 120_000
            assert claim.keep()
            claim.record("a", Done())
        assert not claim.keep()

    def test_a_claim_in_words(self, q: BatchQueue) -> None:
        """A claim shows its ID and size, goes through its jobs and knows their number."""
        added(q, "abc")
        claim = taken(q)

        assert repr(claim) == f"<Claim {claim.id} of 3 jobs>"
        assert (len(claim), ids(claim)) == (3, ["a", "b", "c"])

    def test_one_of_the_fifty(self, queues: Queues) -> None:
        """A call of the storage settles fifty jobs with fifty verdicts, each by itself."""
        q = queues()
        names = [f"job-{number:02}" for number in range(50)]
        added(q, names)
        claim = taken(q)

        settled = q.jobs_context.store.settle_jobs(
            claim.id, [Call(name, "complete" if name != "job-17" else "retry", "x", 5) for name in names], keep_done=0
        )

        assert settled.outcomes == tuple("completed" if name != "job-17" else "retried" for name in names)
        assert places(q) == {"scheduled": ["job-17"]}
