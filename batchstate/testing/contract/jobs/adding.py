"""Adding jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from batchstate.claims.methods import JobSpec
from batchstate.errors import InvalidNameError, InvalidValueError, NotFoundError, StorageUnavailableError, TooLargeError
from batchstate.jobs import Dead, Delay, Done, Job, Retry
from batchstate.testing.contract.jobs.base import (
    STEADY,
    JobTests,
    Queues,
    added,
    everything_of,
    group_of,
    ids,
    job,
    place_of,
    places,
    served,
    taken,
)
from batchstate.testing.faults import drop_reply, resend

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Adding"]

ODD_NAMES = (
    "active", "wait", "waiting", "delayed", "dead", "lease", "limit", "return:x", "0", "a:b", "{a}", "a}b{",
    "Bot-A", "bot-a", "bot-a ", " bot-a", "caf\u00e9", "cafe\u0301", "%41", "a%", "*", "a/b", "x" * 255,
)  # fmt: skip


class Adding(JobTests):
    """Adding jobs, once and again."""

    def test_an_added_job_waits(self, q: BatchQueue, harness: Harness) -> None:
        """An added job waits behind those that are there, with nothing counted yet."""
        assert q.add("a", {"n": 1}, group="g", max_attempts=7)

        found = job(q, "a")
        assert found == Job("a", "q", {"n": 1}, "g", max_attempts=7, order=found.order, added_at=harness.clock())
        assert places(q) == {"waiting": ["a"]}

    def test_max_attempts_are_the_queues_unless_the_job_says(self, queues: Queues) -> None:
        """A job carries its own number of attempts from the moment it is added, by default the queue's."""
        q = queues()
        q.add("a")
        q.add("b", max_attempts=1)

        assert (job(q, "a").max_attempts, job(q, "b").max_attempts) == (3, 1)

    def test_jobs_wait_in_the_order_in_which_they_were_added(self, q: BatchQueue) -> None:
        """Jobs added one by one or many at once are served in that order."""
        added(q, ["c", "a"])
        assert q.add_many([JobSpec("z"), JobSpec("b"), JobSpec("y")]) == ["added"] * 3

        assert served(q) == ["c", "a", "z", "b", "y"]

    @pytest.mark.parametrize("place", ["waiting", "active", "scheduled", "dead"])
    def test_an_id_that_is_known_is_a_duplicate(self, q: BatchQueue, place: str) -> None:
        """Adding an ID that is known in any place changes nothing and says so, whatever else the call says."""
        added(q, ["a"])
        if place != "waiting":
            claim = taken(q)
            if place != "active":
                claim.settle({"a": Retry("no", "1h") if place == "scheduled" else Dead("no")})
        assert place_of(q, "a") == place
        before = everything_of(q)

        assert not q.add("a", {"other": True}, group="other")
        assert not q.add("a", again=True)
        assert everything_of(q) == before

    def test_a_done_id_is_a_duplicate_for_a_while(self, q: BatchQueue, harness: Harness) -> None:
        """The ID of a done job is remembered for its time, to the millisecond, and then names a new job."""
        added(q, ["a"])
        taken(q).settle({"a": Done()})

        assert not q.add("a")
        harness.clock.advance("23h")
        harness.clock.advance("3599.999s")
        assert not q.add("a")
        assert places(q) == {}
        harness.clock.advance("1ms")
        assert q.add("a")
        assert served(q) == ["a"]

    def test_a_done_id_is_taken_again_on_request(self, q: BatchQueue) -> None:
        """A done job's ID can be used again at once by whoever says so, and the new job knows nothing of the old."""
        added(q, ["a"])
        taken(q).settle({"a": Done()})

        assert q.add("a", "new", again=True)
        found = job(q, "a")
        assert (found.payload, found.deliveries, found.claim) == ("new", 0, None)
        assert not q.add("a", again=True)

    def test_nothing_is_remembered_where_nothing_is_to_be_kept(self, queues: Queues) -> None:
        """Where done IDs are kept for no time, they are free at once."""
        q = queues(policy=type(STEADY)(keep_done=0))
        added(q, ["a"])
        taken(q).settle({"a": Done()})

        assert q.add("a")

    def test_an_id_comes_twice_in_one_call(self, q: BatchQueue) -> None:
        """Of two jobs of one ID in one call the first is added."""
        assert q.add_many([JobSpec("a", 1), JobSpec("b"), JobSpec("a", 2)]) == ["added", "added", "duplicate"]
        assert job(q, "a").payload == 1

    def test_a_delayed_job_is_scheduled(self, q: BatchQueue, harness: Harness) -> None:
        """A job added with a delay is served to the millisecond when it is due, in its place in the line."""
        q.add("a", delay="2s")
        added(q, ["b"])

        assert job(q, "a").due_at == harness.clock() + 2000
        assert places(q) == {"waiting": ["b"], "scheduled": ["a"]}
        harness.clock.advance("1.999s")
        claim = taken(q)
        assert ids(claim) == ["b"]
        claim.release()
        harness.clock.advance("1ms")
        assert served(q) == ["a", "b"]

    def test_a_job_may_be_due_at_an_instant(self, q: BatchQueue, harness: Harness) -> None:
        """A job may name the instant at which it is due; one that has come means at once."""
        now = harness.clock()
        q.add("later", at=now + 1)
        q.add("now", at=now)
        q.add("long ago", at=5)

        assert places(q) == {"waiting": ["now", "long ago"], "scheduled": ["later"]}
        harness.clock.advance("1ms")
        assert served(q) == ["later", "now", "long ago"]

    def test_an_add_sent_twice_adds_once(self, queues: Queues) -> None:
        """A client that sends an addition again adds one job."""
        q = queues("q", resend())
        q.add("a")
        q.add_many([JobSpec("b"), JobSpec("c")])

        assert places(q) == {"waiting": ["a", "b", "c"]}

    def test_an_add_whose_reply_was_lost(self, queues: Queues) -> None:
        """After a lost reply the same addition is safe, and finds the job there."""
        q = queues("q", drop_reply(1))
        with pytest.raises(StorageUnavailableError):
            q.add("a")

        assert not q.add("a")
        assert places(q) == {"waiting": ["a"]}

    def test_a_refused_job_costs_its_neighbours_nothing(self, q: BatchQueue) -> None:
        """Each job of a call is added or refused for itself, in the order given."""
        answers = q.add_many(
            [
                JobSpec("a"),
                JobSpec(""),
                JobSpec("b", payload={"x": float("nan")}),
                JobSpec("c", group=""),
                JobSpec("d", delay=-1),
                JobSpec("e", at=5, delay=1),
                JobSpec("f", max_attempts=0),
                JobSpec("g", payload={1, 2}),
                JobSpec("h"),
            ]
        )

        assert [answer if isinstance(answer, str) else type(answer) for answer in answers] == [
            "added", InvalidNameError, InvalidValueError, InvalidNameError, InvalidValueError, InvalidValueError,
            InvalidValueError, InvalidValueError, "added",
        ]  # fmt: skip
        assert places(q) == {"waiting": ["a", "h"]}

    @pytest.mark.parametrize("name", ["", "x" * 256, "a\nb", "\u00e9" * 128, "\ud800"])
    def test_no_names(self, q: BatchQueue, name: str) -> None:
        """What can be no name is refused as an ID and as a group, and nothing is added."""
        with pytest.raises(InvalidNameError):
            q.add(name)
        with pytest.raises(InvalidNameError):
            q.add("a", group=name)
        assert places(q) == {}

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_odd_names_are_names(self, q: BatchQueue, name: str) -> None:
        """A name that looks like something internal is an ID and a group as any other, and harms no neighbour."""
        q.add(name, group=name)
        q.add("plain", group="plain")
        q.pause("plain")

        claim = taken(q, group=name)
        assert [(one.id, one.group) for one in claim] == [(name, name)]
        assert group_of(q, name) == {"active": 1}
        claim.settle({name: Delay("1s")})
        assert q.remove([name]) == [None]
        assert places(q) == {"waiting": ["plain"]}

    def test_names_are_compared_exactly(self, q: BatchQueue) -> None:
        """Names that differ in case, spaces or composition of accents are distinct."""
        answers = q.add_many([JobSpec(name, name, group=name) for name in ODD_NAMES])

        assert answers == ["added"] * len(ODD_NAMES)
        for name in ODD_NAMES:
            assert job(q, name).payload == name
            assert group_of(q, name) == {"waiting": 1}

    @pytest.mark.parametrize(
        "payload",
        [
            None, True, "", [], {}, {"": [None, "", [], {}]}, 30.4, 1 / 3, 1e-7, 1e300, -0.0, 2**63, 10**30, -(10**40),
            {"é\u2028\x00": "\U0001f600\x7f"}, [1, 1.0, "1", True], "x" * 5000,
        ],
        ids=repr,
    )  # fmt: skip
    def test_payloads_come_back_as_they_went_in(self, q: BatchQueue, payload: Any) -> None:  # noqa: ANN401 - any JSON
        """A payload comes back equal and of the same types, when it is loaded, claimed and listed."""
        q.add("a", payload)

        assert repr(job(q, "a").payload) == repr(payload)
        assert [repr(one.payload) for one in q.jobs("waiting")] == [repr(payload)]
        assert [repr(one.payload) for one in taken(q)] == [repr(payload)]

    def test_what_is_handed_in_and_out_is_not_shared(self, q: BatchQueue) -> None:
        """Changing what was added, or what was loaded, changes nothing in the store."""
        payload = {"list": [1]}
        q.add("a", payload)
        payload["list"].append(2)
        job(q, "a").payload["list"].append(3)
        taken(q).jobs[0].payload["list"].append(4)

        assert job(q, "a").payload == {"list": [1]}

    def test_too_large_a_payload_is_refused(self, q: BatchQueue, harness: Harness) -> None:
        """A payload that the backend cannot hold is refused before anything is written, and its neighbour is not."""
        if harness.largest is None:
            pytest.skip("it has no limit")

        answers = q.add_many([JobSpec("a", "x" * (harness.largest + 1)), JobSpec("b")])

        assert isinstance(answers[0], TooLargeError)
        assert answers[1] == "added"
        assert places(q) == {"waiting": ["b"]}

    def test_queues_do_not_see_each_other(self, queues: Queues, harness: Harness) -> None:
        """Two queues with the same jobs, groups and claims in one store share nothing."""
        one, two = queues("one"), queues("two")
        for q in (one, two):
            q.add("a", q.name, group="g")
            q.add("b", q.name, group="g")
        one.pause("g")
        two.set_ceiling(1, group="g")
        claim = two.claim(5, claim_id="claim")
        assert claim is not None

        assert [(found.queue, found.payload) for found in claim] == [("two", "two")]
        assert places(one) == {"waiting": ["a", "b"]}
        one.resume("g")
        assert ids(one.claim(5, claim_id="claim") or ()) == ["a", "b"]
        harness.clock.advance("30s")
        assert one.sweep().returned == ("a", "b")
        assert place_of(two, "a") == "active"
        claim.settle({"a": Done()})
        assert one.remove(["a", "b"]) == [None, None]
        assert places(two) == {"waiting": ["b"]}
        with pytest.raises(NotFoundError):
            queues("three").get_job("b")
