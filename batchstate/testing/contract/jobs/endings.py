"""The end of a claim, and the lifecycle that its batch walks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.errors import InvalidLifecycleError, InvalidTransitionError, InvalidValueError, VersionMismatchError
from batchstate.jobs import Dead, Delay, Done, Retry
from batchstate.lifecycle import Lifecycle
from batchstate.testing.contract.given import filed
from batchstate.testing.contract.jobs.base import (
    WALK,
    JobTests,
    Queues,
    added,
    batch_of,
    job,
    outcomes,
    taken,
)

if TYPE_CHECKING:
    from batchstate.claims.claim import Claim
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Endings", "Walking"]

RESERVED = ("claimed", "settled", "abandoned")


class Endings(JobTests):
    """A claim ends once, in the step that takes the last job it holds out of flight."""

    def test_the_last_settlement_ends_a_claim(self, q: BatchQueue, harness: Harness) -> None:
        """A claim is claimed until its last job is settled; then its batch is settled and retired, in that step."""
        added(q, "abc")
        claim = taken(q)
        assert not claim.settle({"a": Done(), "b": Retry("no")}).finished
        assert batch_of(q, claim) == ("claimed", 1)
        assert filed(q.store, claim.id, RESERVED) == {"claimed": 1}
        harness.clock.advance("1s")

        assert claim.settle({"c": Delay("1s")}, why="enough").finished

        batch = q.get(claim.id)
        now = harness.clock()
        assert (batch.state, batch.version, batch.entered, batch.retired_at, batch.updated_at) == (
            "settled", 2, 2, now, now,
        )  # fmt: skip
        assert batch.request_ids == ("a", "b", "c")
        last = batch.history[-1]
        assert (last.source, last.to, last.version, last.at, last.by, last.why) == (
            "claimed", "settled", 2, now, "worker", "enough",
        )  # fmt: skip
        assert filed(q.store, claim.id, RESERVED) == {}
        assert q.list_by_states(RESERVED) == []
        assert [found.id for found in q.find_by_request_id("b").batches] == [claim.id]
        assert [batch.id for batch in q.store.list_retired().items if not isinstance(batch, Exception)] == [claim.id]

    def test_a_release_ends_a_claim_as_settled(self, q: BatchQueue) -> None:
        """A claim that gave its last job back is settled."""
        added(q, "ab")
        claim = taken(q)
        claim.settle({"a": Done()})

        assert claim.release().finished
        assert batch_of(q, claim) == ("settled", 2)
        assert [outcomes(q, name) for name in "ab"] == [["completed"], ["released"]]

    def test_a_sweep_ends_a_claim_as_abandoned(self, q: BatchQueue, harness: Harness) -> None:
        """A claim whose last job was swept is abandoned and retired; how the others left does not matter."""
        added(q, "abc")
        claim = taken(q)
        claim.settle({"a": Done()})
        claim.extend_job("c", "1m")
        harness.clock.advance("30s")
        assert q.sweep().ended == ()
        assert batch_of(q, claim) == ("claimed", 1)
        harness.clock.advance("30s")

        assert q.sweep(by="sweeper").ended == (claim.id,)
        batch = q.get(claim.id)
        assert (batch.state, batch.version, batch.retired_at) == ("abandoned", 2, harness.clock())
        assert (batch.history[-1].by, batch.history[-1].to) == ("sweeper", "abandoned")
        assert filed(q.store, claim.id, RESERVED) == {}
        assert [outcomes(q, name) for name in "abc"] == [["completed"], ["swept"], ["swept"]]

    def test_a_claim_swept_in_part_ends_as_settled(self, q: BatchQueue, harness: Harness) -> None:
        """However many jobs were swept, the step that takes the last one decides."""
        added(q, "ab")
        claim = taken(q)
        claim.extend_job("b", "1m")
        harness.clock.advance("30s")
        q.sweep()

        assert not claim.settle({"a": Done()}).finished
        assert claim.settle({"b": Done()}).finished
        assert batch_of(q, claim) == ("settled", 2)

    def test_two_that_settle_the_last_two_jobs(self, queues: Queues) -> None:
        """Of two that settle a claim's last two jobs, the second one ends it, once."""
        q = queues()
        added(q, "ab")
        claim = taken(q)
        other = queues().claim_of(claim.id)

        assert not claim.settle({"a": Done()}).finished
        assert other.settle({"b": Done()}).finished
        assert claim.settle({"a": Done()}).finished
        assert batch_of(q, claim) == ("settled", 2)

    def test_outcomes_of_every_kind(self, q: BatchQueue, harness: Harness) -> None:
        """A job's association with a claim says what became of it there, whatever the claim's end."""
        added(q, "abcdefg")
        claim = taken(q)
        assert outcomes(q, "a") == [""]
        claim.settle({"a": Done(), "b": Retry("no"), "c": Delay("1h"), "d": Dead("no")})
        claim.release(["e"])
        q.remove(["f"], force=True)
        harness.clock.advance("30s")
        q.sweep()

        assert [outcomes(q, name) for name in "abcdefg"] == [
            ["completed"], ["retried"], ["delayed"], ["dead"], ["released"], ["removed"], ["swept"],
        ]  # fmt: skip
        claim.settle({"g": Done(), "f": Done()})
        assert [outcomes(q, name) for name in "fg"] == [["removed"], ["completed"]]

    def test_the_built_in_states_are_the_claims(self, queues: Queues) -> None:
        """Nobody but claims moves a batch into their built-in states, or out of them."""
        q = queues(lifecycle=WALK)
        added(q, "a")
        claim = taken(q)
        mine = q.create("mine", requests=["r"])

        for state in RESERVED:
            with pytest.raises((InvalidTransitionError, InvalidValueError)):
                q.transition(mine, state)
        with pytest.raises((InvalidTransitionError, InvalidValueError)):
            q.transition(claim.batch, "testing")
        with pytest.raises((InvalidTransitionError, InvalidValueError)):
            q.retire(claim.id)
        assert batch_of(q, claim) == ("claimed", 1)


