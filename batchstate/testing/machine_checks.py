"""What a storage of jobs and the model of it must agree on at every instant."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
from hypothesis.stateful import RuleBasedStateMachine, invariant

from batchstate.jobs import Job
from batchstate.testing.contract.given import paged
from batchstate.testing.model import Model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batchstate.entities import Batch
    from batchstate.job_calls import QueueCounts
    from batchstate.jobs import Place
    from batchstate.testing.harness import Harness

__all__ = ["GROUPS", "IDS", "JobChecks"]

IDS = tuple("abcdefgh")
GROUPS = ("", "g", "h")
STATES = ("claimed", "settled", "abandoned", "A", "B", "T", "S", "L")


class JobChecks(RuleBasedStateMachine):
    """One queue of a store and the model of it, without anything that happens to them.

    Attributes:
        harness: opens the storage.
        queues: numbers for the queues, one for each run.
        steps: how many calls were made, over all runs.
    """

    harness: ClassVar[Harness]
    queues: ClassVar[Iterable[int]]
    steps: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        name = f"machine-{next(iter(self.queues))}"
        self.store: Any = self.harness.open(name)
        self.model = Model(name)
        self.clock = self.harness.clock
        self.model.now = self.clock()
        self.names = count()

    def teardown(self) -> None:
        """Give back what was opened."""
        self.store.close()

    @invariant()
    def nothing_is_lost_or_made_up(self) -> None:
        """Every job that was added is done, removed, or in exactly one place."""
        model = self.model
        assert model.added == model.finished + model.removed + len(model.jobs)
        held = [name for claim in model.claims.values() for name in claim.held]
        assert sorted(held) == sorted(job.id for job in model.jobs.values() if job.place == "active")
        assert all(claim.ends == (0 if claim.held else 1) for claim in model.claims.values())

    @invariant()
    def jobs_are_where_they_should_be(self) -> None:
        """Every job is as the model has it, and listed in its place and no other."""
        found: dict[str, Job] = self.store.get_jobs(IDS)
        expected = {name: self.expected(job) for name, job in self.model.jobs.items()}
        assert {name: self.plain(job) for name, job in found.items()} == expected
        ordered = sorted(self.model.jobs.values(), key=lambda job: job.order)
        assert self.listed("dead", None) == [job.id for job in ordered if job.place == "dead"]
        for group in GROUPS:
            ours = [job.id for job in ordered if job.place == "active" and (job.group or "") == group]
            assert self.listed("active", group) == ours

    @invariant()
    def counts_are_right(self) -> None:
        """Every group's counts are those of its jobs, and never below nothing."""
        counts: QueueCounts = self.store.count_jobs()
        model = self.model
        settings_of = {name for name in (*model.ceilings, *model.paused) if name is not None}
        names = {job.group or "" for job in model.jobs.values()} | settings_of
        assert [group.group for group in counts.groups] == [name or None for name in sorted(names)]
        for group in counts.groups:
            name = group.group or ""
            places = [job.place for job in model.group(name)]
            assert min(group.waiting, group.scheduled) >= 0
            assert group.waiting + group.scheduled == places.count("waiting") + places.count("scheduled")
            assert (group.active, group.dead) == (places.count("active"), places.count("dead"))
            assert (group.ceiling, group.paused) == (model.ceiling(name), model.paused.get(name))
        assert (counts.paused, counts.ceiling) == (model.paused.get(None), model.ceilings.get(None))
        assert counts.claims == len(model.in_flight())
        assert counts.lapsed == len({claim_id for claim_id, _ in model.lapsed()})
        assert counts.now == model.now

    @invariant()
    def claims_are_right(self) -> None:
        """Every claim in flight holds what it should until when it should."""
        found = [claim for page in paged(self.store.list_claims) for claim in page]
        assert sorted(found, key=lambda claim: claim.id) == self.model.in_flight()
        for claim_id, claim in self.store.get_claims(self.model.claims).items():
            assert [job.id for job in claim.jobs] == self.model.claims[claim_id].held

    @invariant()
    def batches_end_once(self) -> None:
        """Every claim's batch is in its state, at its version, filed there and nowhere else, or retired."""
        rows: dict[str, Batch] = self.store.get_batches(self.model.claims)
        seen = {name: (row.state, row.version, row.retired_at is not None) for name, row in rows.items()}
        claims = self.model.claims
        assert seen == {name: (claim.state, claim.version, claim.retired) for name, claim in claims.items()}
        records = self.store.get_records([(state, name) for name in claims for state in STATES])
        assert {(record.batch_id, record.state) for record in records} == {
            (name, claim.state) for name, claim in claims.items() if not claim.retired
        }

    @invariant()
    def outcomes_are_remembered(self) -> None:
        """Every association has the outcome that its job had in its claim."""
        for name in IDS:
            found = {found.batch_id: found.outcome for found in self.store.list_associations(name)}
            assert found == {
                claim_id: claim.outcomes[name]
                for claim_id, claim in self.model.claims.items()
                if name in claim.outcomes
            }

    def listed(self, place: Place, group: str | None) -> list[str]:
        """List the IDs of jobs."""
        pages = paged(lambda cursor: self.store.list_jobs(place, group, cursor))
        return [job.id for page in pages for job in page if isinstance(job, Job)]

    def batch(self, batch_id: str) -> Batch:
        """Load a batch."""
        found: dict[str, Batch] = self.store.get_batches([batch_id])
        return found[batch_id]

    def expected(self, job: Job) -> Job:
        """Answer a job of the model as it is compared."""
        if job.place != "active":
            return self.plain(job)
        return self.plain(attrs.evolve(job, expires_at=self.model.deadline(self.model.claims[job.claim or ""], job.id)))

    def plain(self, job: Job) -> Job:
        """Answer a job without what is the storage's own: its number in the line, and when it looks at due ones."""
        if self.model.is_due(job):
            job = attrs.evolve(job, place="waiting", due_at=None)
        return attrs.evolve(job, order=0)
