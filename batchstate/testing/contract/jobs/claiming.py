"""Claiming jobs together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.errors import ClaimLostError, InvalidNameError, InvalidValueError, StorageUnavailableError
from batchstate.job_calls import Swept
from batchstate.job_storage import JobStorage
from batchstate.jobs import UNGROUPED, Done, Retry
from batchstate.moves import Move
from batchstate.testing.contract.given import everything
from batchstate.testing.contract.jobs.base import (
    WALK,
    JobTests,
    Queues,
    added,
    everything_of,
    ids,
    job,
    jobs_of,
    noted,
    places,
    served,
    taken,
)
from batchstate.testing.faults import drop_reply, resend

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Claiming"]


class Claiming(JobTests):
    """Taking jobs: in one step, in order, under one lease."""

    def test_the_storage_keeps_jobs(self, q: BatchQueue) -> None:
        """The storage shows that it keeps jobs, and how many it can claim at once."""
        assert isinstance(q.store, JobStorage)
        assert q.store.max_claim >= 50

    def test_a_claim_takes_the_oldest_in_order(self, q: BatchQueue) -> None:
        """A claim takes the oldest jobs in their order, each delivered once, and leaves the others waiting."""
        added(q, "abcdefgh")

        claim = taken(q, 4)

        assert ids(claim) == ["a", "b", "c", "d"]
        assert [(one.deliveries, one.attempts, one.stalls) for one in claim] == [(1, 0, 0)] * 4
        assert {(one.place, one.claim, one.queue) for one in claim} == {("active", claim.id, "q")}
        assert places(q) == {"waiting": ["e", "f", "g", "h"], "active": ["a", "b", "c", "d"]}

    def test_a_claim_is_a_batch(self, q: BatchQueue, harness: Harness) -> None:
        """A claim is a batch of its jobs: listed as claimed, found by each job, with its history and attributes."""
        added(q, "abc")

        claim = q.claim(2, attributes={"size": [2]}, by="me")

        assert claim is not None
        batch = q.get(claim.id)
        now = harness.clock()
        assert claim.batch == batch
        assert (batch.state, batch.version, batch.entered, batch.request_ids) == ("claimed", 1, 1, ("a", "b"))
        assert (batch.attributes, batch.created_at, batch.updated_at) == ({"size": [2]}, now, now)
        assert list(batch.history) == [Move(None, "claimed", 1, now, "me")]
        assert len(batch.mark) == 16
        assert q.list_by_states(["claimed"]) == [batch]
        assert q.find_by_request_id("a") == q.find_by_request_id("b") == ((batch,), 0)
        assert q.find_by_request_id("c").batches == ()
        assert [(attempt.batch, attempt.outcome) for attempt in q.attempts("a")] == [(batch, "")]

    def test_all_leases_end_at_one_instant(self, q: BatchQueue, harness: Harness) -> None:
        """All jobs of a claim are held until the same instant, and no other claim can settle one of them."""
        added(q, "abcdefgh")
        mine, other = taken(q, 4), taken(q, 4)

        until = harness.clock() + 30_000
        assert mine.expires_at == until
        assert [one.expires_at for one in mine] == [until] * 4
        assert [job(q, name).expires_at for name in "abcd"] == [until] * 4
        assert other.settle({"b": Done()}).lost == ("b",)
        assert job(q, "b").claim == mine.id

    def test_fewer_are_served_at_once(self, q: BatchQueue) -> None:
        """Where fewer wait than are asked for, they are served at once, and then nothing is."""
        added(q, "abc")

        assert served(q, 7) == ["a", "b", "c"]
        assert q.claim(7) is None

    def test_nothing_to_serve_writes_nothing(self, q: BatchQueue) -> None:
        """A claim of an empty queue is none at all: no batch, no lease, no record, and its ID is unused."""
        assert q.claim(5, claim_id="c") is None

        assert everything(q.store) == {"batches": [], "records": [], "associations": []}
        assert list(jobs_of(q).list_claims().items) == []
        assert not jobs_of(q).extend_claim("c", 1000)
        with pytest.raises(ClaimLostError):
            q.claim_of("c")
        added(q, ["a"])
        assert ids(q.claim(5, claim_id="c") or ()) == ["a"]

    def test_a_batch_of_one(self, q: BatchQueue) -> None:
        """A claim of one job is as any other, and ends with it."""
        added(q, ["a"])
        claim = taken(q, 5)

        settlement = claim.settle({"a": Done()})

        assert (settlement.completed, settlement.finished) == (("a",), True)
        assert q.list_by_states(["claimed"]) == []

    @pytest.mark.parametrize("limit", [0, -1, 1.0, True, None, "5"])
    def test_a_limit_that_is_none(self, q: BatchQueue, limit: Any) -> None:  # noqa: ANN401 - what must be refused
        """A limit that is no positive whole number is the caller's error, and nothing moves."""
        added(q, "ab")
        before = everything_of(q)

        with pytest.raises(InvalidValueError):
            q.claim(limit)
        with pytest.raises(InvalidValueError):
            q.claims(limit)
        assert everything_of(q) == before

    @pytest.mark.parametrize("lease", [0, -1, math.nan, math.inf, -math.inf, "", "soon", None, True, "0s"])
    def test_a_lease_that_is_none(self, q: BatchQueue, lease: Any) -> None:  # noqa: ANN401 - what must be refused
        """A lease that is not positive or not finite is the caller's error, wherever one is given."""
        added(q, "ab")
        claim = taken(q, 1)
        before = everything_of(q)

        for call in (
            lambda: q.claim(1, lease=lease),
            lambda: q.claims(1, lease=lease),
            lambda: q.claim_of(claim.id, lease=lease),
            lambda: claim.extend_job("a", lease),
            lambda: q.hold(claim.id, lease),
            lambda: q.consumer(each=str, lease=lease),
        ):
            with pytest.raises(InvalidValueError):
                call()
        if lease is not None:
            with pytest.raises(InvalidValueError):
                claim.extend(lease)
        assert everything_of(q) == before

    def test_the_shortest_and_the_longest_lease(self, q: BatchQueue, harness: Harness) -> None:
        """Leases of a millisecond and of 400 days are kept as they are."""
        added(q, "ab")
        short, long = taken(q, 1, lease="1ms"), taken(q, 1, lease="400d")

        assert (short.expires_at, long.expires_at) == (harness.clock() + 1, harness.clock() + 400 * 86_400_000)
        harness.clock.advance("1ms")
        assert q.sweep().returned == ("a",)

    def test_what_is_held_is_not_served(self, q: BatchQueue, harness: Harness) -> None:
        """A job that one claim holds is never handed to another, also when its lease has lapsed but nobody swept."""
        added(q, "ab")
        taken(q, 1)

        assert served(q) == ["b"]
        harness.clock.advance("29.999s")
        assert q.sweep() == Swept()
        assert q.claim(5) is None
        harness.clock.advance("1h")
        assert q.claim(5) is None
        assert q.sweep().returned == ("a", "b")
        assert served(q) == ["a", "b"]

    def test_each_job_has_counters_of_its_own(self, q: BatchQueue, harness: Harness) -> None:
        """Jobs claimed together keep their own deliveries, attempts and errors."""
        added(q, "a")
        taken(q).settle({"a": Retry("no", 1)})
        harness.clock.advance("1s")
        added(q, "b")

        assert [(one.id, one.deliveries, one.attempts, one.error) for one in taken(q)] == [
            ("a", 2, 1, "no"),
            ("b", 1, 0, ""),
        ]

    def test_the_same_claim_sent_twice(self, queues: Queues) -> None:
        """A client that sends a claim again takes nothing more, and gets the same claim."""
        added(queues(), "abcd")
        q = queues("q", resend())

        claim = taken(q, 2)

        assert ids(claim) == ["a", "b"]
        assert [one.deliveries for one in claim] == [1, 1]
        assert places(q) == {"waiting": ["c", "d"], "active": ["a", "b"]}

    def test_a_claim_whose_reply_was_lost(self, queues: Queues, harness: Harness) -> None:
        """After a lost reply the same ID answers the same jobs, and a lease that was not restarted."""
        q = queues("q", drop_reply(5))
        added(q, "abcd")
        with pytest.raises(StorageUnavailableError):
            q.claim(2, claim_id="c")
        until = harness.clock() + 30_000
        harness.clock.advance("10s")

        claim = q.claim(4, claim_id="c", lease="60s")

        assert claim is not None
        assert (ids(claim), claim.expires_at) == (["a", "b"], until)
        assert [one.expires_at for one in claim] == [until, until]

    def test_a_claim_sent_again_answers_what_it_still_holds(self, q: BatchQueue, harness: Harness) -> None:
        """The same ID answers the jobs still held, and is lost when none is; paused or not, it takes nothing."""
        added(q, "abcd")
        claim = q.claim(3, claim_id="c")
        assert claim is not None
        claim.settle({"b": Done()})
        q.pause()
        assert ids(q.claim(3, claim_id="c") or ()) == ["a", "c"]
        q.resume()
        claim.settle({"a": Done(), "c": Done()})

        with pytest.raises(ClaimLostError):
            q.claim(3, claim_id="c")
        harness.clock.advance("30s")
        assert places(q) == {"waiting": ["d"]}

    def test_an_id_that_is_a_batchs_already(self, queues: Queues) -> None:
        """A claim under the ID of a batch that is no claim takes nothing."""
        q = queues(lifecycle=WALK)
        q.create("c", requests=["a"])
        added(q, "a")

        with pytest.raises(ClaimLostError):
            q.claim(1, claim_id="c")
        assert places(q) == {"waiting": ["a"]}
        assert q.get("c").state == "building"

    def test_two_claims_have_two_ids(self, q: BatchQueue) -> None:
        """Two claims by one worker have different IDs, later ones sort later, and they are listed apart."""
        added(q, "abc")
        claims = [taken(q, 1) for _ in "abc"]

        assert len({claim.id for claim in claims}) == 3
        assert sorted(claim.id for claim in claims) == [claim.id for claim in claims]
        assert {claim.id for claim in jobs_of(q).list_claims().items} == {claim.id for claim in claims}

    @pytest.mark.parametrize("name", ["", "a\x00", "x" * 256])
    def test_no_names(self, q: BatchQueue, name: str) -> None:
        """What can be no name is refused as a claim's ID and as a group, before anything happens."""
        added(q, "a")
        with pytest.raises(InvalidNameError):
            q.claim(1, claim_id=name)
        with pytest.raises(InvalidNameError):
            q.claim(1, group=name)
        assert places(q) == {"waiting": ["a"]}

    def test_a_group_or_all(self, q: BatchQueue) -> None:
        """A claim cannot name a group and ask for all of them."""
        with pytest.raises(InvalidValueError):
            q.claim(1, group=UNGROUPED, across_groups=True)

    def test_a_claim_is_one_call(self, queues: Queues) -> None:
        """Claiming, extending and settling are one call each, however many jobs there are."""
        q, notes = noted(queues)
        added(q, [f"job-{number}" for number in range(40)])
        notes.calls.clear()

        claim = taken(q, 40)
        claim.extend()
        claim.settle({one.id: Done() for one in claim})

        assert notes.methods == ["claim_jobs", "extend_claim", "settle_jobs"]

    def test_many_due_jobs_are_served_in_their_old_order(self, q: BatchQueue, harness: Harness) -> None:
        """Due jobs need nobody to promote them: they are served by age, those that waited all along among them."""
        for number in range(9):
            q.add(f"{number}", delay=(9 - number) if number % 3 else 0)
        harness.clock.advance("20s")

        assert served(q, 5) == ["0", "1", "2", "3", "4"]
        assert served(q, 5) == ["5", "6", "7", "8"]

    def test_claims_go_on_until_nothing_can_be_served(self, q: BatchQueue) -> None:
        """`claims` gives claim after claim until nothing is left, and then ends."""
        added(q, "abcde")

        found = []
        for claim in q.claims(2):
            found.append(ids(claim))
            claim.settle({one.id: Done() for one in claim})

        assert found == [["a", "b"], ["c", "d"], ["e"]]

    def test_claims_sweep_before_they_end(self, q: BatchQueue, harness: Harness) -> None:
        """`claims` takes back what a dead worker held before it says that nothing is left."""
        added(q, "ab")
        taken(q)
        harness.clock.advance("30s")

        assert [ids(claim) for claim in q.claims(5)] == [["a", "b"]]

    def test_claims_check_their_arguments_at_once(self, q: BatchQueue) -> None:
        """`claims` refuses a wrong argument when it is called, not when it is iterated."""
        with pytest.raises(InvalidValueError):
            q.claims(5, poll=0)
        with pytest.raises(InvalidNameError):
            q.claims(5, group="")
        with pytest.raises(InvalidValueError):
            q.claims(5, group="g", across_groups=True)