class Walking(JobTests):
    """A claim whose batch walks the user's lifecycle while its lease holds."""

    @pytest.fixture
    def walk(self, queues: Queues) -> BatchQueue:
        """Open a queue with a lifecycle that claims can walk."""
        return queues(lifecycle=WALK)

    def _claimed(self, walk: BatchQueue, state: str = "building") -> Claim:
        added(walk, "ab")
        claim = walk.claim(2, state=state)
        assert claim is not None
        return claim

    def test_a_claim_begins_where_it_is_told(self, walk: BatchQueue) -> None:
        """A claim's batch can begin in a state of the lifecycle, and is listed there."""
        claim = self._claimed(walk, "testing")

        assert (claim.batch.state, claim.batch.history[0].to) == ("testing", "testing")
        assert walk.list_by_states(["testing"]) == [claim.batch]
        assert filed(walk.store, claim.id, (*WALK.states, *RESERVED)) == {"testing": 1}

    def test_a_claim_walks_and_ends_settled(self, walk: BatchQueue) -> None:
        """The batch moves as any other while its jobs are held, and settling moves it to its end from where it is."""
        claim = self._claimed(walk)
        batch = walk.transition(claim.batch, "testing", update={"ci": "green"})
        assert claim.extend().held == 2

        claim.settle({"a": Done(), "b": Done()})

        ended = walk.get(claim.id)
        assert (ended.state, ended.version, ended.attributes) == ("merged", 3, {"ci": "green"})
        assert ended.retired_at is not None
        assert [(move.source, move.to) for move in ended.history] == [
            (None, "building"), ("building", "testing"), ("testing", "merged"),
        ]  # fmt: skip
        assert walk.list_by_states(WALK.states) == []
        assert filed(walk.store, claim.id, WALK.states) == {}
        with pytest.raises(VersionMismatchError):
            walk.transition(batch, "merging")

    def test_a_claim_is_handed_from_process_to_process(self, queues: Queues) -> None:
        """Another process takes the claim up by its batch's ID, moves it on, and settles it."""
        claim = self._claimed(queues(lifecycle=WALK))
        walk = queues(lifecycle=WALK, by="another")
        [batch] = walk.list_by_states(["building"])

        again = walk.claim_of(batch.id)
        assert again.jobs == claim.jobs
        assert walk.advance(batch.id, "testing", entered=1).outcome == "moved"
        assert again.settle({"a": Done(), "b": Retry("no")}).finished
        assert (walk.get(batch.id).state, walk.get(batch.id).history[-1].by) == ("merged", "another")
        assert claim.settle({"a": Done()}).completed == ("a",)

    def test_a_swept_claim_goes_where_the_lifecycle_says(self, walk: BatchQueue, harness: Harness) -> None:
        """A claim whose worker died moves to the state for that, and where that is no end, it stays in the queue."""
        claim = self._claimed(walk)
        harness.clock.advance("30s")

        assert walk.sweep().ended == (claim.id,)

        batch = walk.get(claim.id)
        assert (batch.state, batch.version, batch.entered, batch.retired_at) == ("failed", 2, 2, None)
        assert walk.list_by_states(["failed"]) == [batch]
        assert filed(walk.store, claim.id, WALK.states) == {"failed": 2}
        assert walk.transition(batch, "building").state == "building"

    def test_a_terminal_batch_stays_where_it_is(self, walk: BatchQueue) -> None:
        """A batch that reached an end by itself stays there when its claim ends, and is retired then."""
        claim = self._claimed(walk, "testing")
        batch = walk.transition(walk.transition(claim.batch, "merging"), "merged")
        assert walk.list_by_states(["merged"]) == [batch]

        claim.settle({"a": Done()})
        assert walk.get(claim.id) == batch
        claim.settle({"b": Done()})

        ended = walk.get(claim.id)
        assert (ended.state, ended.version, ended.entered) == ("merged", 4, 3)
        assert ended.retired_at is not None
        assert walk.list_by_states(["merged"]) == []

    def test_a_terminal_batch_stays_when_it_is_swept(self, walk: BatchQueue, harness: Harness) -> None:
        """A sweep does not move a batch that has reached an end."""
        claim = self._claimed(walk, "merging")
        walk.transition(claim.batch, "merged")
        harness.clock.advance("30s")

        walk.sweep()
        assert (walk.get(claim.id).state, walk.get(claim.id).version) == ("merged", 3)

    def test_a_batch_that_was_retired_meanwhile(self, walk: BatchQueue, harness: Harness) -> None:
        """A batch that was retired while its jobs were held changes no more, and its jobs can be settled or swept."""
        claim = self._claimed(walk, "merging")
        walk.transition(claim.batch, "merged")
        retired = walk.retire(claim.id)

        assert claim.settle({"a": Done()}).completed == ("a",)
        harness.clock.advance("30s")
        assert walk.sweep().ended == (claim.id,)
        assert walk.get(claim.id) == retired

    def test_a_batch_that_was_purged_meanwhile(self, walk: BatchQueue, harness: Harness) -> None:
        """A batch purged while its jobs were held costs no job: they are settled, or swept and served again."""
        claim = self._claimed(walk, "merging")
        walk.transition(claim.batch, "merged")
        walk.retire(claim.id)
        walk.purge(older_than=0)

        assert claim.settle({"a": Done()}).completed == ("a",)
        harness.clock.advance("30s")
        assert walk.sweep().returned == ("b",)
        assert job(walk, "b").place == "waiting"
        assert walk.claim(5) is not None

    def test_a_move_and_the_end_race(self, walk: BatchQueue) -> None:
        """A worker that moves the batch as it read it, after the claim has ended, loses the race and moves nothing."""
        claim = self._claimed(walk)
        seen = walk.get(claim.id)
        claim.settle({"a": Done(), "b": Done()})

        with pytest.raises(VersionMismatchError):
            walk.transition(seen, "testing")
        assert walk.get(claim.id).state == "merged"
        assert filed(walk.store, claim.id, WALK.states) == {}

    def test_a_lifecycle_must_say_where_claims_end(self, queues: Queues) -> None:
        """A claim in the user's states is refused where the lifecycle does not name where it ends."""
        walk = queues(lifecycle=Lifecycle.parse("building > merged"))
        added(walk, "a")

        with pytest.raises(InvalidLifecycleError):
            walk.claim(1, state="building")
        with pytest.raises(InvalidLifecycleError):
            walk.claims(1, state="building")
        assert job(walk, "a").place == "waiting"
        assert walk.claim(1) is not None

    def test_a_state_that_is_none(self, walk: BatchQueue) -> None:
        """A claim cannot begin in a state that the lifecycle does not have."""
        added(walk, "a")
        for state in ("nowhere", "settled", ""):
            with pytest.raises(InvalidValueError):
                walk.claim(1, state=state)
        assert job(walk, "a").place == "waiting"
