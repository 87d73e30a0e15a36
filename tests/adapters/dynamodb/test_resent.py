"""Replies that are lost: the write was applied, and is sent again by the client or by us."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.advance import advance
from batchstate.creation import create_batch
from batchstate.listing import list_by_states
from batchstate.tidying import purge, retire
from batchstate.transition import transition
from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage
from tests.adapters.dynamodb.conftest import FLOW, new
from tests.servers.dynamo_servers import DynamoEndpoint
from tests.servers.proxy import DroppingProxy

if TYPE_CHECKING:
    from batchstate.entities import Batch
    from tests.adapters.dynamodb.conftest import Table


def records(store: DynamoDBStorage) -> dict[str, int]:
    """Answer the records of batch `b`."""
    return {record.state: record.version for record in store.get_records([(state, "b") for state in FLOW.states])}


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "DeleteItem"])
def test_a_write_whose_reply_was_lost_is_applied_once(plain: DynamoDBStorage, table: Table, operation: str) -> None:
    """A creation and a move whose replies are lost are sent again, succeed, and are done once."""
    table.fakes.lose_reply(operation, times=4)
    batch = create_batch(plain, new())
    moved = transition(plain, batch, "testing", lifecycle=FLOW)

    assert moved.version == 2
    assert plain.get_batches(["b"]) == {"b": moved}
    assert len(moved.history) == 2
    assert records(plain) == {"testing": 2}
    assert [association.batch_id for association in plain.list_associations("r-1")] == ["b"]


def test_a_transaction_whose_reply_was_lost_is_applied_once(
    transacting: TransactingDynamoDBStorage, table: Table
) -> None:
    """The same with transactions."""
    table.fakes.lose_reply("TransactWriteItems")
    batch = create_batch(transacting, new())
    table.fakes.lose_reply("TransactWriteItems")
    moved = transition(transacting, batch, "testing", lifecycle=FLOW)

    assert transacting.get_batches(["b"]) == {"b": moved}
    assert records(transacting) == {"testing": 2}


def test_a_retirement_whose_reply_was_lost_is_listed_once(either: DynamoDBStorage, table: Table) -> None:
    """A batch retired twice by a lost reply is listed among the retired once, and purged."""
    batch = create_batch(either, new(state="merged"))
    for operation in ("PutItem", "UpdateItem", "TransactWriteItems"):
        table.fakes.lose_reply(operation)

    retired = retire(either, batch, lifecycle=FLOW, clock=table.clock)

    assert list(either.list_retired().items) == [retired]
    table.clock.advance("30d")
    assert purge(either, FLOW.states, clock=table.clock).batches == 1
    assert table.held() == [("#queues", "q")]


@pytest.mark.parametrize("fixture", ["moto_server", "dynalite_server"])
def test_a_clients_own_retries_apply_once(fixture: str, request: pytest.FixtureRequest) -> None:
    """A borrowed client that sends again by itself, unseen by us, moves a batch once."""
    server: DynamoEndpoint = request.getfixturevalue(fixture)
    direct = server.client()
    name = f"retries-{fixture.replace('_', '-')}"
    from batchstate_dynamodb import create_table  # noqa: PLC0415 - only this test needs it

    create_table(direct, name)
    host, _, port = server.endpoint.removeprefix("http://").partition(":")
    with DroppingProxy(host, int(port)) as proxy:
        store = DynamoDBStorage(name, "q", client=DynamoEndpoint(proxy.through(server.endpoint)).client())
        batch = create_batch(store, new())
        proxy.drop_next_reply("UpdateItem")
        moved = transition(store, batch, "testing", lifecycle=FLOW)
        names = proxy.names()
        store.close()

    assert names.count("UpdateItem") == 2
    store = DynamoDBStorage(name, "q", client=direct)
    assert store.get_batches(["b"]) == {"b": moved}
    assert records(store) == {"testing": 2}
    store.close()
    direct.delete_table(TableName=name)


def test_both_kinds_work_on_one_queue(plain: DynamoDBStorage, transacting: TransactingDynamoDBStorage) -> None:
    """Workers with transactions and without pass a batch to each other, and nothing is left behind."""
    batch: Batch = create_batch(transacting, new())
    batch = transition(plain, batch, "testing", lifecycle=FLOW)
    batch = transition(transacting, batch, "merging", lifecycle=FLOW)
    batch = transition(plain, batch, "merged", lifecycle=FLOW)

    assert list_by_states(transacting, FLOW.states, lifecycle=FLOW) == [batch]
    assert records(plain) == {"merged": 4}
    assert advance(transacting, "b", "merged", source="merging", lifecycle=FLOW).outcome == "already"
