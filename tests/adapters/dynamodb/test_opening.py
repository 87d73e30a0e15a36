"""Opening by URL, clients of our own and borrowed ones, forks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.creation import create_batch
from batchstate.errors import InvalidNameError, InvalidValueError
from batchstate.queue import open_queue
from batchstate.storage import AtomicCreates, AtomicMoves
from batchstate.urls import open_storage
from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage, make_client
from tests.adapters.dynamodb.conftest import FLOW, TABLE, new

if TYPE_CHECKING:
    from tests.adapters.dynamodb.conftest import Table
    from tests.servers.dynamo_servers import DynamoEndpoint


def test_a_url_is_all_it_takes(dynalite_server: DynamoEndpoint) -> None:
    """A queue opened by URL creates its table where asked, and moves a batch."""
    with open_queue("merges", dynalite_server.url("by-url", create="true"), lifecycle=FLOW) as queue:
        queue.create("b", requests=["r"])
        assert queue.advance("b", "testing", source="queued").outcome == "moved"
    with open_queue("merges", dynalite_server.url("by-url"), lifecycle=FLOW) as queue:
        assert [batch.id for batch in queue.list_by_states(["testing"])] == ["b"]
    dynalite_server.client().delete_table(TableName="by-url")


def test_the_kind_is_chosen_by_the_url(dynalite_server: DynamoEndpoint) -> None:
    """A storage has the capabilities of transactions only where they are asked for."""
    plain = open_storage(dynalite_server.url("any"), queue="q")
    transacting = open_storage(dynalite_server.url("any", transact="true"), queue="q")

    assert not isinstance(plain, (AtomicMoves, AtomicCreates))
    assert isinstance(transacting, TransactingDynamoDBStorage)
    assert isinstance(transacting, AtomicMoves)
    assert isinstance(transacting, AtomicCreates)


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("dynamodb://", "a table is named"),
        ("dynamodb://table/path", "a table is named"),
        ("dynamodb://user:secret@table", "a table is named"),
        ("dynamodb://table?regoin=eu-west-1", "regoin"),
        ("dynamodb://table?shards=many", "shards"),
        ("dynamodb://table?shards=0", "shards"),
        ("dynamodb://table?threads=0", "threads"),
        ("dynamodb://table?endpoint=localhost:8000", "endpoint"),
    ],
)
def test_a_url_that_is_wrong_says_where(url: str, what: str) -> None:
    """An unknown option, a wrong value or a missing table is refused at once, and no secret is repeated."""
    with pytest.raises(InvalidValueError, match=what) as caught:
        open_storage(url, queue="q")

    assert "secret" not in str(caught.value)


def test_no_region_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a region there is no client, and the error says so."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(InvalidValueError, match="region"):
        open_storage("dynamodb://table", queue="q").get_batches(["b"])


def test_an_unknown_profile_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile that is not configured is named."""
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(InvalidValueError, match="nobodys"):
        open_storage("dynamodb://table?profile=nobodys", queue="q").get_batches(["b"])


def test_a_queue_without_a_name_is_refused(table: Table) -> None:
    """A storage is bound to a queue, which has a name."""
    with pytest.raises(InvalidNameError):
        table.open(DynamoDBStorage, queue="")


def test_a_borrowed_client_is_left_open(table: Table) -> None:
    """Closing a storage does not close the client that it was given."""
    closed: list[str] = []
    table.client.close = lambda: closed.append("closed")  # type: ignore[method-assign]  # to see it

    with table.open(DynamoDBStorage) as store:
        create_batch(store, new())

    assert closed == []


def test_a_client_of_our_own_is_made_once_and_closed(table: Table) -> None:
    """A client that the storage makes is made when it is first needed, serves all threads, and is closed with it."""
    made: list[Any] = []
    closed: list[str] = []

    def make() -> Any:
        client = make_client(region="eu-west-1")
        client.close = lambda: closed.append("closed")  # type: ignore[method-assign]  # to see it
        made.append(client)
        return client

    store = table.open(DynamoDBStorage, client=make)
    assert made == []
    store.get_batches([f"b-{number}" for number in range(500)])
    store.close()
    store.close()

    assert len(made) == 1
    assert closed == ["closed"]


def test_our_client_leaves_all_retries_to_us() -> None:
    """A client of ours sends once, and has a connection for each thread."""
    config: Any = make_client(region="eu-west-1", threads=16).meta.config
    assert config.max_pool_connections == 16
    assert config.retries["total_max_attempts"] == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_has_threads_and_connections_of_its_own(dynalite_server: DynamoEndpoint) -> None:
    """A storage that was used goes on working in a forked process, which has none of its threads."""
    store = open_storage(dynalite_server.url("forked", create="true"), queue="q")
    ids = [f"b-{number}" for number in range(300)]
    store.get_batches(ids)
    child = os.fork()
    if child == 0:
        try:
            store.get_batches(ids)
            create_batch(store, new("child"))
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert set(store.get_batches([*ids, "child"])) == {"child"}
    store.close()
    dynalite_server.client().delete_table(TableName="forked")


def test_a_storage_does_not_show_its_secrets(table: Table) -> None:
    """What a storage shows of itself is its queue and its table."""
    assert repr(table.open(DynamoDBStorage)) == f"<DynamoDBStorage of queue 'q' in table '{TABLE}'>"
