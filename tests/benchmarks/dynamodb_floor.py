"""The floor for DynamoDB: the same requests, by hand on the bare client."""

from __future__ import annotations

import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from batchstate_dynamodb.layout import Layout
from batchstate_dynamodb.sharding import DEFAULT_SHARDS, Shards

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from types_boto3_dynamodb import DynamoDBClient

    from batchstate import Batch

__all__ = ["DynamoDBFloor"]

_UPDATE = (
    "SET #format = :format, #version = :version, #state = :state, #entered = :entered, #updated_at = :updated_at, "
    "#marks = :marks, #moves = :moves, #attributes = :attributes"
)
_NAMES = {
    f"#{name}": name
    for name in ("format", "version", "state", "entered", "updated_at", "marks", "moves", "attributes", "retired_at")
}


class DynamoDBFloor:
    """Loads, moves and lists batches by hand, in a table that the adapter has made and filled."""

    def __init__(self, client: DynamoDBClient, table: str, queue: str, threads: int) -> None:
        self._client: Any = client
        self._table = table
        self._layout = Layout(queue)
        self._shards = Shards(DEFAULT_SHARDS)
        self._pool = ThreadPoolExecutor(threads)

    def move(self, batch: Batch, to: str, now: int) -> None:
        """Move a batch in three conditional writes."""
        version, mark = batch.version + 1, secrets.token_hex(8)
        move = json.dumps([batch.state, to, version, now, "bench", ""], separators=(",", ":"))
        self._client.update_item(
            TableName=self._table,
            Key={"pk": {"S": self._layout.row(batch.id).pk}, "sk": {"S": "row"}},
            UpdateExpression=_UPDATE,
            ConditionExpression="#version = :before AND attribute_not_exists(#retired_at) AND contains(#marks, :mark)",
            ExpressionAttributeNames=_NAMES,
            ExpressionAttributeValues={
                ":before": {"N": str(batch.version)},
                ":mark": {"S": f"{batch.version}:{batch.mark}"},
                ":format": {"N": "1"},
                ":version": {"N": str(version)},
                ":state": {"S": to},
                ":entered": {"N": str(version)},
                ":updated_at": {"N": str(now)},
                ":marks": {"S": f"{batch.marks} {version}:{mark}"},
                ":moves": {"S": f"{batch.history.text}\n{move}"},
                ":attributes": {"S": json.dumps(batch.attributes, separators=(",", ":"))},
            },
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
        home = self._shards.home(batch.id)
        self._client.put_item(
            TableName=self._table,
            Item={
                "pk": {"S": self._layout.bucket(to, home)},
                "sk": {"S": batch.id},
                "version": {"N": str(version)},
            },
            ConditionExpression="attribute_not_exists(pk) OR #version < :version",
            ExpressionAttributeNames={"#version": "version"},
            ExpressionAttributeValues={":version": {"N": str(version)}},
        )
        self._client.delete_item(
            TableName=self._table,
            Key={"pk": {"S": self._layout.bucket(batch.state, home)}, "sk": {"S": batch.id}},
            ConditionExpression="attribute_not_exists(pk) OR #version <= :version",
            ExpressionAttributeNames={"#version": "version"},
            ExpressionAttributeValues={":version": {"N": str(batch.version)}},
        )

    def load(self, batch_id: str) -> tuple[Any, ...]:
        """Load a batch."""
        key = {"pk": {"S": self._layout.row(batch_id).pk}, "sk": {"S": "row"}}
        return _decode(self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)["Item"])

    def list_state(self, state: str) -> Sequence[tuple[Any, ...]]:
        """List a state: its shards side by side, then its rows by key, a hundred a request, side by side."""
        shards = self._pool.map(lambda shard: self._ids(self._layout.bucket(state, shard)), self._shards.all)
        ids = [batch_id for some in shards for batch_id in some]
        chunks = [ids[start : start + 100] for start in range(0, len(ids), 100)]
        found = [row for rows in self._pool.map(self._rows, chunks) for row in rows if row[2] == state]
        return sorted(found, key=lambda row: str(row[0]))

    def _ids(self, pk: str) -> list[str]:
        ids: list[str] = []
        start: dict[str, Any] = {}
        while True:
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": pk}},
                ConsistentRead=True,
                **start,
            )
            ids += [item["sk"]["S"] for item in page["Items"]]
            if not page.get("LastEvaluatedKey"):
                return ids
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _rows(self, ids: Iterable[str]) -> list[tuple[Any, ...]]:
        keys = [{"pk": {"S": self._layout.row(batch_id).pk}, "sk": {"S": "row"}} for batch_id in ids]
        wanted = {self._table: {"Keys": keys, "ConsistentRead": True}}
        return [_decode(item) for item in self._client.batch_get_item(RequestItems=wanted)["Responses"][self._table]]

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


def _decode(item: dict[str, Any]) -> tuple[Any, ...]:
    return (
        item["pk"]["S"],
        int(item["version"]["N"]),
        item["state"]["S"],
        int(item["entered"]["N"]),
        int(item["created_at"]["N"]),
        int(item["updated_at"]["N"]),
        item["marks"]["S"],
        item["moves"]["S"],
        tuple(json.loads(item["requests"]["S"])),
        json.loads(item["attributes"]["S"]),
    )
