"""Pausing, and ceilings on what is in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from batchstate.errors import InvalidNameError, InvalidValueError
from batchstate.jobs import UNGROUPED, Dead, Delay, Done, Retry, Verdict
from batchstate.testing.contract.jobs.base import (
    JobTests,
    added,
    group_of,
    ids,
    jobs_of,
    places,
    served,
    taken,
)

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Ceilings", "Pausing"]


VERDICTS: dict[str, Verdict] = {"complete": Done(), "retry": Retry("no"), "dead": Dead("no"), "delay": Delay("1h")}


class Pausing(JobTests):
    """Serving nothing for a while, of a group or of all."""

    def test_a_paused_queue_serves_nothing(self, q: BatchQueue) -> None:
        """A paused queue keeps its jobs waiting in their order, and serves the same ones after."""
        added(q, "abcde")
        q.pause(reason="deploying")

        assert q.claim(5) is None
        assert q.claim(5, group=UNGROUPED) is None
        assert q.claim(5, across_groups=True) is None
        assert jobs_of(q).count_claimable(5) == 0
        assert places(q) == {"waiting": list("abcde")}
        q.resume()
        assert served(q, 5) == ["a", "b", "c", "d", "e"]

    def test_all_else_goes_on(self, q: BatchQueue, harness: Harness) -> None:
        """In a paused queue jobs are added, settled, extended, released and swept; due ones wait."""
        added(q, "abcde")
        claim = taken(q)
        q.pause()

        assert q.add("f", delay="1s")
        assert claim.settle({"a": Done(), "b": Retry("no", "1s"), "c": Delay("1s")}).ok
        assert claim.extend("10s").held == 2
        assert claim.release(["d"]).released == ("d",)
        harness.clock.advance("10s")
        assert q.sweep().returned == ("e",)
        assert q.claim(9) is None
        q.resume()
        assert served(q) == ["b", "c", "d", "e", "f"]

    def test_a_paused_group_is_passed_over(self, q: BatchQueue) -> None:
        """A paused group keeps its backlog and what is added to it, while others are served; then it is again."""
        added(q, "abc", group="g")
        added(q, "xy", group="h")
        q.pause("g", reason="too slow")
        added(q, "d", group="g")

        assert served(q, 5) == ["x", "y"]
        assert q.claim(5) is None
        assert q.claim(5, group="g") is None
        assert group_of(q, "g") == {"waiting": 4}
        q.resume("g")
        assert served(q, 5) == ["a", "b", "c", "d"]

    def test_the_ungrouped_can_be_paused(self, q: BatchQueue) -> None:
        """The jobs without a group are paused by themselves."""
        added(q, "a")
        added(q, "b", group="g")
        q.pause(UNGROUPED)

        assert served(q) == ["b"]
        q.resume(UNGROUPED)
        assert served(q) == ["a"]

    def test_a_reason_is_kept(self, q: BatchQueue) -> None:
        """Why something is paused is kept and shown, the latest reason of each; resuming clears it."""
        added(q, "a", group="g")
        q.pause(reason="first")
        q.pause(reason="second")
        q.pause("g", reason="its own")
        q.pause("empty", reason="before it has any job")

        counts = q.counts()
        assert counts.paused == "second"
        assert [(group.group, group.paused) for group in counts.groups] == [
            ("empty", "before it has any job"),
            ("g", "its own"),
        ]
        q.resume()
        q.resume("g")
        q.resume("never paused")
        assert q.counts().paused is None
        assert q.claim(1, group="g") is not None
        with pytest.raises(InvalidValueError):
            q.pause(reason="")
        with pytest.raises(InvalidNameError):
            q.pause("")

    def test_resuming_the_queue_resumes_no_group(self, q: BatchQueue) -> None:
        """A group that was paused itself stays so when the queue goes on."""
        added(q, "a", group="g")
        q.pause()
        q.pause("g")
        q.resume()

        assert q.claim(1) is None

    def test_a_resumed_group_joins_the_tail(self, q: BatchQueue) -> None:
        """A group that was paused takes its turn behind those that waited meanwhile."""
        added(q, "a", group="g")
        added(q, "b", group="h")
        q.pause("g")
        q.resume("g")

        assert [served(q), served(q)] == [["b"], ["a"]]

    def test_pausing_the_queue_turns_no_ring(self, q: BatchQueue) -> None:
        """Groups keep their turns through a pause of the queue."""
        added(q, "ab", group="g")
        added(q, "cd", group="h")
        assert served(q, 1) == ["a"]
        q.pause()
        q.resume()

        assert [served(q, 1) for _ in "123"] == [["c"], ["b"], ["d"]]


class Ceilings(JobTests):
    """How many jobs of a group may be in flight."""

    def test_no_more_than_the_ceiling(self, q: BatchQueue) -> None:
        """A group gives no more than its ceiling leaves, and for each job that leaves flight exactly one more."""
        q.set_ceiling(3, group="g")
        added(q, "abcdefgh", group="g")

        claim = taken(q, 10)
        assert ids(claim) == ["a", "b", "c"]
        assert q.claim(10) is None
        claim.settle({"b": Done()})
        assert served(q, 10) == ["d"]
        assert group_of(q, "g") == {"active": 3, "waiting": 4}

    @pytest.mark.parametrize("way", ["complete", "retry", "dead", "delay", "release", "sweep", "remove"])
    def test_every_way_out_frees_one_slot(self, q: BatchQueue, harness: Harness, way: str) -> None:
        """However a job leaves flight, it frees its group's slot once, and the group takes its turn again."""
        q.set_ceiling(2, group="g")
        added(q, "abcdef", group="g")
        claim = taken(q)
        claim.extend_job("b", "1h")
        for _ in range(2):
            if way == "sweep":
                harness.clock.advance("30s")
                q.sweep()
            elif way == "remove":
                q.remove(["a"], force=True)
            elif way == "release":
                claim.release(["a"])
            else:
                claim.settle({"a": VERDICTS[way]})

        assert group_of(q, "g")["active"] == 1
        assert served(q) == (["a"] if way in ("release", "sweep") else ["c"])
        assert q.claim(5) is None

    def test_a_lowered_ceiling_takes_nothing_away(self, q: BatchQueue) -> None:
        """What is in flight goes on above a lowered ceiling; nothing is served until it is below; raised, it is."""
        q.set_ceiling(3, group="g")
        added(q, "abcdefgh", group="g")
        claim = taken(q)
        q.set_ceiling(1, group="g")

        assert claim.extend().held == 3
        claim.settle({"a": Done()})
        assert q.claim(5) is None
        claim.settle({"b": Done()})
        assert q.claim(5) is None
        claim.settle({"c": Done()})
        assert served(q, 5) == ["d"]
        q.set_ceiling(5, group="g")
        assert served(q, 5) == ["e", "f", "g", "h"]

    def test_a_default_for_all_groups(self, q: BatchQueue) -> None:
        """A ceiling without a group is every group's that has none of its own, the ungrouped jobs' too."""
        q.set_ceiling(1)
        q.set_ceiling(3, group="h")
        added(q, "abcd", group="g")
        added(q, "efgh", group="h")
        added(q, "ijkl")

        assert [served(q), served(q), served(q), served(q)] == [["a"], ["e", "f", "g"], ["i"], []]
        assert {group.group: group.ceiling for group in q.counts().groups} == {None: 1, "g": 1, "h": 3}
        assert q.counts().ceiling == 1
        q.set_ceiling(None, group="h")
        assert q.claim(5, group="h") is None
        q.set_ceiling(None)
        assert ids(taken(q, group="h")) == ["h"]
        assert [served(q), served(q)] in ([["b", "c", "d"], ["j", "k", "l"]], [["j", "k", "l"], ["b", "c", "d"]])

    def test_the_ungrouped_have_their_own(self, q: BatchQueue) -> None:
        """The jobs without a group can have a ceiling as any other group."""
        q.set_ceiling(2, group=UNGROUPED)
        added(q, "abc")

        assert served(q) == ["a", "b"]
        assert q.claim(1) is None

    @pytest.mark.parametrize("ceiling", [0, -1, True, 1.5, "3"])
    def test_no_ceiling(self, q: BatchQueue, ceiling: Any) -> None:  # noqa: ANN401 - what must be refused
        """A ceiling that is no positive whole number is refused: to serve nothing, one pauses."""
        with pytest.raises(InvalidValueError):
            q.set_ceiling(ceiling)
        with pytest.raises(InvalidValueError):
            q.set_ceiling(ceiling, group="g")
        with pytest.raises(InvalidNameError):
            q.set_ceiling(1, group="")
        assert q.counts().ceiling is None

    def test_a_full_group_is_not_in_the_way(self, q: BatchQueue) -> None:
        """A group at its ceiling is passed over, and served when it has room."""
        q.set_ceiling(1, group="g")
        added(q, "ab", group="g")
        added(q, "cd", group="h")
        claim = taken(q, 1)

        assert [served(q, 1), served(q, 1), served(q, 1)] == [["c"], ["d"], []]
        claim.settle({"a": Done()})
        assert served(q) == ["b"]

    def test_a_dead_worker_holds_its_slots_for_one_lease(self, q: BatchQueue, harness: Harness) -> None:
        """A slot is free after the dead holder's lease and a sweep; a slow holder that extends keeps it."""
        q.set_ceiling(1)
        added(q, "ab", group="dead")
        added(q, "cd", group="slow")
        taken(q, group="dead")
        slow = taken(q, group="slow")
        harness.clock.advance("20s")
        slow.extend()
        harness.clock.advance("10s")
        q.sweep()

        assert served(q) == ["a"]
        assert q.claim(5) is None

    def test_recovered_jobs_stay_under_the_ceiling(self, q: BatchQueue, harness: Harness) -> None:
        """Jobs that come back from a dead worker count as any other, and keep their place before the new ones."""
        added(q, "abcde", group="g")
        taken(q)
        q.set_ceiling(2, group="g")
        added(q, "xy", group="g")
        harness.clock.advance("30s")
        q.sweep()

        seen = []
        for claim in q.claims(5):
            seen.append(ids(claim))
            assert group_of(q, "g")["active"] <= 2
            claim.settle({one.id: Done() for one in claim})
        assert seen == [["a", "b"], ["c", "d"], ["e", "x"], ["y"]]
