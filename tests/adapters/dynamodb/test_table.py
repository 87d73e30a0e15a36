"""The table: made once, checked, and described to those who make it otherwise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.creation import create_batch
from batchstate.errors import InvalidValueError, StorageUnavailableError
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.provisioning import Described, Provisioned
from batchstate.tidying import purge, reconcile, retire
from batchstate.transition import transition
from batchstate.urls import StorageURL
from batchstate_dynamodb import DynamoDBStorage, check_table, cloudformation, create_table, iam_policy
from tests.adapters.dynamodb.conftest import FLOW, TABLE, new
from tests.adapters.dynamodb.fakes import failure

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from tests.adapters.dynamodb.conftest import Table
    from tests.servers.dynamo_servers import DynamoEndpoint


def test_a_table_is_made_once(moto_client: DynamoDBClient) -> None:
    """Making a table that is there changes nothing and says so; what was made has nothing wrong with it."""
    assert create_table(moto_client, "new")
    assert not create_table(moto_client, "new")

    assert check_table(moto_client, "new") == []
    table = moto_client.describe_table(TableName="new")["Table"]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert not table.get("GlobalSecondaryIndexes")
    assert not table.get("LocalSecondaryIndexes")


@pytest.mark.parametrize("fixture", ["moto_server", "dynalite_server"])
def test_a_table_is_made_and_checked_everywhere(fixture: str, request: pytest.FixtureRequest) -> None:
    """Every emulator makes the same table, and it can be used when the call returns."""
    server: DynamoEndpoint = request.getfixturevalue(fixture)
    client = server.client()

    assert create_table(client, "made")
    assert check_table(client, "made") == []

    client.delete_table(TableName="made")


def test_recovery_is_an_option(moto_client: DynamoDBClient) -> None:
    """Point-in-time recovery is switched on where asked, also for a table that is there."""

    def recovery() -> str:
        backups = moto_client.describe_continuous_backups(TableName="new")["ContinuousBackupsDescription"]
        return backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]

    create_table(moto_client, "new")
    assert recovery() == "DISABLED"

    create_table(moto_client, "new", recovery=True)
    assert recovery() == "ENABLED"


def test_a_check_says_what_is_wrong(moto_client: DynamoDBClient) -> None:
    """A missing table, another key and items that expire are each told in a sentence."""
    assert check_table(moto_client, "none") == ["there is no table 'none'"]

    moto_client.create_table(
        TableName="other",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    [problem] = check_table(moto_client, "other")
    assert "'id'" in problem
    assert "pk" in problem

    create_table(moto_client, "expiring")
    moto_client.update_time_to_live(
        TableName="expiring", TimeToLiveSpecification={"Enabled": True, "AttributeName": "updated_at"}
    )
    [problem] = check_table(moto_client, "expiring")
    assert "'updated_at'" in problem


def test_errors_while_making_are_ours(table: Table) -> None:
    """What the service says against a table is an error of ours."""
    table.fakes.next("CreateTable", failure("AccessDeniedException"))
    with pytest.raises(StorageUnavailableError, match="AccessDenied"):
        create_table(table.client, "t")

    table.fakes.next("CreateTable", failure("ValidationException", "TableName must be at least 3 characters"))
    with pytest.raises(InvalidValueError, match="3 characters"):
        create_table(table.client, "t")


def test_the_template_makes_the_same_table(moto_client: DynamoDBClient) -> None:
    """A table made from the CloudFormation template is as ours: no index, on demand, with recovery as asked."""
    [resource] = json.loads(cloudformation("templated"))["Resources"].values()
    properties: dict[str, Any] = resource["Properties"]
    assert resource["Type"] == "AWS::DynamoDB::Table"
    assert resource["DeletionPolicy"] == "Retain"
    assert properties.pop("PointInTimeRecoverySpecification") == {"PointInTimeRecoveryEnabled": True}

    moto_client.create_table(**properties)

    assert check_table(moto_client, "templated") == []
    other = json.loads(cloudformation("t", recovery=False))["Resources"]["BatchStateTable"]["Properties"]
    assert other["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": False}


def test_the_policy_allows_what_is_sent_and_nothing_else(either: DynamoDBStorage, table: Table) -> None:
    """A worker's policy names the operations that a whole life sends, on one table; scanning and set-up on request."""
    batch = create_batch(either, new())
    create_batch(either, new("large", *(f"r-{number}" for number in range(99))))
    batch = transition(either, batch, "testing")
    list_by_states(either, FLOW.states)
    find_by_request_id(either, "r-1")
    reconcile(either, FLOW.states)
    retire(either, transition(either, batch, "merged"), clock=table.clock)
    table.clock.advance("15d")
    purge(either, FLOW.states, clock=table.clock)
    either.list_queues()
    [statement] = json.loads(iam_policy(TABLE, region="eu-west-1", account="123456789012"))["Statement"]

    sent = {operation for operation in table.watch.counts if operation != "TransactWriteItems"}
    assert sent <= {action.removeprefix("dynamodb:") for action in statement["Action"]}
    assert statement["Resource"] == f"arn:aws:dynamodb:eu-west-1:123456789012:table/{TABLE}"
    assert "dynamodb:Scan" not in statement["Action"]
    [wide] = json.loads(iam_policy(TABLE, set_up=True, scan=True))["Statement"]
    assert {"dynamodb:Scan", "dynamodb:CreateTable", "dynamodb:DescribeTable"} <= set(wide["Action"])


def test_the_command_finds_what_it_needs(dynalite_server: DynamoEndpoint) -> None:
    """A URL is enough to make the table, once, to describe it, and to print it as template and policy."""
    url = StorageURL.parse(dynalite_server.url("commanded"))
    assert isinstance(DynamoDBStorage, Provisioned)

    assert DynamoDBStorage.provision(url, recovery=False) == ["table 'commanded' was created"]
    assert DynamoDBStorage.provision(url, recovery=False) == ["table 'commanded' was there"]

    assert json.loads(DynamoDBStorage.template(url, "cloudformation"))["Resources"]
    assert ":eu-west-1:*:table/commanded" in DynamoDBStorage.template(url, "iam")
    with pytest.raises(InvalidValueError, match="terraform"):
        DynamoDBStorage.template(url, "terraform")
    dynalite_server.client().delete_table(TableName="commanded")


def test_a_store_tells_of_its_table(plain: DynamoDBStorage, table: Table) -> None:
    """The facts name the table; what endangers the data is told."""
    assert isinstance(plain, Described)

    facts, [warning] = plain.describe()

    assert facts["table"] == TABLE
    assert facts["recovery"] == "DISABLED"
    assert "--recovery" in warning
    create_table(table.client, TABLE, recovery=True)
    assert plain.describe()[1] == []
