"""Looking at jobs: counts, listings, single ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from batchstate.errors import InvalidNameError, InvalidValueError, NotFoundError
from batchstate.job_calls import GroupCounts
from batchstate.jobs import UNGROUPED, Dead, Done, Job, Retry
from batchstate.testing.contract.given import paged
from batchstate.testing.contract.jobs.base import (
    JobTests,
    added,
    ids,
    job,
    jobs_of,
    served,
    taken,
)

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Looking"]


class Looking(JobTests):
    """Counting and listing."""

    def test_counts_by_group_and_place(self, q: BatchQueue, harness: Harness) -> None:
        """Every group is counted by place, sorted by name, the ungrouped jobs first."""
        t = harness.clock()
        added(q, "abcd", group="g")
        claim = taken(q, 3)
        harness.clock.advance("1s")
        added(q, "xy", group="e")
        added(q, "z")
        claim.settle({"a": Dead("no"), "b": Retry("no")})
        q.set_ceiling(9, group="g")
        harness.clock.advance("1s")

        counts = q.counts()

        assert counts.groups == (
            GroupCounts(None, waiting=1, oldest=t + 1000),
            GroupCounts("e", waiting=2, oldest=t + 1000),
            GroupCounts("g", waiting=1, active=1, scheduled=1, dead=1, ceiling=9, oldest=t),
        )
        assert (counts.waiting, counts.active, counts.scheduled, counts.dead) == (4, 1, 1, 1)
        assert (counts.claims, counts.lapsed, counts.now) == (1, 0, t + 2000)
        harness.clock.advance("30s")
        assert q.counts().lapsed == 1

    def test_counts_of_nothing(self, q: BatchQueue, harness: Harness) -> None:
        """An empty queue has no groups, claims or jobs."""
        counts = q.counts()

        assert (counts.groups, counts.claims, counts.lapsed, counts.paused) == ((), 0, 0, None)
        assert (counts.waiting, counts.active, counts.scheduled, counts.dead) == (0, 0, 0, 0)
        assert counts.now == harness.clock() == jobs_of(q).now()

    def test_a_claim_in_flight_is_lapsed_when_one_job_is(self, q: BatchQueue, harness: Harness) -> None:
        """A claim whose jobs were all extended for themselves has not lapsed, though its own lease has ended."""
        added(q, "ab")
        claim = taken(q)
        claim.extend_job("a", "1m")
        claim.extend_job("b", "1m")
        harness.clock.advance("30s")
        assert q.counts().lapsed == 0
        harness.clock.advance("30s")
        assert q.counts().lapsed == 1

    def test_what_one_claim_could_take(self, q: BatchQueue, harness: Harness) -> None:
        """What one claim would get is claimable: due jobs count, paused and full groups do not, up to a limit."""
        store = jobs_of(q)
        assert store.count_claimable(5) == 0
        added(q, "abc", group="g")
        q.add("d", group="g", delay="1s")
        added(q, "xy", group="h")

        assert [store.count_claimable(limit) for limit in (1, 2, 9)] == [1, 2, 3]
        assert store.count_claimable(9, "h") == 2
        assert store.count_claimable(9, "") == 0
        assert store.count_claimable(9, across_groups=True) == 5
        harness.clock.advance("1s")
        assert store.count_claimable(9) == 4
        q.set_ceiling(2, group="g")
        assert store.count_claimable(9) == 2
        assert served(q, 9) == ["a", "b"]
        assert store.count_claimable(9) == 2
        assert (store.count_claimable(9, "g"), store.count_claimable(9, "h")) == (0, 2)
        q.pause("h")
        assert store.count_claimable(9) == 0
        q.pause()
        q.resume("h")
        assert store.count_claimable(9, across_groups=True) == 0

    def test_counting_moves_nothing(self, q: BatchQueue) -> None:
        """Counting what is claimable is not a turn."""
        added(q, "a", group="g")
        added(q, "b", group="h")
        for _ in range(3):
            jobs_of(q).count_claimable(5)

        assert [served(q), served(q)] == [["a"], ["b"]]

    def test_jobs_are_listed_by_place_and_group(self, q: BatchQueue) -> None:
        """Jobs are listed in their order: those that wait by age, those due later by due time, dead ones by age."""
        added(q, "abcdefgh", group="g")
        added(q, "uvw")
        claim = taken(q, 6, group="g")
        claim.settle({"c": Dead("no"), "a": Dead("no"), "b": Retry("no", "5s"), "d": Retry("no", "1s")})
        taken(q, 1, group=UNGROUPED).settle({"u": Retry("no", "2s")})

        assert ids(q.jobs("waiting", group="g")) == ["g", "h"]
        assert ids(q.jobs("waiting", group=UNGROUPED)) == ["v", "w"]
        assert sorted(ids(q.jobs("waiting"))) == ["g", "h", "v", "w"]
        assert ids(q.jobs("active", group="g")) == ["e", "f"]
        assert ids(q.jobs("scheduled", group="g")) == ["d", "b"]
        assert ids(q.jobs("dead")) == ids(q.jobs("dead", group="g")) == ["a", "c"]
        assert ids(q.jobs("dead", group="none")) == []
        assert [one.claim for one in q.jobs("active")] == [claim.id] * 2

    def test_jobs_are_chosen_by_error_and_age(self, q: BatchQueue, harness: Harness) -> None:
        """Jobs can be listed by a part of their error and by how long ago they were added."""
        added(q, "ab")
        harness.clock.advance("1h")
        added(q, "c")
        taken(q).settle({"a": Dead("no route to host"), "b": Dead("timeout"), "c": Dead("no route")})

        assert ids(q.jobs("dead", error="no route")) == ["a", "c"]
        assert ids(q.jobs("dead", older_than="1h")) == ["a", "b"]
        assert ids(q.jobs("dead", older_than="59m", error="route")) == ["a"]
        assert ids(q.jobs("dead", error="other")) == []

    def test_no_place(self, q: BatchQueue) -> None:
        """A place that is none is refused when the listing is asked for."""
        place: Any = "done"
        with pytest.raises(InvalidValueError):
            q.jobs(place)
        with pytest.raises(InvalidNameError):
            q.jobs("dead", group="")

    def test_listings_come_in_pages(self, q: BatchQueue) -> None:
        """Each place is listed in pages, each job once, in order."""
        names = [f"job-{number:02}" for number in range(25)]
        added(q, names)
        store = jobs_of(q)

        pages = list(paged(lambda cursor: store.list_jobs("waiting", cursor=cursor, limit=10)))
        assert [ids(one for one in page if isinstance(one, Job)) for page in pages if page] == [
            names[:10],
            names[10:20],
            names[20:],
        ]
        taken(q).settle({name: Retry("no", 1 + number % 3) for number, name in enumerate(names)})
        due = [one for page in paged(lambda cursor: store.list_jobs("scheduled", "", cursor, limit=4)) for one in page]
        assert [one.id for one in due if isinstance(one, Job)] == [*names[::3], *names[1::3], *names[2::3]]

    def test_claims_come_in_pages(self, q: BatchQueue) -> None:
        """The claims in flight are listed in pages, each once, with what they hold and until when."""
        added(q, [f"{number}" for number in range(12)])
        claims = {claim.id: claim for claim in (taken(q, 1) for _ in range(12))}
        next(iter(claims.values())).extend_job("0", "1h")

        found = [row for page in paged(lambda cursor: jobs_of(q).list_claims(cursor, limit=5)) for row in page]

        assert sorted(row.id for row in found) == sorted(claims)
        for row in found:
            claim = claims[row.id]
            until = job(q, claim.jobs[0].id).expires_at
            assert (row.expires_at, row.jobs) == (claim.expires_at, ((claim.jobs[0].id, until),))

    def test_jobs_are_loaded_by_id(self, q: BatchQueue) -> None:
        """Jobs are loaded by ID, missing ones left out, duplicates fine; one that is done says how to find it."""
        added(q, "ab")
        taken(q, 1).settle({"a": Done()})

        assert list(jobs_of(q).get_jobs(["b", "x", "b", "a"])) == ["b"]
        assert jobs_of(q).get_jobs([]) == {}
        with pytest.raises(NotFoundError, match="find_by_request_id"):
            q.get_job("a")
        with pytest.raises(InvalidNameError):
            q.get_job("")

    def test_claims_are_loaded_by_id(self, q: BatchQueue) -> None:
        """Claims in flight are loaded by ID; those that ended or never were are left out."""
        added(q, "ab")
        one, two = taken(q, 1), taken(q, 1)
        one.settle({"a": Done()})

        found = jobs_of(q).get_claims([two.id, one.id, "never", two.id])
        assert list(found) == [two.id]
        assert (found[two.id].jobs, found[two.id].batch) == (two.jobs, two.batch)
