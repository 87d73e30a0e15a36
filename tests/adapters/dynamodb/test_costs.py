"""What each operation costs: the requests that are sent, and their units by the service's rules.

Units are counted from the requests and from the items before and after each; emulators count in
ways of their own. A row here takes less than 1 KB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.advance import advance
from batchstate.creation import create_batch, create_many
from batchstate.errors import VersionMismatchError
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.tidying import purge, retire
from batchstate.transition import ensure_record, transition, transition_many
from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage
from tests.adapters.dynamodb.conftest import FLOW, new
from tests.adapters.dynamodb.meter import Meter, spent

if TYPE_CHECKING:
    from tests.adapters.dynamodb.conftest import Table

REQUESTS = ("r-1", "r-2")


@pytest.fixture
def meter(table: Table) -> Meter:
    """A meter, before the first request."""
    return Meter(table)


def test_the_first_batch_of_a_queue(plain: DynamoDBStorage, meter: Meter) -> None:
    """The first batch of a queue also looks for and files the queue's entry: once, for everybody."""
    create_batch(plain, new())
    assert spent(meter) == ({"GetItem": 2, "PutItem": 5}, 2, 5)


def test_the_first_call_of_a_process(plain: DynamoDBStorage, table: Table, meter: Meter) -> None:
    """A process looks up the queue's entry once."""
    create_batch(plain, new())
    another = table.open(DynamoDBStorage, threads=1)
    meter.start()

    create_batch(another, new("c"))

    assert spent(meter) == ({"GetItem": 1, "PutItem": 4}, 1, 4)


@pytest.fixture
def worker(plain: DynamoDBStorage, meter: Meter) -> DynamoDBStorage:
    """A storage that has looked up its queue."""
    create_batch(plain, new("first"))
    meter.start()
    return plain


@pytest.fixture
def transactor(transacting: TransactingDynamoDBStorage, meter: Meter) -> TransactingDynamoDBStorage:
    """The same with transactions."""
    create_batch(transacting, new("first"))
    meter.start()
    return transacting


def test_three_steps(worker: DynamoDBStorage, meter: Meter) -> None:
    """Creating a batch writes its row, its record and each association; moving it, three items; a lost race, one."""
    batch = create_batch(worker, new())
    assert spent(meter) == ({"PutItem": 4}, 0, 4)

    moved = transition(worker, batch, "testing")
    assert spent(meter) == ({"UpdateItem": 1, "PutItem": 1, "DeleteItem": 1}, 0, 3)

    with pytest.raises(VersionMismatchError):
        transition(worker, batch, "testing")
    assert spent(meter) == ({"UpdateItem": 1}, 0, 1)

    transition(worker, moved, "testing")
    assert spent(meter) == ({"UpdateItem": 1, "PutItem": 1}, 0, 2)


def test_transactions(transactor: TransactingDynamoDBStorage, meter: Meter) -> None:
    """With transactions it is one request each, at twice the units, but a lost race still costs no record."""
    batch = create_batch(transactor, new())
    assert spent(meter) == ({"TransactWriteItems": 1}, 0, 8)

    moved = transition(transactor, batch, "testing")
    assert spent(meter) == ({"TransactWriteItems": 1}, 0, 6)

    transition(transactor, moved, "testing")
    assert spent(meter) == ({"TransactWriteItems": 1}, 0, 4)


def test_messages(worker: DynamoDBStorage, meter: Meter) -> None:
    """A message costs a read and its move; a redelivered one a read and the put of the record."""
    create_batch(worker, new())
    meter.start()

    assert advance(worker, "b", "testing", source="queued", lifecycle=FLOW).outcome == "moved"
    assert spent(meter) == ({"GetItem": 1, "UpdateItem": 1, "PutItem": 1, "DeleteItem": 1}, 1, 3)

    step = advance(worker, "b", "testing", source="queued", lifecycle=FLOW)
    assert step.outcome == "already"
    assert spent(meter) == ({"GetItem": 1, "PutItem": 1}, 1, 1)

    ensure_record(worker, step.batch)
    assert spent(meter) == ({"PutItem": 1}, 0, 1)


def test_reads(worker: DynamoDBStorage, meter: Meter) -> None:
    """Listing a state asks each shard, then loads each batch; finding by request asks once, then loads each attempt."""
    create_many(worker, [new(f"b-{number:02d}", f"r-{number}") for number in range(40)])
    meter.start()

    assert len(list_by_states(worker, ["queued"])) == 41
    assert spent(meter) == ({"Query": 4, "BatchGetItem": 1}, 4 + 41, 0)

    assert list_by_states(worker, ["failed"]) == []
    assert spent(meter) == ({"Query": 4}, 4, 0)

    assert len(find_by_request_id(worker, "r-1").batches) == 2
    assert spent(meter) == ({"Query": 1, "BatchGetItem": 1}, 1 + 2, 0)

    worker.get_batches(["b-01"])
    assert spent(meter) == ({"GetItem": 1}, 1, 0)


def test_many_cost_what_one_does_each(worker: DynamoDBStorage, meter: Meter) -> None:
    """Moving twenty at once costs twenty times one, side by side."""
    batches = create_many(worker, [new(f"b-{number:02d}") for number in range(20)])
    meter.start()

    transition_many(worker, [batch for batch in batches if not isinstance(batch, Exception)], "testing")

    assert spent(meter) == ({"UpdateItem": 20, "PutItem": 20, "DeleteItem": 20}, 0, 60)


def test_retiring_and_purging(worker: DynamoDBStorage, table: Table, meter: Meter) -> None:
    """Retiring files an entry and writes the row; purging looks for records, and deletes all the rest."""
    batch = create_batch(worker, new(state="merged"))
    meter.start()

    retire(worker, batch, clock=table.clock)
    assert spent(meter) == ({"PutItem": 1, "UpdateItem": 1, "DeleteItem": 1}, 0, 3)

    table.clock.advance("15d")
    purge(worker, FLOW.states, clock=table.clock)
    looked = len(FLOW.states) + 3  # the reserved states of claims as well
    assert spent(meter) == (
        {"Query": 4, "GetItem": 2, "BatchGetItem": 1, "BatchWriteItem": 2, "DeleteItem": 1},
        4 + 2 + looked,
        len(REQUESTS) + 2,
    )


def test_a_long_history_costs_more(worker: DynamoDBStorage, meter: Meter) -> None:
    """A row with twenty moves of ordinary length takes between 1 and 2 KB, and its update so many units."""
    batch = create_batch(worker, new())
    for _ in range(20):
        batch = transition(worker, batch, "testing", by="worker-7.example.net:4711", why="the build is green")
    meter.start()

    transition(worker, batch, "testing", by="worker-7.example.net:4711", why="the build is green")

    assert spent(meter) == ({"UpdateItem": 1, "PutItem": 1}, 0, 2 + 1)
