"""What each step on jobs costs: the requests that are sent, and their units by the service's rules.

Jobs here are small: none of their items takes more than 1 KB, save that of a claim of fifty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.job_calls import Claiming, NewJob, Settling
from tests.adapters.dynamodb.test_costs import Meter, spent

if TYPE_CHECKING:
    from batchstate.job_calls import Claimed
    from batchstate_dynamodb import TransactingDynamoDBStorage
    from tests.adapters.dynamodb.conftest import Table

LEASE = 30_000


@pytest.fixture
def meter(table: Table) -> Meter:
    """A meter, before the first request."""
    return Meter(table)


@pytest.fixture
def store(transacting: TransactingDynamoDBStorage, meter: Meter) -> TransactingDynamoDBStorage:
    """A storage that has looked up its queue, which has a job."""
    transacting.add_jobs([NewJob("first", "1", "another")])
    meter.start()
    return transacting


def added(store: TransactingDynamoDBStorage, meter: Meter, many: int) -> list[str]:
    """Add jobs."""
    names = [f"job-{number:02}" for number in range(many)]
    assert store.add_jobs([NewJob(name, '{"n":1}', "g") for name in names]) == ["added"] * many
    meter.start()
    return names


def claimed(store: TransactingDynamoDBStorage, limit: int, *, group: str | None = "g") -> Claimed:
    """Claim."""
    claim = store.claim_jobs(Claiming("c", limit, LEASE, "0123456789abcdef", group))
    assert claim is not None
    return claim


def completing(names: list[str]) -> list[Settling]:
    """Answer verdicts that complete jobs."""
    return [Settling(name, "complete") for name in names]


def test_adding_a_job(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """A job takes its number, a look at its guard and its group, and one transaction; the first takes a turn too."""
    store.add_jobs([NewJob("a", "1", "g")])
    assert spent(meter) == ({"UpdateItem": 2, "GetItem": 1, "BatchGetItem": 1, "TransactWriteItems": 1}, 3, 8)

    store.add_jobs([NewJob("b", "1", "g")])
    assert spent(meter) == ({"UpdateItem": 1, "GetItem": 1, "BatchGetItem": 1, "TransactWriteItems": 1}, 3, 7)


def test_adding_thirty_jobs(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Thirty jobs are one transaction, of a guard and a place each and their group."""
    store.add_jobs([NewJob(f"{number}", "1", "g") for number in range(30)])
    assert spent(meter) == ({"UpdateItem": 2, "BatchGetItem": 2, "TransactWriteItems": 1}, 32, 2 + 2 * 61)


def test_a_claim_of_one(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """A claim writes its item, its batch's row, its record, its group, and of a job its place and its association."""
    added(store, meter, 2)

    assert len(claimed(store, 1).jobs) == 1

    assert spent(meter) == ({"BatchGetItem": 2, "Query": 1, "GetItem": 1, "TransactWriteItems": 1}, 7, 12)


def test_a_claim_of_fifty(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Fifty jobs are claimed in one transaction, after their associations; the claim's item takes several KB."""
    added(store, meter, 60)

    assert len(claimed(store, 50).jobs) == 50

    requests, reads, writes = spent(meter)
    assert requests == {"BatchGetItem": 3, "Query": 1, "PutItem": 50, "TransactWriteItems": 1}
    assert (reads, writes) == (57, 166)


def test_a_claim_by_turn(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Whoever claims by turn reads the groups, and the group served takes a new turn."""
    added(store, meter, 2)

    assert [job.id for job in claimed(store, 1, group=None).jobs] == ["first"]

    assert spent(meter)[0] == {"BatchGetItem": 1, "Query": 2, "GetItem": 1, "TransactWriteItems": 1}


def test_a_claim_of_nothing(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """A claim that finds nothing writes nothing."""
    assert store.claim_jobs(Claiming("c", 1, LEASE, "0123456789abcdef", "g")) is None
    assert spent(meter) == ({"BatchGetItem": 2}, 5, 0)


@pytest.mark.parametrize("size", [1, 50])
def test_extending(store: TransactingDynamoDBStorage, meter: Meter, size: int) -> None:
    """A claim of any size is extended by one write."""
    added(store, meter, size)
    claimed(store, size)
    meter.start()

    assert store.extend_claim("c", LEASE).held == size

    assert spent(meter)[0] == {"UpdateItem": 1}


def test_settling_one(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Settling the last job writes its guard, its memory and its association, the claim's end and its batch's."""
    names = added(store, meter, 1)
    claimed(store, 1)
    meter.start()

    assert store.settle_jobs("c", completing(names), keep_done=1000).finished

    assert spent(meter) == ({"GetItem": 3, "BatchGetItem": 1, "TransactWriteItems": 1}, 5, 16)


def test_settling_fifty(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Fifty jobs are completed in two transactions."""
    names = added(store, meter, 50)
    claimed(store, 50)
    meter.start()

    assert store.settle_jobs("c", completing(names), keep_done=1000).finished

    requests, reads, writes = spent(meter)
    assert requests == {"GetItem": 3, "BatchGetItem": 4, "TransactWriteItems": 2}
    assert (reads, writes) == (78, 324)


def test_sweeping(store: TransactingDynamoDBStorage, meter: Meter, table: Table) -> None:
    """A sweep reads the claims in flight, which is all where none lapsed, and returns fifty in two transactions."""
    added(store, meter, 50)
    claimed(store, 50)
    meter.start()
    store.sweep_jobs(100, max_stalls=1)
    assert spent(meter)[0] == {"Query": 4}

    table.clock.advance("30s")
    assert len(store.sweep_jobs(100, max_stalls=1).returned) == 50

    assert spent(meter)[0]["TransactWriteItems"] == 2
