"""The DynamoDB emulators that the tests stand on."""

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import boto3
import botocore.exceptions
import pytest
from botocore.config import Config

from tests.servers.available import Server, need
from tests.servers.dynamo_servers import DynaliteServer, DynamoEndpoint, MotoServer

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

IMPATIENT = Config(retries={"total_max_attempts": 1}, connect_timeout=1)


@pytest.mark.parametrize(("server", "make"), [("moto", MotoServer), ("dynalite", DynaliteServer)])
def test_emulator_answers_and_is_gone_after_its_stop(server: str, make: type[MotoServer | DynaliteServer]) -> None:
    """A started emulator keeps items with their conditions, and ends when stopped."""
    need(Server(server), ours=True)
    with make() as emulator:
        client = emulator.client(IMPATIENT)
        create_table(client, "table")
        put_once(client, "table")
        with pytest.raises(client.exceptions.ConditionalCheckFailedException):
            put_once(client, "table")
    assert not emulator.process.running
    with pytest.raises(botocore.exceptions.EndpointConnectionError):
        client.list_tables()


def test_restart_empties_an_emulator() -> None:
    """A restarted emulator is on the same port and knows no table."""
    need(Server.DYNALITE, ours=True)
    with DynaliteServer() as emulator:
        client = emulator.client()
        create_table(client, "table")
        emulator.restart()
        assert client.list_tables()["TableNames"] == []


@pytest.mark.parametrize("fixture", ["moto_server", "dynalite_server"])
def test_url_is_all_that_a_client_needs(fixture: str, request: pytest.FixtureRequest) -> None:
    """A client made from nothing but the URL's region and endpoint reaches the emulator."""
    emulator: DynamoEndpoint = request.getfixturevalue(fixture)
    url = urlsplit(emulator.url("by-url", shards=4))
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert (url.scheme, url.netloc, query["shards"]) == ("dynamodb", "by-url", "4")
    create_table(emulator.client(), "by-url")
    client = boto3.client("dynamodb", region_name=query["region"], endpoint_url=query["endpoint"])
    assert "by-url" in client.list_tables()["TableNames"]
    client.delete_table(TableName="by-url")


@pytest.mark.parametrize("_time", ["first", "second"])
def test_emulator_in_this_process_begins_empty(_time: str, moto_client: "DynamoDBClient") -> None:
    """Each test finds the emulator inside the process without the tables of the one before."""
    assert moto_client.list_tables()["TableNames"] == []
    create_table(moto_client, "table")


def create_table(client: "DynamoDBClient", name: str) -> None:
    """Create a table with a partition key and a sort key."""
    client.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 0, "MaxAttempts": 500})


def put_once(client: "DynamoDBClient", table: str) -> None:
    """Put one item unless it is there."""
    client.put_item(
        TableName=table,
        Item={"pk": {"S": "a"}, "sk": {"S": "b"}},
        ConditionExpression="attribute_not_exists(pk)",
    )


@pytest.mark.parametrize("fixture", ["moto_client", "moto_server"])
def test_a_cancelled_transaction_leaves_everything_as_it_was(fixture: str, request: pytest.FixtureRequest) -> None:
    """Of a transaction with a condition that fails, no put, update or deletion stays, in whatever order they come."""
    made = request.getfixturevalue(fixture)
    client: DynamoDBClient = made.client() if isinstance(made, DynamoEndpoint) else made
    create_table(client, "cancelled")
    items: list[Any] = [
        {"pk": {"S": name}, "sk": {"S": "s"}, "n": {"L": [{"N": "1"}]}} for name in ("kept", "updated", "deleted")
    ]
    for item in items:
        client.put_item(TableName="cancelled", Item=item)
    put, kept, updated, deleted = (
        {"pk": {"S": name}, "sk": {"S": "s"}} for name in ("put", "kept", "updated", "deleted")
    )
    actions: list[Any] = [
        {"Put": {"Item": put}},
        {
            "Update": {
                "Key": updated,
                "UpdateExpression": "SET n[0] = :m",
                "ExpressionAttributeValues": {":m": {"N": "2"}},
            }
        },
        {"ConditionCheck": {"Key": kept, "ConditionExpression": "attribute_not_exists(pk)"}},
        {"Delete": {"Key": deleted}},
    ]
    named: list[Any] = [{verb: {"TableName": "cancelled", **one} for verb, one in action.items()} for action in actions]

    with pytest.raises(client.exceptions.TransactionCanceledException):
        client.transact_write_items(TransactItems=named)

    found = [dict(item) for item in client.scan(TableName="cancelled", ConsistentRead=True)["Items"]]
    assert sorted(found, key=str) == sorted(items, key=str)
    client.delete_table(TableName="cancelled")
