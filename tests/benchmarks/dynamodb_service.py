"""A service that answers after a set time: reads of one table, as bytes that the client parses as it does any."""

from __future__ import annotations

import json
import time
import zlib
from typing import TYPE_CHECKING, Any

from botocore.awsrequest import AWSResponse

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["Service"]


class _Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> list[bytes]:
        return [self._body]


class Service:
    """Answers Query, GetItem and BatchGetItem of a client in the emulator's place.

    Args:
        client: the client.
        items: what the table holds.
        seconds: how long each answer takes.
    """

    def __init__(self, client: DynamoDBClient, items: list[dict[str, Any]], seconds: float) -> None:
        self.seconds = seconds
        self._items = {(item["pk"]["S"], item["sk"]["S"]): json.dumps(item) for item in items}
        self._partitions: dict[str, list[str]] = {}
        for pk, sk in sorted(self._items):
            self._partitions.setdefault(pk, []).append(sk)
        client.meta.events.register("before-send.dynamodb", self._answer)  # type: ignore[arg-type]  # it answers

    def _answer(self, request: Any, **_: object) -> AWSResponse:
        operation = request.headers["X-Amz-Target"].decode().rpartition(".")[2]
        body = getattr(self, f"_{operation}")(json.loads(request.body)).encode()
        headers = {"x-amz-crc32": str(zlib.crc32(body)), "Content-Type": "application/x-amz-json-1.0"}
        time.sleep(self.seconds)
        return AWSResponse(request.url, 200, headers, _Raw(body))  # type: ignore[arg-type]  # all it needs

    def _GetItem(self, wanted: dict[str, Any]) -> str:  # noqa: N802 - the service's name
        item = self._items.get((wanted["Key"]["pk"]["S"], wanted["Key"]["sk"]["S"]))
        return "{}" if item is None else f'{{"Item":{item}}}'

    def _BatchGetItem(self, wanted: dict[str, Any]) -> str:  # noqa: N802 - the service's name
        [(table, asked)] = wanted["RequestItems"].items()
        found = [self._items[key["pk"]["S"], key["sk"]["S"]] for key in asked["Keys"]]
        return f'{{"Responses":{{"{table}":[{",".join(found)}]}},"UnprocessedKeys":{{}}}}'

    def _Query(self, wanted: dict[str, Any]) -> str:  # noqa: N802 - the service's name
        pk = wanted["ExpressionAttributeValues"][":pk"]["S"]
        after = wanted["ExpressionAttributeValues"].get(":after", {"S": ""})["S"]
        sks = [sk for sk in self._partitions.get(pk, []) if sk > after]
        chosen = sks[: wanted.get("Limit", len(sks))]
        last = {"LastEvaluatedKey": {"pk": {"S": pk}, "sk": {"S": chosen[-1]}}} if len(chosen) < len(sks) else {}
        rest = json.dumps(last)[1:-1]
        return f'{{"Items":[{",".join(self._items[pk, sk] for sk in chosen)}]{"," if rest else ""}{rest}}}'
