"""Jobs that are taken over as they stand, by storages that can."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from batchstate.errors import InvalidNameError, InvalidValueError, QueueMismatchError
from batchstate.job_storage import Restorable
from batchstate.jobs import Dead, Done, Job, Retry
from batchstate.testing.contract.jobs.base import PLACES, JobTests, Queues, added, ids, jobs_of, places, served, taken

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Restoring"]


class Restoring(JobTests):
    """Jobs inserted as they stand are what they were: place, order, counters, errors, times."""

    @pytest.fixture
    def target(self, q: BatchQueue) -> Restorable:
        """Open a storage that takes jobs over."""
        store = jobs_of(q)
        if not isinstance(store, Restorable):
            pytest.skip("this storage takes no jobs over")
        return store

    @pytest.fixture
    def jobs(self, queues: Queues) -> list[Job]:
        """Make jobs in every place but held, with counters and errors, as jobs of queue `q`."""
        source = queues("source")
        added(source, ["a", "b", "c", "d"])
        added(source, ["e", "f"], group="g")
        source.add("later", {"n": [10**30, 1.5, "ü"]}, group="g", delay="1h")
        first = taken(source, 3)
        first.settle({"a": Dead("bad\nvery"), "b": Retry("again"), "c": Done()})
        taken(source, 1, group="g").release()
        return [attrs.evolve(job, queue="q") for place in PLACES for job in source.jobs(place)]

    def test_they_are_what_they_were(self, q: BatchQueue, target: Restorable, jobs: list[Job]) -> None:
        """Every job is in its place again, with its order, its counters, its error and its times."""
        assert target.restore_jobs(jobs) == ["added"] * 6

        assert [job for place in PLACES for job in q.jobs(place)] == jobs
        assert places(q) == {"waiting": ["d", "e", "f"], "scheduled": ["b", "later"], "dead": ["a"]}
        counts = q.counts()
        assert [(g.group, g.waiting, g.scheduled, g.dead) for g in counts.groups] == [(None, 1, 1, 1), ("g", 2, 1, 0)]
        assert jobs_of(q).list_queues() == ["q", "source"]

    def test_they_are_worked_on_as_before(
        self, q: BatchQueue, target: Restorable, jobs: list[Job], harness: Harness
    ) -> None:
        """They are claimed in their old order, due ones when they are due, dead ones after a revival."""
        target.restore_jobs(list(reversed(jobs)))
        harness.clock.advance("11s")
        q.revive(["a"])

        assert ids(taken(q, 10, group="g")) == ["e", "f"]
        assert served(q) == ["a", "b", "d"]
        harness.clock.advance("1h")
        assert served(q) == ["later"]

    def test_later_additions_come_behind(self, q: BatchQueue, target: Restorable, jobs: list[Job]) -> None:
        """A job that is added afterwards is younger than all of them, whatever order they came in."""
        target.restore_jobs([max(jobs, key=lambda job: job.order)])
        added(q, ["new"], group="g")
        target.restore_jobs(jobs)

        assert q.get_job("new").order > max(job.order for job in jobs)
        assert [job.id for job in q.jobs("waiting")] == ["d", "e", "f", "new"]

    def test_known_jobs_stay_as_they_are(self, q: BatchQueue, target: Restorable, jobs: list[Job]) -> None:
        """A job whose ID is known, also as done, is a duplicate, and nothing is changed."""
        added(q, ["d", "e"])
        taken(q, 1).settle({"d": Done()})
        before = q.get_job("e")

        answers = dict(zip(ids(jobs), target.restore_jobs(jobs), strict=True))

        assert answers == {**dict.fromkeys(ids(jobs), "added"), "d": "duplicate", "e": "duplicate"}
        assert q.get_job("e") == before
        assert target.restore_jobs(jobs) == ["duplicate"] * 6

    def test_what_cannot_be_is_refused(self, q: BatchQueue, target: Restorable, jobs: list[Job]) -> None:
        """A held job, one of another queue and one that contradicts itself are refused, and cost the others nothing."""
        sound = next(job for job in jobs if job.id == "d")
        answers = target.restore_jobs(
            [
                attrs.evolve(sound, place="active"),
                attrs.evolve(sound, queue="source"),
                attrs.evolve(sound, id=""),
                attrs.evolve(sound, order=0),
                attrs.evolve(sound, place="dead"),
                attrs.evolve(sound, due_at=1),
                attrs.evolve(sound, attempts=-1),
                sound,
            ]
        )

        wrong = [InvalidValueError, QueueMismatchError, InvalidNameError, *[InvalidValueError] * 4]
        assert [type(answer) for answer in answers[:-1]] == wrong
        assert answers[-1] == "added"
        assert places(q) == {"waiting": ["d"]}

    def test_many(self, q: BatchQueue, target: Restorable, harness: Harness) -> None:
        """As many as the harness allows are restored in one call."""
        total = harness.scale
        jobs = [Job(f"{number:06}", "q", number, order=number + 1) for number in range(total)]

        assert set(target.restore_jobs(jobs)) == {"added"}
        assert q.counts().waiting == total
        assert served(q, 3) == ["000000", "000001", "000002"]
