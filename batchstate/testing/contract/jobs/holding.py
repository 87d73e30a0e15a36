"""Holds: a lease on a batch without jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.errors import ClaimLostError, InvalidNameError, NotFoundError
from batchstate.testing.contract.jobs.base import WALK, JobTests, Queues, noted

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Holding"]

MINE = "mine"


class Holding(JobTests):
    """Of two workers that are handed one message, one does the work."""

    @pytest.fixture
    def batches(self, queues: Queues) -> BatchQueue:
        """Open a queue with a batch in it."""
        batches = queues(lifecycle=WALK)
        batches.create("b", requests=["r"])
        return batches

    def test_one_holder_at_a_time(self, batches: BatchQueue, harness: Harness) -> None:
        """While one holds a batch, nobody else gets a hold; other batches are not concerned, nor the batch itself."""
        batches.create("c", requests=["r"])
        hold = batches.hold("b", "30s")

        assert hold is not None
        assert (hold.batch_id, hold.expires_at) == ("b", harness.clock() + 30_000)
        assert batches.hold("b") is None
        assert batches.hold("c") is not None
        assert batches.get("b").version == 1
        assert batches.transition(batches.get("b"), "testing").version == 2

    def test_the_same_hold_sent_twice(self, batches: BatchQueue, harness: Harness) -> None:
        """The same token answers the same hold, whose lease is not restarted."""
        first = batches.hold("b", "30s", token=MINE)
        harness.clock.advance("10s")
        again = batches.hold("b", "90s", token=MINE)

        assert first is not None
        assert again is not None
        assert again.expires_at == first.expires_at

    def test_a_hold_is_extended(self, batches: BatchQueue, harness: Harness) -> None:
        """Extending sets the end to now and the length given, which may be shorter."""
        hold = batches.hold("b", "30s")
        assert hold is not None
        harness.clock.advance("20s")

        assert hold.extend() == harness.clock() + 30_000
        harness.clock.advance("29.999s")
        assert batches.hold("b") is None
        assert hold.extend("1s") == hold.expires_at == harness.clock() + 1_000
        harness.clock.advance("1s")
        assert batches.hold("b") is not None

    def test_a_lapsed_hold_is_anyones(self, batches: BatchQueue, harness: Harness) -> None:
        """A lapsed hold needs no sweep, and its former holder's calls are refused from the instant it lapsed."""
        hold = batches.hold("b", "30s")
        assert hold is not None
        harness.clock.advance("30s")

        with pytest.raises(ClaimLostError):
            hold.extend()
        with pytest.raises(ClaimLostError):
            hold.release()
        assert hold.lost
        other = batches.hold("b", "30s")
        assert other is not None
        with pytest.raises(ClaimLostError):
            hold.extend()
        with pytest.raises(ClaimLostError):
            hold.release()
        assert other.extend() == harness.clock() + 30_000

    def test_a_released_hold_is_free_at_once(self, batches: BatchQueue) -> None:
        """Releasing frees the batch, and releasing again is harmless until another holds it."""
        hold = batches.hold("b")
        assert hold is not None
        hold.release()
        hold.release()
        with pytest.raises(ClaimLostError):
            hold.extend()

        other = batches.hold("b")
        assert other is not None
        with pytest.raises(ClaimLostError):
            hold.release()
        assert batches.hold("b") is None

    def test_a_batch_that_is_not_there(self, batches: BatchQueue) -> None:
        """What is not there cannot be held."""
        with pytest.raises(NotFoundError):
            batches.hold("x")
        with pytest.raises(InvalidNameError):
            batches.hold("")
        with pytest.raises(InvalidNameError):
            batches.hold("b", token="")

    def test_a_retired_batch(self, batches: BatchQueue) -> None:
        """A retired batch can be held as any other, and its hold goes with it."""
        batches.transition(batches.transition(batches.transition(batches.get("b"), "testing"), "merging"), "merged")
        batches.retire("b")
        assert batches.hold("b") is not None
        batches.purge(older_than=0)

        with pytest.raises(NotFoundError):
            batches.hold("b")
        batches.create("b", requests=["again"])
        assert batches.hold("b") is not None

    def test_as_a_context_manager(self, batches: BatchQueue, harness: Harness) -> None:
        """Leaving a hold ends it; where it was lost meanwhile, leaving says so, unless something else is raised."""
        hold = batches.hold("b")
        assert hold is not None
        with hold:
            assert batches.hold("b") is None
        again = batches.hold("b")
        assert again is not None
        with pytest.raises(ClaimLostError), again:
            harness.clock.advance("1h")
        third = batches.hold("b")
        assert third is not None
        harness.clock.advance("1h")
        with pytest.raises(ZeroDivisionError), third:
            raise ZeroDivisionError

    def test_queues_do_not_share_holds(self, queues: Queues, batches: BatchQueue) -> None:
        """Batches of one ID in two queues are held apart."""
        other = queues("other", lifecycle=WALK)
        other.create("b", requests=["r"])

        assert batches.hold("b", token=MINE) is not None
        assert other.hold("b") is not None

    def test_a_hold_is_one_call(self, queues: Queues, batches: BatchQueue) -> None:
        """Taking a hold, extending and ending it are one call each."""
        noting, notes = noted(queues)
        hold = noting.hold(batches.get("b").id)
        assert hold is not None
        hold.extend()
        hold.release()

        assert notes.methods == ["take_hold", "extend_hold", "release_hold"]
