"""The service's rules for requests, on which emulators are laxer: each request that a client sends is held to them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.adapters.dynamodb.sizes import item_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from types_boto3_dynamodb import DynamoDBClient

LARGEST_ITEM = 400 * 1024
LONGEST_PK = 2048
LONGEST_SK = 1024
GETS = 100
BATCH_WRITES = 25
ACTIONS = 100
READS = frozenset({"GetItem", "Query", "Scan"})


class RuleBreakError(AssertionError):
    """A request that the service would refuse, or that breaks a promise of ours about requests."""


def hold_to_rules(client: DynamoDBClient) -> None:
    """Refuse every request of a client that breaks a rule, before it is sent."""
    client.meta.events.register("provide-client-params.dynamodb", lambda params, model, **_: check(model.name, params))


class Watch:
    """Sees every request of a client before it is sent, refuses what breaks a rule, and keeps what was sent.

    Args:
        client: the client to look at.

    Attributes:
        sent: the operations with their parameters, in the order in which they were sent.
    """

    def __init__(self, client: DynamoDBClient) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        hold_to_rules(client)
        client.meta.events.register("provide-client-params.dynamodb", self._see)

    def _see(self, params: dict[str, Any], model: Any, **_: object) -> None:
        self.sent.append((model.name, params))

    @property
    def counts(self) -> Counter[str]:
        """How often each operation was sent."""
        return Counter(operation for operation, _ in self.sent)

    def forget(self) -> None:
        """Count anew from here."""
        self.sent.clear()


def check(operation: str, params: Mapping[str, Any]) -> None:
    """Raise `RuleBreakError` where a request breaks a rule."""
    _require("IndexName" not in params, "no index is ever read")
    if operation in READS:
        _require(params.get("ConsistentRead") is True, f"{operation} must ask for a consistent read")
    if operation == "BatchGetItem":
        _check_batch_get(params["RequestItems"])
    if operation == "BatchWriteItem":
        _check_batch_write(params["RequestItems"])
    if operation == "TransactWriteItems":
        _check_transaction(params["TransactItems"])
    if operation in ("PutItem", "UpdateItem", "DeleteItem", "GetItem"):
        _check_write(params)


def _check_batch_get(tables: Mapping[str, Any]) -> None:
    for wanted in tables.values():
        _require(wanted.get("ConsistentRead") is True, "BatchGetItem must ask for consistent reads")
        _require(1 <= len(wanted["Keys"]) <= GETS, f"BatchGetItem takes 1 to {GETS} keys, not {len(wanted['Keys'])}")
        _check_keys(wanted["Keys"])


def _check_batch_write(tables: Mapping[str, Any]) -> None:
    for writes in tables.values():
        _require(1 <= len(writes) <= BATCH_WRITES, f"BatchWriteItem takes 1 to {BATCH_WRITES} items")
        _check_keys([_key_of(next(iter(write.values()))) for write in writes])


def _check_transaction(actions: list[Mapping[str, Any]]) -> None:
    _require(1 <= len(actions) <= ACTIONS, f"a transaction takes 1 to {ACTIONS} items, not {len(actions)}")
    _check_keys([_key_of(next(iter(action.values()))) for action in actions])
    for action in actions:
        _check_write(next(iter(action.values())))


def _check_write(write: Mapping[str, Any]) -> None:
    _check_keys([_key_of(write)])
    values = write.get("ExpressionAttributeValues", {})
    expressions = " ".join(
        write.get(name, "") for name in ("ConditionExpression", "UpdateExpression", "KeyConditionExpression")
    )
    for name in [*values, *write.get("ExpressionAttributeNames", {})]:
        _require(name in expressions, f"{name} is given and not used, which the service refuses")
    _require(values != {} or "ExpressionAttributeValues" not in write, "empty ExpressionAttributeValues are refused")
    size = item_size(write["Item"]) if "Item" in write else item_size(values)
    _require(size <= LARGEST_ITEM, f"an item of {size:,} bytes is too large")


def _key_of(write: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: (write.get("Key") or write["Item"])[name] for name in ("pk", "sk")}


def _check_keys(keys: Iterable[Mapping[str, Any]]) -> None:
    pairs = [(key["pk"]["S"], key["sk"]["S"]) for key in keys]
    _require(len(set(pairs)) == len(pairs), "a request names an item twice")
    for pk, sk in pairs:
        _require(0 < len(pk.encode()) <= LONGEST_PK, f"a partition key of {len(pk.encode())} bytes")
        _require(0 < len(sk.encode()) <= LONGEST_SK, f"a sort key of {len(sk.encode())} bytes")


def _require(condition: bool, rule: str) -> None:  # noqa: FBT001 - what is required
    if not condition:
        raise RuleBreakError(rule)
