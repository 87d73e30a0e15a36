"""Many workers on one group and on many, in a time of their own: how far they get, and what it takes."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from batchstate.checking import check_batches
from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate.job_checking import check_jobs
from batchstate_dynamodb import TransactingDynamoDBStorage
from tests.adapters.dynamodb.virtual import FarClient, VirtualTime

if TYPE_CHECKING:
    from tests.adapters.dynamodb.conftest import Table

WORKERS = 8
ALONE = 0.075
"""The seconds that one worker takes for a claim and a settlement: seven requests of some ten milliseconds."""


class Crew:
    """Workers that claim and complete jobs until there are none.

    Args:
        table: their table.

    Attributes:
        time: how long they took.
        claimed: how often each job was claimed.
    """

    def __init__(self, table: Table) -> None:
        self.time = VirtualTime()
        self.claimed: Counter[str] = Counter()
        self._table = table
        self._far = FarClient(table.client, self.time)

    def work(self, *groups: str | None, limit: int = 1) -> None:
        """Let a worker for each of these claim from the group, or by turn, each on a storage of its own."""
        random.seed(1)
        self._table.watch.forget()
        self.time.run(*[partial(self._work, name, limit, group) for name, group in enumerate(groups)])

    def _work(self, name: int, limit: int, group: str | None) -> None:
        store = self._table.open(TransactingDynamoDBStorage, client=self._far, sleep=self.time.sleep, threads=1)
        number = 0
        while claim := store.claim_jobs(Claiming(f"c-{name}-{number}", limit, 30_000, "0123456789abcdef", group)):
            number += 1
            self.claimed.update(job.id for job in claim.jobs)
            settlings = [Settling(job.id, "complete") for job in claim.jobs]
            assert store.settle_jobs(claim.batch.id, settlings, keep_done=0).finished


def added(store: TransactingDynamoDBStorage, many: int, groups: int) -> list[str]:
    """Add jobs, spread over groups."""
    names = [f"job-{number:03}" for number in range(many)]
    store.add_jobs([NewJob(name, "1", f"g{place % groups}") for place, name in enumerate(names)])
    return names


@pytest.mark.parametrize("group", ["g0", None], ids=["by group", "by turn"])
def test_claimers_on_one_group_get_on(transacting: TransactingDynamoDBStorage, table: Table, group: str | None) -> None:
    """Eight claimers of one group get each job once, sooner than one alone would, and who loses a race tries again.

    A step is lost only to another that was written meanwhile, so that for each that is written at most one a worker
    is sent; and on the average half of them.
    """
    names = added(transacting, 32, 1)
    crew = Crew(table)

    crew.work(*[group] * WORKERS)

    assert crew.claimed == dict.fromkeys(names, 1)
    steps = 2 * len(names)
    assert table.watch.counts["TransactWriteItems"] <= steps * WORKERS / 2
    assert len(table.watch.sent) <= 35 * len(names)
    assert crew.time.now < len(names) * ALONE * 1.25
    assert list(check_jobs(transacting)) == []


def test_claimers_by_turn_go_round_each_other(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """Where there are as many groups as claimers, those who claim by turn are done in half the time of one group's."""
    names = added(transacting, 32, WORKERS)
    crew = Crew(table)

    crew.work(*[None] * WORKERS)

    assert crew.claimed == dict.fromkeys(names, 1)
    assert crew.time.now < len(names) * ALONE / 2
    assert len(table.watch.sent) <= 20 * len(names)


def test_claimers_of_different_groups_do_not_meet(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """Who claims from groups that nobody else claims from is never held up."""
    names = added(transacting, 32, 4)
    crew = Crew(table)

    crew.work("g0", "g1", "g2", "g3")

    assert crew.claimed == dict.fromkeys(names, 1)
    assert table.watch.counts["TransactWriteItems"] == 2 * len(names)
    assert crew.time.now < len(names) / 4 * ALONE * 1.25


def test_large_claims_that_lose_leave_nothing_to_see(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """Claims whose associations are written before them leave some when they lose; nobody sees them."""
    names = added(transacting, 120, 1)
    crew = Crew(table)

    crew.work(*["g0"] * 4, limit=60)

    assert crew.claimed == dict.fromkeys(names, 1)
    assert table.watch.counts["PutItem"] > len(names)
    assert [*check_batches(transacting, None, settled_for=0, clock=table.clock), *check_jobs(transacting)] == []
