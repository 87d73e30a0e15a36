"""The table: its one shape, made, checked, and described for CloudFormation and IAM."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from batchstate_dynamodb.errors import CLIENT_ERRORS, read_error

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["ACTIONS", "check_table", "cloudformation", "create_table", "describe_table", "iam_policy"]

_ATTRIBUTES: Final[Any] = [
    {"AttributeName": "pk", "AttributeType": "S"},
    {"AttributeName": "sk", "AttributeType": "S"},
]
_SCHEMA: Final[Any] = [
    {"AttributeName": "pk", "KeyType": "HASH"},
    {"AttributeName": "sk", "KeyType": "RANGE"},
]
_POLL_SECONDS: Final = 1
_POLLS: Final = 120

ACTIONS: Final = (
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)
"""What a worker does with the table; transactions need no right of their own."""

_SET_UP: Final = (
    "dynamodb:CreateTable",
    "dynamodb:DescribeContinuousBackups",
    "dynamodb:DescribeTable",
    "dynamodb:UpdateContinuousBackups",
)


def create_table(client: DynamoDBClient, name: str, *, recovery: bool = False) -> bool:
    """Create the table if there is none, and wait until it can be used. Again, it changes nothing.

    Args:
        client: a low-level client.
        name: the table's name.
        recovery: whether to switch point-in-time recovery on, also for a table that is there.

    Returns:
        Whether it was created by this call.

    Raises:
        StorageUnavailableError: the service cannot be reached, or does not allow it.
        InvalidValueError: it refuses the name.
    """
    try:
        created = _create(client, name)
        client.get_waiter("table_exists").wait(
            TableName=name, WaiterConfig={"Delay": _POLL_SECONDS, "MaxAttempts": _POLLS}
        )
        if recovery:
            client.update_continuous_backups(
                TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
            )
    except CLIENT_ERRORS as error:
        raise read_error(error, name).error from error
    return created


def _create(client: DynamoDBClient, name: str) -> bool:
    try:
        client.create_table(
            TableName=name, AttributeDefinitions=_ATTRIBUTES, KeySchema=_SCHEMA, BillingMode="PAY_PER_REQUEST"
        )
    except client.exceptions.ResourceInUseException:
        return False
    return True


def check_table(client: DynamoDBClient, name: str) -> list[str]:
    """Answer what is wrong with the table, a sentence each; nothing where all is well.

    Args:
        client: a low-level client.
        name: the table's name.

    Raises:
        StorageUnavailableError: the service cannot be reached, or does not allow it.
    """
    try:
        table: Any = client.describe_table(TableName=name)["Table"]
    except client.exceptions.ResourceNotFoundException:
        return [f"there is no table {name!r}"]
    except CLIENT_ERRORS as error:
        raise read_error(error, name).error from error
    problems = []
    if table.get("TableStatus") not in ("ACTIVE", "UPDATING"):
        problems.append(f"table {name!r} is {table.get('TableStatus')}, not ACTIVE")
    types = {each["AttributeName"]: each["AttributeType"] for each in table.get("AttributeDefinitions", [])}
    keys = [(key["AttributeName"], key["KeyType"], types.get(key["AttributeName"])) for key in table["KeySchema"]]
    if keys != [("pk", "HASH", "S"), ("sk", "RANGE", "S")]:
        problems.append(
            f"table {name!r} has the key {keys}, not a partition key pk and a sort key sk, both strings;"
            " a key cannot be changed, so take another table"
        )
    if _expiry(client, name) not in (None, "expires"):
        problems.append(
            f"table {name!r} lets items expire by {_expiry(client, name)!r}: nothing of batchstate's may go by itself"
        )
    return problems


def describe_table(client: DynamoDBClient, name: str) -> tuple[dict[str, str], list[str]]:
    """Answer facts about the table by name, and a sentence for each thing that endangers its data.

    Args:
        client: a low-level client.
        name: the table's name.

    Raises:
        StorageUnavailableError: there is no table, the service cannot be reached, or does not allow
            it.
    """
    try:
        table: Any = client.describe_table(TableName=name)["Table"]
    except CLIENT_ERRORS as error:
        raise read_error(error, name).error from error
    recovery = _recovery(client, name)
    facts = {
        "table": name,
        "state": str(table.get("TableStatus")),
        "items": f"about {table.get('ItemCount', 0):,}",
        "bytes": f"about {table.get('TableSizeBytes', 0):,}",
        "recovery": recovery,
    }
    warnings = check_table(client, name)
    if recovery == "DISABLED":
        warnings.append(f"table {name!r} has no point-in-time recovery: `batchstate storage init URL --recovery`")
    return facts, warnings


def _recovery(client: DynamoDBClient, name: str) -> str:
    """Answer whether there is point-in-time recovery, as the service says it; emulators may not know of it."""
    try:
        backups: Any = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    except CLIENT_ERRORS:
        return "unknown"
    return str(backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus", "unknown"))


def _expiry(client: DynamoDBClient, name: str) -> str | None:
    """Answer the attribute by which the table lets items expire, `None` where it does not."""
    try:
        described: Any = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    except CLIENT_ERRORS as error:
        raise read_error(error, name).error from error
    return described.get("AttributeName") if described.get("TimeToLiveStatus") in ("ENABLED", "ENABLING") else None


def cloudformation(name: str, *, recovery: bool = True) -> str:
    """Answer a CloudFormation template, in JSON, of the table that `create_table` makes.

    Args:
        name: the table's name.
        recovery: whether it has point-in-time recovery.
    """
    properties = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": _ATTRIBUTES,
        "KeySchema": _SCHEMA,
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": recovery},
    }
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "The table of batchstate",
        "Resources": {
            "BatchStateTable": {
                "Type": "AWS::DynamoDB::Table",
                "DeletionPolicy": "Retain",
                "UpdateReplacePolicy": "Retain",
                "Properties": properties,
            }
        },
        "Outputs": {"TableArn": {"Value": {"Fn::GetAtt": ["BatchStateTable", "Arn"]}}},
    }
    return json.dumps(template, indent=2)


def iam_policy(name: str, *, region: str = "*", account: str = "*", set_up: bool = False, scan: bool = False) -> str:
    """Answer the IAM policy, in JSON, that a worker needs and nothing beyond.

    Args:
        name: the table's name.
        region, account: where the table is; `*` for any.
        set_up: also what `create_table` and `check_table` need.
        scan: also what `scan` needs, for checking and copying whole stores.
    """
    actions = [
        *ACTIONS,
        *(("dynamodb:Scan",) if scan else ()),
        *((*_SET_UP, "dynamodb:DescribeTimeToLive") if set_up else ()),
    ]
    statement = {
        "Sid": "BatchState",
        "Effect": "Allow",
        "Action": sorted(actions),
        "Resource": f"arn:aws:dynamodb:{region}:{account}:table/{name}",
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=2)
