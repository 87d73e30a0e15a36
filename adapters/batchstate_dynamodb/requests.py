"""Requests: each sent until it is answered or hopeless, many side by side, long ones in pieces.

A client's own retries stay as its owner has set them. A write that was applied and whose reply was
lost then fails its own condition on the second try; the mark that it left in the row tells.
"""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from batchstate.errors import InvalidValueError, StorageUnavailableError
from batchstate_dynamodb.errors import CLIENT_ERRORS, ConditionFailedError, read_error
from batchstate_dynamodb.layout import Item, Key, item_key, key_of, text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["DEFAULT_THREADS", "TRIES", "QueryPage", "Requests"]

DEFAULT_THREADS: Final = 10
"""As many as a client of boto3 has connections, unless its owner says otherwise."""

TRIES: Final = 8
"""How often a request is sent before the store counts as unavailable; the waits add up to some six seconds."""

_FIRST_WAIT: Final = 0.05
_LONGEST_BACK_OFF: Final = 0.5
_MOST_THREADS: Final = 64
_KEYS_A_GET: Final = 100
_ITEMS_A_WRITE: Final = 25

Thing = TypeVar("Thing")
Answer = TypeVar("Answer")


class QueryPage(NamedTuple):
    """One page of a partition.

    Attributes:
        items: what it holds; it may be empty though more follow.
        last: the sort key to go on after; `None` at the end.
    """

    items: Sequence[Item]
    last: str | None


