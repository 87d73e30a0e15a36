"""The consumer: a worker's loop."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.claims.policy import JobPolicy
from batchstate.errors import InvalidNameError, InvalidValueError, StorageUnavailableError
from batchstate.jobs import UNGROUPED, Dead, Done, Job
from batchstate.testing.contract.jobs.base import (
    STEADY,
    JobTests,
    Queues,
    added,
    group_of,
    ids,
    job,
    noted,
    places,
    taken,
)
from batchstate.testing.faults import Fault, drop_reply

if TYPE_CHECKING:
    from batchstate.claims.claim import Claim, Part
    from batchstate.jobs import Settlement
    from batchstate.queue import BatchQueue
    from batchstate.testing.forwarding import Call
    from batchstate.testing.harness import Harness

__all__ = ["Consuming"]

SOON = 20.0
"""Seconds within which a thread must have come to its end; nothing waits for so long unless it fails."""


class Consuming(JobTests):
    """Claims, works, settles, tidies, waits, stops."""

    def test_it_works_everything_off(self, q: BatchQueue) -> None:
        """A consumer takes claim after claim until nothing can be served, no larger than asked."""
        added(q, "abcdefg")
        sizes: list[int] = []

        q.consumer(each=lambda _: None, max_size=3, on_settled=lambda claim, _: sizes.append(len(claim))).run(
            burst=True
        )

        assert sizes == [3, 3, 1]
        assert places(q) == {}

    @pytest.mark.parametrize(
        "knobs",
        [
            {"min_size": 5, "max_size": 4}, {"min_size": 0}, {"max_size": 0}, {"timeout": 0}, {"timeout": -1},
            {"poll": 0}, {"lease": 0}, {"tidy_every": 0}, {"min_size": 1.5}, {"max_size": True},
            {"group": "g", "across_groups": True},
        ],
        ids=repr,
    )  # fmt: skip
    def test_knobs_that_make_no_sense(self, q: BatchQueue, knobs: dict[str, Any]) -> None:
        """A knob that makes no sense is refused when the consumer is made."""
        with pytest.raises(InvalidValueError):
            q.consumer(each=str, **knobs)
        with pytest.raises(InvalidNameError):
            q.consumer(each=str, group="")

    def test_one_handler(self, q: BatchQueue) -> None:
        """Exactly one handler is given, and bisecting is for one of batches."""
        with pytest.raises(InvalidValueError):
            q.consumer()
        with pytest.raises(InvalidValueError):
            q.consumer(each=str, batch=lambda _: {})
        with pytest.raises(InvalidValueError):
            q.consumer(each=str, bisect=True)

    def test_it_waits_for_enough(self, q: BatchQueue, harness: Harness) -> None:
        """It claims as soon as enough wait, and fewer when the first was seen long enough ago."""
        sizes: list[int] = []
        consumer = q.consumer(
            each=lambda _: None,
            min_size=3,
            max_size=4,
            timeout="200ms",
            on_settled=lambda claim, _: sizes.append(len(claim)),
        )
        assert not consumer.step()
        added(q, "ab")
        assert not consumer.step()
        harness.clock.advance("199ms")
        assert not consumer.step()
        harness.clock.advance("1ms")
        assert consumer.step()
        assert not consumer.step()
        added(q, "cde")
        assert consumer.step()
        added(q, "fghijkl")
        assert consumer.step()
        assert consumer.step()

        assert sizes == [2, 3, 4, 3]

    def test_its_window_closes_when_others_take_all(self, q: BatchQueue, harness: Harness) -> None:
        """A window that saw jobs closes when it sees none, and opens anew with the next."""
        consumer = q.consumer(each=lambda _: None, min_size=3, timeout="200ms")
        added(q, "a")
        assert not consumer.step()
        harness.clock.advance("150ms")
        taken(q)
        assert not consumer.step()
        added(q, "b")
        assert not consumer.step()
        harness.clock.advance("150ms")
        assert not consumer.step()
        harness.clock.advance("50ms")
        assert consumer.step()

    def test_no_lease_runs_while_it_waits(self, queues: Queues) -> None:
        """While it waits for enough it counts, and claims nothing."""
        q, notes = noted(queues)
        added(q, "a")
        consumer = q.consumer(each=str, min_size=2)
        consumer.step()
        notes.calls.clear()

        assert not consumer.step()
        assert notes.methods == ["count_claimable"]
        assert places(q) == {"waiting": ["a"]}

    def test_it_counts_what_one_claim_could_take(self, q: BatchQueue) -> None:
        """Jobs of paused or full groups, and of other groups than its own, do not make enough."""
        q.set_ceiling(1, group="g")
        added(q, "abc", group="g")
        added(q, "xyz", group="h")
        q.pause("h")

        assert not q.consumer(each=str, min_size=2).step()
        assert not q.consumer(each=str, min_size=2, across_groups=True).step()
        assert not q.consumer(each=str, min_size=1, group="h").step()
        q.resume("h")
        assert q.consumer(each=str, min_size=3, group="h").step()
        assert group_of(q, "h") == {}
        added(q, "p", group="p")
        assert q.consumer(each=str, min_size=2, across_groups=True).step()
        assert places(q) == {"waiting": ["b", "c"]}

    def test_it_serves_its_group(self, q: BatchQueue) -> None:
        """A consumer of one group, or of the ungrouped jobs, leaves the others."""
        added(q, "ab", group="g")
        added(q, "cd")
        q.consumer(each=str, group=UNGROUPED).run(burst=True)
        assert places(q) == {"waiting": ["a", "b"]}
        q.consumer(each=str, group="g").run(burst=True)
        assert places(q) == {}

    def test_it_tidies_as_it_goes(self, queues: Queues, harness: Harness) -> None:
        """Now and then it sweeps and purges, on its own beat and not at every step."""
        q, notes = noted(queues)
        policy = JobPolicy(keep_done=0, keep_settled="1m", keep_dead="1m", backoff=STEADY.backoff)
        tidying = queues(policy=policy)
        added(q, "abc")
        taken(q, 1).settle({"a": Dead("no")})
        taken(q, 1)
        harness.clock.advance("2m")
        consumer = tidying.consumer(each=lambda _: None, tidy_every="10s")

        assert consumer.step()
        assert places(q) == {}
        assert q.store.list_retired().items != []
        del notes
        swept = q.consumer(each=str, tidy_every="10s")
        swept.step()
        added(q, "d")
        taken(q)
        harness.clock.advance("30s")
        harness.clock.advance("15s")
        assert swept.step()
        assert places(q) == {}

    def test_it_tidies_on_its_own_beat(self, queues: Queues, harness: Harness) -> None:
        """The beat is moved at random by up to a half, so that a fleet does not sweep at once."""
        q, notes = noted(queues)
        consumers = [q.consumer(each=str, tidy_every="10s") for _ in range(8)]
        for consumer in consumers:
            consumer.step()
        assert notes.methods.count("sweep_jobs") == 8
        notes.calls.clear()
        when: list[int] = []
        for second in range(16):
            before = notes.methods.count("sweep_jobs")
            for consumer in consumers:
                consumer.step()
            when += [second] * (notes.methods.count("sweep_jobs") - before)
            harness.clock.advance("1s")

        assert min(when) >= 5
        assert len(when) >= 8
        assert len(set(when)) > 1

    def test_it_is_stopped_while_it_works(self, q: BatchQueue) -> None:
        """Told to stop during a claim it finishes and settles that one, claims nothing more, and returns."""
        added(q, "abcdef")
        seen: list[Settlement] = []

        def handle(one: Job) -> None:
            if one.id == "b":
                consumer.stop()
                consumer.stop()

        consumer = q.consumer(each=handle, max_size=3, on_settled=lambda _, settlement: seen.append(settlement))
        consumer.run()

        assert [settlement.completed for settlement in seen] == [("a", "b", "c")]
        assert places(q) == {"waiting": ["d", "e", "f"]}
        consumer.stop()
        consumer.run()
        assert places(q) == {"waiting": ["d", "e", "f"]}

    def test_it_is_stopped_while_it_waits(self, q: BatchQueue) -> None:
        """Told to stop while it waits, it returns at once and not after its poll."""
        consumer = q.consumer(each=str, poll="1h", tidy_every="1h")
        waiting = threading.Thread(target=consumer.run, daemon=True)
        waiting.start()
        consumer.stop()
        waiting.join(SOON)

        assert not waiting.is_alive()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_stops_it(self, q: BatchQueue, number: signal.Signals) -> None:
        """SIGTERM and SIGINT stop it as asked to stop, and what they did before is as it was afterwards."""
        if threading.current_thread() is not threading.main_thread():
            pytest.skip("signals are for the main thread")
        added(q, "abcd")
        before = signal.getsignal(number)
        waiting = q.consumer(each=lambda one: os.kill(os.getpid(), number) if one.id == "a" else None, max_size=2)

        waiting.run()

        assert places(q) == {"waiting": ["c", "d"]}
        assert signal.getsignal(number) is before

    def test_a_signal_stops_it_while_it_waits(self, q: BatchQueue) -> None:
        """A signal that comes while it waits ends the wait at once."""
        if threading.current_thread() is not threading.main_thread():
            pytest.skip("signals are for the main thread")
        begun = time.monotonic()
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()

        q.consumer(each=str, poll="1h", tidy_every="1h").run()

        assert time.monotonic() - begun < SOON

    def test_it_waits_without_spinning(self, queues: Queues) -> None:
        """A consumer of a group without jobs asks no faster than it polls, also while another group has some."""
        q, notes = noted(queues)
        added(q, "a", group="other")
        consumer = q.consumer(each=str, group="g", poll="1h", tidy_every="1h")
        waiting = threading.Thread(target=consumer.run, daemon=True)
        waiting.start()
        time.sleep(0.3)
        consumer.stop()
        waiting.join(SOON)

        assert not waiting.is_alive()
        assert notes.methods.count("claim_jobs") <= 4

    def test_trouble_is_waited_out(self, queues: Queues, caplog: pytest.LogCaptureFixture) -> None:
        """While the store is away it waits, says so once, says when it is over, and loses nothing."""
        added(queues(), "abc")
        away = iter([True] * 4)

        def before(call: Call) -> None:
            if call.method == "claim_jobs" and next(away, False):
                raise StorageUnavailableError

        q = queues("q", Fault(before=before))
        with caplog.at_level(logging.WARNING):
            q.consumer(each=lambda _: None, poll="1ms").run(burst=True)

        assert places(q) == {}
        said = [record.message for record in caplog.records]
        assert len([text for text in said if "cannot be reached" in text]) == 1
        assert len([text for text in said if "can be reached again" in text]) == 1

    def test_a_claim_whose_answer_was_lost_is_asked_for_again(self, queues: Queues) -> None:
        """Jobs that a claim took whose reply was lost are not left to lapse: the same claim is asked for again."""
        added(queues(), "abc")
        q = queues("q", drop_reply(1, on=["claim_jobs"]))

        q.consumer(each=lambda _: None).run(burst=True)

        assert places(q) == {}
        assert len(q.attempts("a")) == 1

    def test_a_claim_whose_answer_was_lost_may_be_over(self, queues: Queues, harness: Harness) -> None:
        """Where the jobs of that claim have been swept meanwhile, the next one is a new claim."""
        added(queues(), "a")
        q = queues("q", drop_reply(1, on=["claim_jobs"]))
        consumer = q.consumer(each=lambda _: None)
        with pytest.raises(StorageUnavailableError):
            consumer.step()
        harness.clock.advance("30s")
        queues().sweep()

        assert not consumer.step()
        assert consumer.step()
        assert places(q) == {}
        assert len(q.attempts("a")) == 2

    def test_it_reports_every_claim_whole(self, q: BatchQueue) -> None:
        """It reports a claim once, with what became of all its jobs, also where they were settled in parts."""
        added(q, "abcd")
        seen: list[Settlement] = []

        def handle(part: Part) -> dict[str, Done]:
            if len(part) > 1 and any(one.id == "c" for one in part):
                raise ValueError
            return {one.id: Done() for one in part}

        def note(claim: Claim, settlement: Settlement) -> None:
            assert settlement == claim.settlement
            seen.append(settlement)

        q.consumer(batch=handle, bisect=True, on_settled=note).step()
        [settlement] = seen
        assert (settlement.completed, settlement.finished) == (("a", "b", "c", "d"), True)

    def test_following_claims_wait_for_more(self, q: BatchQueue, queues: Queues) -> None:
        """`claims(follow=True)` gives what is added later, and what a dead worker held when its lease has lapsed."""
        following = q.claims(5, follow=True, poll="10ms")
        found: list[list[str]] = []
        begun = threading.Event()

        def work() -> None:
            begun.set()
            for claim in following:
                found.append(ids(claim))
                claim.settle({one.id: Done() for one in claim})
                if len(found) == 2:
                    return

        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        assert begun.wait(SOON)
        other = queues()
        added(other, "a")
        deadline = time.monotonic() + SOON
        while not found and time.monotonic() < deadline:
            time.sleep(0.01)
        added(other, "b")
        worker.join(SOON)

        assert found == [["a"], ["b"]]

    def test_it_works_beside_the_lease(self, q: BatchQueue, harness: Harness) -> None:
        """What a consumer is working on is held by it, and nobody else gets it."""
        added(q, "a")

        def handle(one: Job) -> None:
            assert job(q, one.id).expires_at == harness.clock() + 45_000
            assert q.claim(5) is None

        q.consumer(each=handle, lease="45s").run(burst=True)
        assert places(q) == {}
