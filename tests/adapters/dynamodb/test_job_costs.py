"""What each step on jobs costs: the requests that are sent, and their units by the service's rules.

Jobs here are small: none of their items takes more than 1 KB, save that of a claim of fifty. The README prints these
figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.job_calls import Claiming, NewJob, Settling
from tests.adapters.dynamodb.meter import Meter, spent

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


def held(store: TransactingDynamoDBStorage, meter: Meter, many: int) -> list[str]:
    """Add jobs and claim them."""
    names = added(store, meter, many)
    claimed(store, many)
    meter.start()
    return names


def all_of(names: list[str], verdict: str = "complete", delay: int = 0) -> list[Settling]:
    """Answer the same verdict for each job."""
    return [Settling(name, verdict, delay=delay) for name in names]  # type: ignore[arg-type]  # one of the verdicts


def test_adding_a_job(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """A job takes its number, a look at its guard and its group, and one transaction; a group's first takes a turn."""
    store.add_jobs([NewJob("a", "1", "g")])
    assert spent(meter) == ({"UpdateItem": 2, "BatchGetItem": 1, "TransactWriteItems": 1}, 3, 8)

    store.add_jobs([NewJob("b", "1", "g")])
    assert spent(meter) == ({"UpdateItem": 1, "BatchGetItem": 1, "TransactWriteItems": 1}, 3, 7)


