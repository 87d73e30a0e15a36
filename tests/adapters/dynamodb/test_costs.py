"""What each operation costs: the requests that are sent, and their units by the service's rules.

Units are counted from the requests and from the items before and after each; emulators count in
ways of their own. A row here takes less than 1 KB.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.advance import advance
from batchstate.creation import create_batch, create_many
from batchstate.errors import VersionMismatchError
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.tidying import purge, retire
from batchstate.transition import ensure_record, transition, transition_many
from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage
from tests.adapters.dynamodb.conftest import FLOW, TABLE, new
from tests.adapters.dynamodb.sizes import item_size, read_units, write_units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.adapters.dynamodb.conftest import Table

REQUESTS = ("r-1", "r-2")


class Meter:
    """Counts units: of each write by its item before and after, of each read by what it answers.

    Args:
        table: the table whose client is looked at.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._params: Mapping[str, Any] = {}
        self._before: dict[tuple[str, str], int] = {}
        self._busy = False
        self._done = True
        self.requests: Counter[str] = Counter()
        self.reads = 0
        self.writes = 0
        events = table.client.meta.events
        events.register("provide-client-params.dynamodb", self._begin)
        events.register("after-call.dynamodb", self._end)

    def start(self) -> None:
        """Count anew from here."""
        self.requests.clear()
        self.reads = self.writes = 0
        self._before = self._sizes()

    def _begin(self, params: Mapping[str, Any], model: Any, **_: object) -> None:  # noqa: ANN401 - botocore's own
        if not self._busy:
            self._params = params
            self.requests[model.name] += 1

    def _end(self, parsed: Mapping[str, Any], model: Any, **_: object) -> None:  # noqa: ANN401 - botocore's own
        if self._busy:
            return
        params = self._params
        self._done = "Error" not in parsed
        if model.name == "GetItem":
            self.reads += read_units(item_size(parsed.get("Item", {})))
        elif model.name == "BatchGetItem":
            found = {_key(item): item for item in parsed["Responses"][TABLE]}
            for key in params["RequestItems"][TABLE]["Keys"]:
                self.reads += read_units(item_size(found.get(_key(key), {})))
        elif model.name == "Query":
            self.reads += read_units(sum(item_size(item) for item in parsed["Items"]))
        elif model.name == "TransactWriteItems":
            self.writes += 2 * self._written([next(iter(action.values())) for action in params["TransactItems"]])
        elif model.name == "BatchWriteItem":
            self.writes += self._written([write["DeleteRequest"] for write in params["RequestItems"][TABLE]])
        else:
            self.writes += self._written([params])

    def _written(self, writes: Sequence[Mapping[str, Any]]) -> int:
        before = self._before
        after = self._before = self._sizes_after(writes)
        keys = [_key(write.get("Key") or write["Item"]) for write in writes]
        return sum(write_units(max(before.get(key, 0), after.get(key, 0))) for key in keys)

    def _sizes_after(self, writes: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], int]:
        """Answer all sizes after these writes; they are only looked up where they do not follow from the request."""
        if not self._done or any("UpdateExpression" in write for write in writes):
            return self._sizes()
        put = {_key(write["Item"]): item_size(write["Item"]) for write in writes if "Item" in write}
        gone = {_key(write["Key"]) for write in writes if "Key" in write}
        return {key: size for key, size in {**self._before, **put}.items() if key not in gone}

    def _sizes(self) -> dict[tuple[str, str], int]:
        self._busy = True
        try:
            return {_key(item): item_size(item) for item in self._table.items()}
        finally:
            self._busy = False


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


@pytest.fixture
def meter(table: Table) -> Meter:
    """A meter, before the first request."""
    return Meter(table)


def spent(meter: Meter) -> tuple[dict[str, int], int, int]:
    """Answer the requests, the read units and the write units since the start, and start anew."""
    answer = dict(meter.requests), meter.reads, meter.writes
    meter.start()
    return answer


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
