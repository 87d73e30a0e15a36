"""Calls that are sent twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.claims.methods import JobSpec
from batchstate.entities import Batch
from batchstate.errors import NotFoundError
from batchstate.job_calls import Settling as Call
from batchstate.jobs import Dead, Delay, Done, Retry
from batchstate.testing.contract.given import everything, paged
from batchstate.testing.contract.jobs.base import JobTests, Queues, added, everything_of, jobs_of
from batchstate.testing.faults import drop_reply, resend
from batchstate.testing.forwarding import JOB_WRITES

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Replays"]


MINE, HELD = "mine", "held"


def _claim_all(q: BatchQueue) -> None:
    q.claim(10, claim_id="claim")


CALLS: dict[str, Callable[[BatchQueue], object]] = {
    "add": lambda q: q.add_many([JobSpec("x"), JobSpec("y", group="g"), JobSpec("z", delay=5)]),
    "claim": lambda q: q.claim(2, claim_id="new"),
    "extend": lambda q: jobs_of(q).extend_claim("claim", 60_000),
    "extend_job": lambda q: jobs_of(q).extend_job("claim", "a", 60_000),
    "complete": lambda q: jobs_of(q).settle_jobs("claim", [Call("a", "complete")], keep_done=1000),
    "retry": lambda q: jobs_of(q).settle_jobs("claim", [Call("a", "retry", "no", 500)], keep_done=0),
    "retry at once": lambda q: jobs_of(q).settle_jobs("claim", [Call("a", "retry", "no")], keep_done=0),
    "delay": lambda q: jobs_of(q).settle_jobs("claim", [Call("a", "delay", "", 500)], keep_done=0),
    "dead": lambda q: jobs_of(q).settle_jobs("claim", [Call("a", "dead", "no")], keep_done=0),
    "release": lambda q: jobs_of(q).settle_jobs("claim", [Call("a", "release"), Call("b", "release")], keep_done=0),
    "sweep": lambda q: q.sweep(),
    "revive": lambda q: q.revive(["dead"]),
    "remove": lambda q: q.remove(["a", "dead", "late"], force=True),
    "move": lambda q: q.move_job("late", "other"),
    "pause": lambda q: q.pause(reason="why"),
    "pause a group": lambda q: q.pause("g", reason="why"),
    "resume": lambda q: q.resume(),
    "set a ceiling": lambda q: q.set_ceiling(2, group="g"),
    "purge": lambda q: jobs_of(q).purge_jobs(10, keep_dead=0),
    "hold": lambda q: q.hold("claim", token=MINE),
    "extend a hold": lambda q: jobs_of(q).extend_hold("claim", HELD, 60_000),
    "release a hold": lambda q: jobs_of(q).release_hold("claim", HELD),
}


class Replays(JobTests):
    """A call that was sent twice applies once."""

    def _given(self, q: BatchQueue, harness: Harness, call: str) -> None:
        added(q, ["dead", "late"])
        q.claim(1, claim_id="first").settle({"dead": Dead("no")})  # type: ignore[union-attr]
        q.claim(1, claim_id="second").settle({"late": Delay("1h")})  # type: ignore[union-attr]
        added(q, "ab")
        _claim_all(q)
        added(q, "cd", group="g")
        if call == "sweep":
            harness.clock.advance("30s")
        if call.endswith("hold") and call != "hold":
            q.hold("claim", token=HELD, lease="1h")

    @pytest.mark.parametrize("call", CALLS)
    def test_a_call_sent_twice_applies_once(self, queues: Queues, harness: Harness, call: str) -> None:
        """Every changing call may be sent twice, and leaves the store as if it had been sent once."""
        once, twice = queues("once"), queues("twice")
        sent_twice = queues("twice", resend())
        self._given(once, harness, "")
        self._given(twice, harness, call)
        if call != "sweep" and call.endswith("hold") and call != "hold":
            once.hold("claim", token=HELD, lease="1h")

        CALLS[call](once)
        CALLS[call](sent_twice)

        assert _seen(twice) == _seen(once)

    @pytest.mark.parametrize("call", [name for name in CALLS if name not in ("add", "sweep", "purge", "remove")])
    def test_a_call_sent_again_answers_as_it_did(self, q: BatchQueue, harness: Harness, call: str) -> None:
        """A call that is sent again answers what it answered at first."""
        self._given(q, harness, call)

        first = CALLS[call](q)
        again = CALLS[call](q)

        if call in ("claim", "hold"):
            assert repr(again) == repr(first)
        else:
            assert again == first

    def test_a_removal_sent_again_finds_nothing(self, q: BatchQueue) -> None:
        """A removal that is sent again says that there is no such job any more."""
        added(q, "a")

        assert q.remove(["a"]) == [None]
        assert [type(answer) for answer in q.remove(["a"])] == [NotFoundError]

    @pytest.mark.parametrize("call", CALLS)
    def test_a_lost_reply(self, queues: Queues, harness: Harness, call: str) -> None:
        """A call whose reply was lost, and which its caller makes again, leaves the store as if all had gone well."""
        once, twice = queues("once"), queues("twice")
        losing = queues("twice", drop_reply(1, on=set(JOB_WRITES)))
        self._given(once, harness, "")
        self._given(twice, harness, call)
        if call.endswith("hold") and call != "hold":
            once.hold("claim", token=HELD, lease="1h")

        CALLS[call](once)
        with pytest.raises(Exception, match="was lost"):
            CALLS[call](losing)
        CALLS[call](losing)

        assert _seen(twice) == _seen(once)

    def test_a_claim_takes_up_where_it_was_lost(self, queues: Queues) -> None:
        """Retries count one attempt, and groups free one slot, though each call is sent twice throughout."""
        plain = queues()
        plain.set_ceiling(2, group="g")
        added(plain, "abcd", group="g")
        q = queues("q", resend())

        seen = []
        for claim in q.claims(5):
            seen.append([(one.id, one.deliveries, one.attempts) for one in claim])
            claim.settle({one.id: Done() if one.attempts else Retry("no", 0) for one in claim})

        assert seen == [
            [("a", 1, 0), ("b", 1, 0)],
            [("a", 2, 1), ("b", 2, 1)],
            [("c", 1, 0), ("d", 1, 0)],
            [("c", 2, 1), ("d", 2, 1)],
        ]


def _seen(q: BatchQueue) -> str:
    """Answer all that is in a queue, but for marks and the queue's own name."""
    rows = {batch.id: (batch.state, batch.version, list(batch.history)) for batch in _batches(q)}
    seen = everything(q.store)
    return repr((everything_of(q), rows, seen["records"], seen["associations"])).replace(f"{q.name!r}", "'q'")


def _batches(q: BatchQueue) -> list[Batch]:
    pages = paged(lambda cursor: q.store.scan("batches", cursor))
    return sorted((one for page in pages for one in page if isinstance(one, Batch)), key=lambda batch: batch.id)