def test_adding_thirty_jobs(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Thirty jobs are one transaction, of a guard and a place each and their group."""
    added(store, meter, 1)
    store.add_jobs([NewJob(f"{number}", "1", "g") for number in range(30)])
    assert spent(meter) == ({"UpdateItem": 1, "BatchGetItem": 1, "TransactWriteItems": 1}, 32, 1 + 2 * 61)


def test_a_claim_of_one(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """A claim writes its item, its batch's row, its record, its group, and of a job its place and its association."""
    added(store, meter, 2)

    assert len(claimed(store, 1).jobs) == 1

    assert spent(meter) == ({"BatchGetItem": 1, "Query": 1, "GetItem": 1, "TransactWriteItems": 1}, 6, 12)


def test_a_claim_of_fifty(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Fifty jobs are claimed in one transaction, after their associations; the claim's item takes several KB."""
    added(store, meter, 60)

    assert len(claimed(store, 50).jobs) == 50

    requests = {"BatchGetItem": 2, "Query": 1, "PutItem": 50, "TransactWriteItems": 1}
    assert spent(meter) == (requests, 56, 166)


def test_a_claim_by_turn(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Whoever claims by turn reads the groups besides, and the group served, with more to come, takes a new turn."""
    added(store, meter, 2)

    assert [job.id for job in claimed(store, 1, group=None).jobs] == ["first"]
    last = {"BatchGetItem": 1, "Query": 2, "GetItem": 1, "TransactWriteItems": 1}
    assert spent(meter) == (last, 6, 12)

    claim = store.claim_jobs(Claiming("d", 1, LEASE, "0123456789abcdef"))
    assert claim is not None
    assert [job.id for job in claim.jobs] == ["job-00"]
    assert spent(meter) == ({**last, "UpdateItem": 1}, 6, 13)


def test_a_claim_by_turn_of_many_groups(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """The groups are read in one query, so that two hundred of them cost two units more than two."""
    store.add_jobs([NewJob(f"{number}", "1", f"group-{number:03}") for number in range(200)])
    meter.start()

    assert [job.id for job in claimed(store, 1, group=None).jobs] == ["first"]

    assert spent(meter) == ({"BatchGetItem": 1, "Query": 2, "GetItem": 1, "TransactWriteItems": 1}, 8, 12)


def test_a_claim_of_nothing(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """A claim that finds nothing writes nothing."""
    assert store.claim_jobs(Claiming("c", 1, LEASE, "0123456789abcdef", "g")) is None
    assert spent(meter) == ({"BatchGetItem": 1}, 4, 0)

    claimed(store, 1, group=None)
    meter.start()
    assert store.claim_jobs(Claiming("d", 1, LEASE, "0123456789abcdef")) is None
    assert spent(meter) == ({"BatchGetItem": 1, "Query": 1}, 4, 0)


@pytest.mark.parametrize(("size", "kilobytes"), [(1, 1), (50, 5)])
def test_extending(store: TransactingDynamoDBStorage, meter: Meter, size: int, kilobytes: int) -> None:
    """A claim of any size is extended by one write, at the units of its size; so is one of its jobs, after a read."""
    names = held(store, meter, size)

    assert store.extend_claim("c", LEASE).held == size
    assert spent(meter) == ({"UpdateItem": 1}, 0, kilobytes)

    assert store.extend_job("c", names[0], LEASE).held == 1
    assert spent(meter) == ({"GetItem": 1, "UpdateItem": 1}, -(-kilobytes // 4), kilobytes)


def test_settling_one(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Settling the last job writes its guard, its memory and its association, the claim's end and its batch's."""
    names = held(store, meter, 1)

    assert store.settle_jobs("c", all_of(names), keep_done=1000).finished

    assert spent(meter) == ({"BatchGetItem": 2, "TransactWriteItems": 1}, 5, 16)


def test_settling_one_that_is_not_the_last(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Settling one of two jobs writes the claim anew."""
    names = held(store, meter, 2)

    assert not store.settle_jobs("c", all_of(names[:1]), keep_done=1000).finished

    assert spent(meter) == ({"BatchGetItem": 2, "TransactWriteItems": 1}, 4, 10)


def test_retrying_one(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """A job that is retried later is written to its place, and its guard learns when it is due."""
    names = held(store, meter, 1)

    assert store.settle_jobs("c", all_of(names, "retry", 1000), keep_done=1000).finished

    assert spent(meter) == ({"BatchGetItem": 2, "TransactWriteItems": 1}, 5, 16)


def test_settling_fifty(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Fifty jobs are completed in two transactions."""
    names = held(store, meter, 50)

    assert store.settle_jobs("c", all_of(names), keep_done=1000).finished

    assert spent(meter) == ({"BatchGetItem": 4, "TransactWriteItems": 2}, 79, 324)


def test_releasing_fifty(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """Fifty jobs are given back in two transactions, and their group, which had run dry, takes a turn."""
    names = held(store, meter, 50)

    assert store.settle_jobs("c", all_of(names, "release"), keep_done=1000).finished

    assert spent(meter) == ({"BatchGetItem": 4, "UpdateItem": 1, "TransactWriteItems": 2}, 64, 223)


def test_settling_again(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """A settlement that is sent again reads its outcomes and writes nothing."""
    names = held(store, meter, 1)
    store.settle_jobs("c", all_of(names), keep_done=1000)
    meter.start()

    assert store.settle_jobs("c", all_of(names), keep_done=1000).finished

    assert spent(meter) == ({"BatchGetItem": 1, "GetItem": 1}, 3, 0)


def test_sweeping(store: TransactingDynamoDBStorage, meter: Meter, table: Table) -> None:
    """A sweep reads the claims in flight, which is all where none lapsed, and returns fifty in two transactions."""
    held(store, meter, 50)
    store.sweep_jobs(100, max_stalls=1)
    assert spent(meter) == ({"Query": 4}, 5, 0)

    table.clock.advance("30s")
    assert len(store.sweep_jobs(100, max_stalls=1).returned) == 50

    requests = {"Query": 4, "BatchGetItem": 2, "GetItem": 2, "UpdateItem": 1, "TransactWriteItems": 2}
    assert spent(meter) == (requests, 64, 223)


def test_reviving_and_removing(store: TransactingDynamoDBStorage, meter: Meter) -> None:
    """A dead job is revived, and a waiting one removed, after a look at its guard, its group and its places."""
    names = held(store, meter, 1)
    store.settle_jobs("c", all_of(names, "dead"), keep_done=1000)
    meter.start()

    assert store.revive_jobs(names) == [None]
    assert spent(meter)[0] == {"GetItem": 1, "BatchGetItem": 2, "UpdateItem": 1, "TransactWriteItems": 1}

    assert store.remove_jobs(names) == [None]
    assert spent(meter) == ({"GetItem": 1, "BatchGetItem": 2, "TransactWriteItems": 1}, 5, 6)
