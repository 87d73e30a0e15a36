"""The bucket of queues: which there are, and over how many shards each spreads its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from batchstate.errors import InvalidValueError, UnsupportedFormatError
from batchstate_dynamodb.errors import ConditionFailedError
from batchstate_dynamodb.layout import QUEUES, Item, Key, item_key, number, read_number

if TYPE_CHECKING:
    from batchstate_dynamodb.requests import Requests
    from batchstate_dynamodb.sharding import Shards

__all__ = ["QueueEntry"]

LAYOUT: Final = 1
"""Where things lie in the table, as this program knows it."""


class QueueEntry:
    """One queue's entry: filed with its first batch, compared once by everyone who opens the queue.

    A worker that looks for records in other shards than its fellows would miss batches without a
    sign, so it is refused.

    Args:
        requests: the way to the table.
        queue: the queue.
        shards: as this storage was opened with.
    """

    def __init__(self, requests: Requests, queue: str, shards: Shards) -> None:
        self._requests = requests
        self._queue = queue
        self._key = Key(QUEUES, queue)
        self._shards = shards
        self._agreed = False

    def check(self) -> bool:
        """Answer whether the queue has an entry; the store is asked until it has.

        Raises:
            InvalidValueError: the queue's records are in other shards. Nothing was written.
            UnsupportedFormatError: a newer batchstate laid the queue out. Nothing was written.
        """
        if not self._agreed:
            entry = self._requests.get(self._key)
            if entry is None:
                return False
            self._compare(entry)
            self._agreed = True
        return True

    def file(self) -> None:
        """File the entry if there is none; raises as `check` does."""
        if self.check():
            return
        item = {**item_key(self._key), "layout": number(LAYOUT), "shards": number(self._shards.count)}
        try:
            self._requests.call("put_item", Item=item, ConditionExpression="attribute_not_exists(pk)")
            self._agreed = True
        except ConditionFailedError:
            self.check()

    def change(self) -> None:
        """Say from now on that the records are where this storage puts them."""
        self._requests.call(
            "update_item",
            Key=item_key(self._key),
            UpdateExpression="SET #shards = :shards",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeNames={"#shards": "shards"},
            ExpressionAttributeValues={":shards": number(self._shards.count)},
        )

    def _compare(self, entry: Item) -> None:
        layout, shards = read_number(entry, "layout"), read_number(entry, "shards")
        if isinstance(layout, int) and layout > LAYOUT:
            msg = f"queue {self._queue!r} has layout {layout}, and this program knows {LAYOUT}: upgrade batchstate"
            raise UnsupportedFormatError(msg)
        if shards not in self._shards.counts:
            msg = (
                f"queue {self._queue!r} keeps its records in {shards} shards, and this storage was opened with "
                f"{self._shards.count}: open it with shards={shards}, or change it as `reshard` says"
            )
            raise InvalidValueError(msg)
