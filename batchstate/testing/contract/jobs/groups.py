"""Groups, and how they take turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.claims.methods import JobSpec
from batchstate.errors import InvalidTransitionError, NotFoundError
from batchstate.jobs import UNGROUPED, Dead, Delay, Done, Retry
from batchstate.testing.contract.jobs.base import (
    JobTests,
    Queues,
    added,
    group_of,
    ids,
    job,
    jobs_of,
    place_of,
    places,
    served,
    taken,
)

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Groups"]


def grouped(q: BatchQueue, **names: str) -> None:
    """Add jobs to groups: `g="ab"` adds `a` and `b` to the group `g`."""
    for group, letters in names.items():
        added(q, letters, group=group)


def turns(q: BatchQueue, number: int, limit: int = 1) -> list[list[str]]:
    """Answer what so many claims get, one after the other, which keep it."""
    return [served(q, limit) for _ in range(number)]


class Groups(JobTests):
    """Jobs of one group are claimed together, and groups take turns."""

    def test_a_claim_is_of_one_group(self, q: BatchQueue) -> None:
        """A claim that names no group takes jobs of one, under one lease, and none of another."""
        grouped(q, g="abcde", h="vwxyz")

        claim = taken(q, 10)

        assert ids(claim) == ["a", "b", "c", "d", "e"]
        assert {one.group for one in claim} == {"g"}
        assert {one.expires_at for one in claim} == {claim.expires_at}
        assert group_of(q, "h") == {"waiting": 5}

    def test_groups_take_turns(self, q: BatchQueue) -> None:
        """Groups are served in turn, in the order in which they had work first; the ungrouped jobs are one."""
        grouped(q, g="ab", h="cd")
        added(q, "ef")

        assert turns(q, 7) == [["a"], ["c"], ["e"], ["b"], ["d"], ["f"], []]

    def test_a_deep_group_delays_nobody(self, q: BatchQueue) -> None:
        """A deep group does not keep small ones waiting for longer than a turn each, and all drain."""
        q.set_ceiling(2)
        added(q, [f"deep-{number}" for number in range(40)], group="deep")
        added(q, [f"s1-{number}" for number in range(4)], group="s1")
        added(q, [f"s2-{number}" for number in range(4)], group="s2")

        order = []
        for claim in q.claims(10):
            order.append((claim.jobs[0].group, len(claim)))
            claim.settle({one.id: Done() for one in claim})

        assert order[:6] == [("deep", 2), ("s1", 2), ("s2", 2)] * 2
        assert order[6:] == [("deep", 2)] * 18

    def test_a_named_group_does_not_turn_the_ring(self, q: BatchQueue) -> None:
        """Serving a group by name leaves everybody's turn as it is, its own too."""
        grouped(q, g="abc", h="de")

        assert ids(taken(q, 1, group="h")) == ["d"]
        assert turns(q, 2) == [["a"], ["e"]]
        assert ids(taken(q, 1, group="g")) == ["b"]
        assert turns(q, 2) == [["c"], []]

    def test_a_group_that_is_emptied_by_name_leaves_the_ring(self, q: BatchQueue) -> None:
        """A group whose last job was taken by name joins the tail when it has work again."""
        grouped(q, g="a", h="bc")
        taken(q, group="g")
        grouped(q, g="d")

        assert turns(q, 3) == [["b"], ["d"], ["c"]]

    def test_the_ungrouped_can_be_named(self, q: BatchQueue) -> None:
        """The jobs without a group can be served alone."""
        grouped(q, g="ab")
        added(q, "cd")

        assert ids(taken(q, 5, group=UNGROUPED)) == ["c", "d"]
        assert q.claim(5, group=UNGROUPED) is None

    def test_a_group_that_does_not_exist(self, q: BatchQueue) -> None:
        """Asking for a group that has nothing gives nothing, and leaves no trace of it."""
        added(q, "a")

        assert q.claim(5, group="none") is None
        assert jobs_of(q).count_claimable(5, "none") == 0
        assert [counts.group for counts in q.counts().groups] == [None]

    def test_a_group_keeps_its_place_while_it_waits(self, q: BatchQueue) -> None:
        """More jobs for a group that waits for its turn do not move it."""
        grouped(q, g="a", h="b", i="c")
        grouped(q, h="d", g="e")

        assert turns(q, 3, limit=5) == [["a", "e"], ["b", "d"], ["c"]]

    def test_a_group_joins_at_the_tail(self, q: BatchQueue) -> None:
        """A group that had no work and has some again comes after those that waited meanwhile."""
        grouped(q, g="a", h="bc")
        claim = taken(q, 1)
        assert ids(claim) == ["a"]
        claim.settle({"a": Done()})
        grouped(q, g="d", i="e")

        assert turns(q, 4) == [["b"], ["d"], ["e"], ["c"]]

    def test_what_comes_back_puts_its_group_in_the_ring(self, q: BatchQueue, harness: Harness) -> None:
        """A group whose job was released, swept, retried or revived is servable by that, at the tail."""
        for way in ("released", "swept", "retried", "revived"):
            grouped(q, g="a", h="bc")
            claim = taken(q, 1)
            if way == "released":
                claim.release()
            elif way == "retried":
                claim.settle({"a": Retry("no", 0)})
            elif way == "revived":
                claim.settle({"a": Dead("no")})
                q.revive(["a"])
            else:
                harness.clock.advance("30s")
                q.sweep()
            assert turns(q, 3) == [["b"], ["a"], ["c"]], way
            q.remove(["a", "b", "c"], force=True)

    def test_groups_that_fell_due_join_by_due_time(self, q: BatchQueue, harness: Harness) -> None:
        """Groups whose jobs fell due since the last claim join the ring by due time, behind those that wait."""
        q.add("a", group="g", delay="3s")
        q.add("b", group="h", delay="2s")
        q.add("c", group="i", delay="1h")
        grouped(q, j="de")
        harness.clock.advance("5s")

        assert turns(q, 5) == [["d"], ["b"], ["a"], ["e"], []]

    def test_a_due_group_waits_behind_a_waiting_one(self, q: BatchQueue, harness: Harness) -> None:
        """A job that fell due while nobody looked does not overtake the groups that waited."""
        q.add("a", group="g", delay="1s")
        harness.clock.advance("1s")
        grouped(q, h="b")

        assert turns(q, 2) == [["b"], ["a"]]

    def test_many_added_at_once_join_in_their_order(self, q: BatchQueue) -> None:
        """Groups that one call brings work for join the ring in the order of the call."""
        names = ["zz", "a", "m", "b", "y", "c"]
        q.add_many([JobSpec(name, group=name) for name in names])

        assert turns(q, 6) == [[name] for name in names]

    def test_every_servable_group_is_served_within_a_round(self, q: BatchQueue) -> None:
        """With so many groups each is served once in as many turns."""
        names = [f"g{number}" for number in range(12)]
        for name in names:
            added(q, [f"{name}-{letter}" for letter in "ab"], group=name)

        for _ in range(2):
            assert sorted(claim.jobs[0].group or "" for claim in (taken(q, 1) for _ in names)) == sorted(names)

    def test_across_groups(self, q: BatchQueue) -> None:
        """A claim across groups takes one job a group, round after round, and the ring stands after the last one."""
        grouped(q, g="abc", h="de", i="f")
        added(q, "x")

        claim = q.claim(5, across_groups=True)

        assert claim is not None
        assert ids(claim) == ["a", "d", "f", "x", "b"]
        assert q.get(claim.id).request_ids == ("a", "d", "f", "x", "b")
        claim.settle({"a": Retry("no"), "b": Done(), "d": Done(), "f": Done(), "x": Done()})
        assert turns(q, 2) == [["e"], ["c"]]

    def test_across_groups_under_ceilings(self, q: BatchQueue) -> None:
        """Across groups each stays under its ceiling, and the others give the rest."""
        for number, ceiling in enumerate([1, 3, None]):
            q.set_ceiling(ceiling, group=f"g{number}")
            added(q, [f"{number}{letter}" for letter in "abcdefghij"], group=f"g{number}")

        claim = q.claim(10, across_groups=True)

        assert claim is not None
        assert ids(claim) == ["0a", "1a", "2a", "1b", "2b", "1c", "2c", "2d", "2e", "2f"]
        assert q.claim(3, across_groups=True) is not None
        assert [group_of(q, f"g{number}")["active"] for number in range(3)] == [1, 3, 9]

    def test_across_groups_that_are_all_full(self, q: BatchQueue) -> None:
        """A claim across groups ends with fewer jobs than it may take where only full groups have any left."""
        q.set_ceiling(1, group="g")
        q.set_ceiling(2, group="h")
        grouped(q, g="abc", h="def")

        claim = q.claim(10, across_groups=True)

        assert claim is not None
        assert ids(claim) == ["a", "d", "e"]
        assert q.claim(10, across_groups=True) is None

    def test_one_groups_failure_is_its_own(self, q: BatchQueue) -> None:
        """In a claim across groups each job settles on its own verdict."""
        grouped(q, g="abc", h="de")
        claim = q.claim(5, across_groups=True)
        assert claim is not None

        settlement = claim.settle({"a": Retry("no"), **{name: Done() for name in "bcde"}})

        assert (settlement.retried, sorted(settlement.completed)) == (("a",), ["b", "c", "d", "e"])

    def test_a_swept_job_is_back_in_its_group(self, q: BatchQueue, harness: Harness) -> None:
        """A lapsed job comes back to its own group, whose slot is free again."""
        q.set_ceiling(1, group="g")
        grouped(q, g="ab")
        taken(q)
        assert q.claim(5) is None
        harness.clock.advance("30s")
        q.sweep()

        assert (job(q, "a").group, group_of(q, "g")) == ("g", {"waiting": 2})
        assert served(q, 5) == ["a"]

    def test_a_waiting_job_is_moved(self, q: BatchQueue) -> None:
        """A waiting job can be moved to another group, in the place its age has there, and uses that one's slot."""
        q.set_ceiling(1, group="h")
        grouped(q, g="abc", h="d")
        q.move_job("b", "h")

        assert job(q, "b").group == "h"
        assert (group_of(q, "g"), group_of(q, "h")) == ({"waiting": 2}, {"waiting": 2})
        claim = taken(q, group="h")
        assert ids(claim) == ["b"]
        assert q.claim(1, group="h") is None
        claim.settle({"b": Done()})
        assert ids(taken(q, group="h")) == ["d"]
        assert ids(taken(q, group="g")) == ["a", "c"]

    def test_a_job_is_moved_there_and_back(self, q: BatchQueue) -> None:
        """A job moved away and back, or to where it is, is there once, and is served once."""
        grouped(q, g="ab")
        q.move_job("a", "h")
        q.move_job("a", "g")
        q.move_job("a", "g")
        q.move_job("b", UNGROUPED)
        q.move_job("b", "g")

        claim = taken(q, 2)
        assert ids(claim) == ["a", "b"]
        assert claim.batch.request_ids == ("a", "b")
        assert q.claim(5) is None
        assert group_of(q, "g") == {"active": 2}

    def test_a_scheduled_job_is_moved(self, q: BatchQueue, harness: Harness) -> None:
        """A job moved while it is due later is served by its new group when it is due, and by no other."""
        q.add("a", group="g", delay="5s")
        added(q, "b", group="g")
        q.move_job("a", "h")
        harness.clock.advance("5s")

        assert [jobs_of(q).count_claimable(5, name) for name in ("g", "h")] == [1, 1]
        assert ids(taken(q, 5, group="g")) == ["b"]
        assert q.claim(5, group="g") is None
        claim = taken(q, 5, group="h")
        assert [(one.id, one.group) for one in claim] == [("a", "h")]

    def test_a_dead_job_is_moved(self, q: BatchQueue) -> None:
        """A dead job can be moved, and is revived in its new group."""
        grouped(q, g="a")
        taken(q).settle({"a": Dead("no")})
        q.move_job("a", "h")
        q.revive(["a"])

        assert (place_of(q, "a"), group_of(q, "g"), group_of(q, "h")) == ("waiting", {}, {"waiting": 1})

    def test_a_held_job_is_not_moved(self, q: BatchQueue) -> None:
        """Moving a job that is held is refused, and moving one that is not there too."""
        grouped(q, g="a")
        taken(q)

        with pytest.raises(InvalidTransitionError):
            q.move_job("a", "h")
        with pytest.raises(NotFoundError):
            q.move_job("b", "h")
        assert group_of(q, "g") == {"active": 1}
        assert group_of(q, "h") == {}

    def test_a_hole_in_the_order_blocks_nobody(self, q: BatchQueue, harness: Harness) -> None:
        """A lane of one at a time drains, whatever was removed, replaced or purged in its middle."""
        q.set_ceiling(1, group="g")
        grouped(q, g="12345")
        q.remove(["2"])
        q.remove(["3"])
        q.add("3", "replaced", group="g")
        first = taken(q)
        first.settle({"1": Done()})
        fourth = taken(q)
        fourth.settle({"4": Delay("1h")})
        q.remove(["4"])

        drained = []
        for claim in q.claims(5):
            drained += [(one.id, one.payload) for one in claim]
            claim.settle({one.id: Done() for one in claim})
        assert drained == [("5", None), ("3", "replaced")]
        harness.clock.advance("2h")
        assert q.claim(5) is None
        assert places(q) == {}

    def test_no_trace_of_a_drained_group(self, queues: Queues) -> None:
        """A group without jobs, ceiling and pause is not listed any more."""
        q = queues()
        grouped(q, g="a", h="b")
        q.pause("h")
        q.set_ceiling(3, group="i")
        taken(q).settle({"a": Done()})
        q.remove(["b"])

        assert [counts.group for counts in q.counts().groups] == ["h", "i"]
        q.resume("h")
        q.set_ceiling(None, group="i")
        assert q.counts().groups == ()
