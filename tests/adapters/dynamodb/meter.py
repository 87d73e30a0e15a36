"""What requests cost, by the service's rules; emulators count in ways of their own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.adapters.dynamodb.conftest import TABLE
from tests.adapters.dynamodb.sizes import item_size, read_units, write_units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.adapters.dynamodb.conftest import Table


class Meter:
    """Counts units: of each write by its item before and after, of each read by what it answers.

    Args:
        table: the table whose client is looked at.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._params: Mapping[str, Any] = {}
        self._before: dict[tuple[str, str], int] = {}
        self._busy = False
        self._done = True
        self.requests: Counter[str] = Counter()
        self.reads = 0
        self.writes = 0
        events = table.client.meta.events
        events.register("provide-client-params.dynamodb", self._begin)
        events.register("after-call.dynamodb", self._end)

    def start(self) -> None:
        """Count anew from here."""
        self.requests.clear()
        self.reads = self.writes = 0
        self._before = self._sizes()

    def _begin(self, params: Mapping[str, Any], model: Any, **_: object) -> None:
        if not self._busy:
            self._params = params
            self.requests[model.name] += 1

    def _end(self, parsed: Mapping[str, Any], model: Any, **_: object) -> None:
        if self._busy:
            return
        params = self._params
        self._done = "Error" not in parsed
        if model.name == "GetItem":
            self.reads += read_units(item_size(parsed.get("Item", {})))
        elif model.name == "BatchGetItem":
            found = {_key(item): item for item in parsed["Responses"][TABLE]}
            for key in params["RequestItems"][TABLE]["Keys"]:
                self.reads += read_units(item_size(found.get(_key(key), {})))
        elif model.name == "Query":
            self.reads += read_units(sum(item_size(item) for item in parsed["Items"]))
        elif model.name == "TransactWriteItems":
            self.writes += 2 * self._written([next(iter(action.values())) for action in params["TransactItems"]])
        elif model.name == "BatchWriteItem":
            self.writes += self._written([write["DeleteRequest"] for write in params["RequestItems"][TABLE]])
        else:
            self.writes += self._written([params])

    def _written(self, writes: Sequence[Mapping[str, Any]]) -> int:
        before = self._before
        after = self._before = self._sizes_after(writes)
        keys = [_key(write.get("Key") or write["Item"]) for write in writes]
        return sum(write_units(max(before.get(key, 0), after.get(key, 0))) for key in keys)

    def _sizes_after(self, writes: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], int]:
        """Answer all sizes after these writes; they are only looked up where they do not follow from the request."""
        if not self._done or any("UpdateExpression" in write for write in writes):
            return self._sizes()
        put = {_key(write["Item"]): item_size(write["Item"]) for write in writes if "Item" in write}
        gone = {_key(write["Key"]) for write in writes if "Key" in write}
        return {key: size for key, size in {**self._before, **put}.items() if key not in gone}

    def _sizes(self) -> dict[tuple[str, str], int]:
        self._busy = True
        try:
            return {_key(item): item_size(item) for item in self._table.items()}
        finally:
            self._busy = False


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


def spent(meter: Meter) -> tuple[dict[str, int], int, int]:
    """Answer the requests, the read units and the write units since the start, and start anew."""
    answer = dict(meter.requests), meter.reads, meter.writes
    meter.start()
    return answer