class Requests:
    """The way to one table.

    Args:
        table: the table's name.
        client: the low-level client; or what makes one, which is then closed with this.
        threads: how many requests are under way at a time, at most.
        sleep: waits so many seconds.
    """

    def __init__(
        self,
        table: str,
        client: DynamoDBClient | Callable[[], DynamoDBClient],
        *,
        threads: int = DEFAULT_THREADS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if type(threads) is not int or not 1 <= threads <= _MOST_THREADS:
            msg = f"threads must be an int from 1 to {_MOST_THREADS}, not {threads!r}"
            raise InvalidValueError(msg)
        self.table = table
        self._make = client if callable(client) else None
        self._client: DynamoDBClient | None = None if callable(client) else client
        self._threads = threads
        self._sleep = sleep
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._lock = Lock()

    @property
    def client(self) -> DynamoDBClient:
        """The client; one of our own is made when it is first needed."""
        self._leave_the_parents()
        if self._client is None:
            with self._lock:
                if self._client is None:
                    assert self._make is not None  # noqa: S101 - a borrowed client is never given up
                    self._client = self._make()
        return self._client

    def close(self) -> None:
        """End the threads, and close the client if it is ours."""
        with self._lock:
            pool, self._pool = self._pool, None
            client = None
            if self._make is not None:
                client, self._client = self._client, None
        if pool is not None:
            pool.shutdown()
        if client is not None:
            client.close()

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401 - as the client takes them
        """Send one request to the table, again after a growing wait where the failure may pass.

        Raises:
            ConditionFailedError, CancelledError: as `read_error` says, as are the others.
            StorageUnavailableError: it did not pass, or cannot.
            InvalidValueError: the request will never be accepted.
        """
        return self._send(operation, {"TableName": self.table, **parameters})

    def attempt(self, operation: str, **parameters: Any) -> None:  # noqa: ANN401 - as the client takes them
        """Send a write whose failed condition means that there is nothing to do."""
        with suppress(ConditionFailedError):
            self.call(operation, **parameters)

    def transact(self, actions: Sequence[dict[str, Any]], token: str | None = None) -> None:
        """Write all of these or none; raises as `call` does.

        Args:
            actions: what to write.
            token: where given, the service writes once what it is sent twice with it within ten minutes.
        """
        named = [{verb: {"TableName": self.table, **action[verb]} for verb in action} for action in actions]
        same = {} if token is None else {"ClientRequestToken": token}
        self._send("transact_write_items", {"TransactItems": named, **same})

    def back_off(self, tries: int) -> None:
        """Wait a random while, longer after more tries, up to half a second, because others write the same items."""
        self._sleep(random.uniform(0, min(_FIRST_WAIT * 2**tries, _LONGEST_BACK_OFF)))  # noqa: S311 - no secret

    def get(self, key: Key) -> Item | None:
        """Load one item, strongly consistent."""
        found: Item | None = self.call("get_item", Key=item_key(key), ConsistentRead=True).get("Item")
        return found

    def get_many(self, keys: Iterable[Key], read: Callable[[Item], Answer]) -> dict[Key, Answer]:
        """Load items, strongly consistent, and `read` each; missing ones are absent from the answer."""
        distinct = list(dict.fromkeys(keys))
        if len(distinct) == 1:
            item = self.get(distinct[0])
            return {} if item is None else {distinct[0]: read(item)}
        chunks = [distinct[start : start + _KEYS_A_GET] for start in range(0, len(distinct), _KEYS_A_GET)]
        found: dict[Key, Answer] = {}
        # Read beside the requests that are still under way, not after the last of them.
        for answers in self.side_by_side(
            lambda chunk: [(key_of(item), read(item)) for item in self._get_chunk(chunk)], chunks
        ):
            found.update(answers)
        return found

    def delete_many(self, keys: Iterable[Key]) -> None:
        """Delete items, whatever they are; absent ones are no error."""
        distinct = list(dict.fromkeys(keys))
        chunks = [distinct[start : start + _ITEMS_A_WRITE] for start in range(0, len(distinct), _ITEMS_A_WRITE)]
        self.side_by_side(self._delete_chunk, chunks)

    def query(self, pk: str, after: str | None, limit: int | None) -> QueryPage:
        """Load one page of a partition, in the order of sort keys, strongly consistent.

        Args:
            pk: the partition.
            after: the sort key to go on after; `None` from the start.
            limit: how many items at most; `None` for what fits.
        """
        parameters: dict[str, Any] = {
            "KeyConditionExpression": "pk = :pk" if after is None else "pk = :pk AND sk > :after",
            "ExpressionAttributeValues": {":pk": text(pk)}
            if after is None
            else {":pk": text(pk), ":after": text(after)},
            "ConsistentRead": True,
        }
        if limit is not None:
            parameters["Limit"] = limit
        response = self.call("query", **parameters)
        last = response.get("LastEvaluatedKey")
        return QueryPage(response.get("Items", []), None if not last else key_of(last).sk)

    def query_all(self, pk: str) -> list[Item]:
        """Load a whole partition, page after page to the end, whatever they hold."""
        page = self.query(pk, None, None)
        items = list(page.items)
        while page.last is not None:
            page = self.query(pk, page.last, None)
            items.extend(page.items)
        return items

    def scan(self, prefix: str, after: Key | None, limit: int | None) -> tuple[list[Item], Key | None]:
        """Load one page of all items whose partition key begins with `prefix`, and the key to go on after."""
        parameters: dict[str, Any] = {
            "FilterExpression": "begins_with(pk, :prefix)",
            "ExpressionAttributeValues": {":prefix": text(prefix)},
            "ConsistentRead": True,
        }
        if after is not None:
            parameters["ExclusiveStartKey"] = item_key(after)
        if limit is not None:
            parameters["Limit"] = limit
        response = self.call("scan", **parameters)
        last = response.get("LastEvaluatedKey")
        return response.get("Items", []), key_of(last) if last else None

    def side_by_side(self, do: Callable[[Thing], Answer], things: Collection[Thing]) -> list[Answer]:
        """Do `do` with each of these, several at a time, and answer what it answers, in their order.

        The first that raises ends it: those not begun are left out, those under way are waited for,
        so that nothing of ours still writes when this returns. `do` must not call this itself.
        """
        if len(things) <= 1 or self._threads == 1:
            return [do(thing) for thing in things]
        pool = self._started_pool()
        futures = [pool.submit(do, thing) for thing in things]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            begun = [future for future in futures if not future.cancel()]
            wait(begun)
        for future in begun:
            if (error := future.exception()) is not None:
                raise error
        return [future.result() for future in futures]

    def _send(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        send: Callable[..., dict[str, Any]] = getattr(self.client, operation)
        tries = 0
        while True:
            try:
                return send(**parameters)
            except CLIENT_ERRORS as error:
                failure = read_error(error, self.table)
                tries += 1
                if not failure.passing or tries == TRIES:
                    raise failure.error from error
            self._wait(tries)

    def _get_chunk(self, keys: Sequence[Key]) -> list[Item]:
        found: list[Item] = []
        left: list[Item] = [item_key(key) for key in keys]
        tries = 0
        while True:
            response = self._send(
                "batch_get_item", {"RequestItems": {self.table: {"Keys": left, "ConsistentRead": True}}}
            )
            found += response.get("Responses", {}).get(self.table, [])
            unprocessed = response.get("UnprocessedKeys", {}).get(self.table, {}).get("Keys", [])
            tries = self._after_piece(len(left), len(unprocessed), tries)
            if not unprocessed:
                return found
            left = unprocessed

    def _delete_chunk(self, keys: Sequence[Key]) -> None:
        left: list[dict[str, Any]] = [{"DeleteRequest": {"Key": item_key(key)}} for key in keys]
        tries = 0
        while left:
            response = self._send("batch_write_item", {"RequestItems": {self.table: left}})
            unprocessed = response.get("UnprocessedItems", {}).get(self.table, [])
            tries = self._after_piece(len(left), len(unprocessed), tries)
            left = unprocessed

    def _after_piece(self, asked: int, left: int, tries: int) -> int:
        """Wait before what was left unprocessed is asked for again; answer how often in a row nothing was done."""
        if not left:
            return 0
        tries = 1 if left < asked else tries + 1
        if tries == TRIES:
            msg = f"DynamoDB is too busy for table {self.table!r}: it leaves {left} items of a request unprocessed"
            raise StorageUnavailableError(msg)
        self._wait(tries)
        return tries

    def _wait(self, tries: int) -> None:
        """Wait before the next try: each time about twice as long, never exactly as long as another client."""
        self._sleep(_FIRST_WAIT * 2 ** (tries - 1) * random.uniform(0.75, 1))  # noqa: S311 - no secret

    def _started_pool(self) -> ThreadPoolExecutor:
        self._leave_the_parents()
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="batchstate-dynamodb")
            return self._pool

    def _leave_the_parents(self) -> None:
        """In a forked child, let go of the parent's threads, which are not here, and of our client's connections."""
        if self._process == os.getpid():
            return
        self._lock = Lock()
        self._process = os.getpid()
        self._pool = None
        if self._make is not None:
            self._client = None
