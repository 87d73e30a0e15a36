"""Holds: a lease on a batch without jobs, in an item of its own that goes with the batch's row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from batchstate.errors import ClaimLostError, NotFoundError
from batchstate.job_calls import Held
from batchstate_dynamodb.errors import CancelledError, ConditionFailedError
from batchstate_dynamodb.job_base import JobBase
from batchstate_dynamodb.layout import item_key, number, read_number, read_text, text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batchstate_dynamodb.layout import Item

__all__ = ["DynamoDBHolds"]


class DynamoDBHolds(JobBase):
    """The part of `TransactingDynamoDBStorage` that keeps holds."""

    def take_hold(self, batch_id: str, token: str, lease: int) -> Held:
        return self._decide(lambda: self._take_hold(batch_id, token, lease))

    def _take_hold(self, batch_id: str, token: str, lease: int) -> Held | None:
        row, key = self._layout.row(batch_id), self._keys.hold(batch_id)
        found = self._requests.get_many([row, key], lambda item: item)
        if row not in found:
            raise NotFoundError(f"there is no batch {batch_id!r} in queue {self._queue!r}")
        now = self.clock()
        stored = found.get(key)
        if stored is not None and _until(stored) > now:
            return Held(batch_id, read_text(stored, "token"), _until(stored))
        put = {"Item": {**item_key(key), "token": text(token), "until": number(now + lease)}, **_as_found(stored)}
        there = {"Key": item_key(row), "ConditionExpression": "attribute_exists(pk)"}
        try:
            self._requests.transact([{"ConditionCheck": there}, {"Put": put}])
        except CancelledError:
            return None
        return Held(batch_id, token, now + lease)

    def extend_hold(self, batch_id: str, token: str, lease: int) -> Held:
        now = self.clock()
        try:
            self._requests.call(
                "update_item",
                Key=item_key(self._keys.hold(batch_id)),
                UpdateExpression="SET #until = :until",
                **_held_by(token, now, {":until": number(now + lease)}),
            )
        except ConditionFailedError as failed:
            raise _lost(batch_id) from failed
        return Held(batch_id, token, now + lease)

    def release_hold(self, batch_id: str, token: str) -> None:
        key = self._keys.hold(batch_id)
        try:
            self._requests.call("delete_item", Key=item_key(key), **_held_by(token, self.clock(), {}))
        except ConditionFailedError as failed:
            if self._requests.get(key) is not None:
                raise _lost(batch_id) from failed

    def _forget_holds(self, batch_ids: Iterable[str]) -> None:
        self._requests.delete_many(self._keys.hold(batch_id) for batch_id in batch_ids)


def _until(item: Item) -> int:
    until = read_number(item, "until")
    return until if isinstance(until, int) else 0


def _as_found(item: Item | None) -> dict[str, Any]:
    if item is None:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    return {
        "ConditionExpression": "#token = :token AND #until = :until",
        "ExpressionAttributeNames": {"#token": "token", "#until": "until"},
        "ExpressionAttributeValues": {":token": item["token"], ":until": item["until"]},
    }


def _held_by(token: str, now: int, values: dict[str, Any]) -> dict[str, Any]:
    return {
        "ConditionExpression": "#token = :token AND #until > :now",
        "ExpressionAttributeNames": {"#token": "token", "#until": "until"},
        "ExpressionAttributeValues": {":token": text(token), ":now": number(now), **values},
    }


def _lost(batch_id: str) -> ClaimLostError:
    return ClaimLostError(f"the hold on batch {batch_id!r} lapsed or is another's; its work must not go on")
