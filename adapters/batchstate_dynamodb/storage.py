"""`DynamoDBStorage`: the storage protocol in three conditional writes a move, without transactions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from batchstate.errors import BatchStateError, InvalidValueError, StorageUnavailableError
from batchstate.names import check_name
from batchstate.storage import Kind, Outcome, Page, Swap, Unreadable, judge_creation, judge_swap
from batchstate.times import Clock, wall_clock
from batchstate.transition import record_of
from batchstate.wire import BatchRow, check_association, check_record
from batchstate_dynamodb.errors import ConditionFailedError
from batchstate_dynamodb.expressions import (
    delete_record,
    insert_association,
    insert_row,
    put_record,
    update_row,
)
from batchstate_dynamodb.layout import QUEUES, Item, Key, Layout, encode_batches, item_key, read_text
from batchstate_dynamodb.queues import QueueEntry
from batchstate_dynamodb.requests import DEFAULT_THREADS, Requests
from batchstate_dynamodb.reshard import Parts
from batchstate_dynamodb.retired import Retired
from batchstate_dynamodb.sharding import DEFAULT_SHARDS, Shards
from batchstate_dynamodb.table import describe_table

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from types import TracebackType

    from types_boto3_dynamodb import DynamoDBClient

    from batchstate.entities import Association, Batch, MembershipRecord
    from batchstate.urls import StorageURL

__all__ = ["DynamoDBStorage"]

Thing = TypeVar("Thing")


class DynamoDBStorage:
    """One queue in a table of DynamoDB.

    Every move takes its three steps one after the other, each a conditional write of one item.
    Where a failed condition does not bring the row that was met, as some emulators do not, the row
    is read once more.

    Args:
        table_name: the table, as `create_table` makes it.
        queue: the queue.
        client: a low-level client, shared and left open; or what makes one when it is first needed,
            which is then closed with this. One of boto3's defaults without it.
        shards: over how many partitions the records of a state are spread; the same for everyone
            who works on the queue.
        other_shards: the number that is being changed from or to, see `reshard`.
        threads: how many requests are under way at a time, at most.
        clock: answers the time in milliseconds since the epoch; this machine's by default.
        sleep: waits so many seconds, before a request is sent again.

    Raises:
        InvalidNameError: `queue` is no name.
        InvalidValueError: `shards` or `threads` is out of bounds.
    """

    sees_rows: ClassVar[bool] = False
    """Whether a put is a no-op for an absent or retired row. A conditional write sees its own item alone."""

    def __init__(
        self,
        table_name: str,
        queue: str,
        *,
        client: DynamoDBClient | Callable[[], DynamoDBClient] | None = None,
        shards: int = DEFAULT_SHARDS,
        other_shards: int | None = None,
        threads: int = DEFAULT_THREADS,
        clock: Clock | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._queue = check_name("queue", queue)
        self.clock = clock or wall_clock
        self._shards = Shards(shards, other_shards)
        self._layout = Layout(queue)
        options: dict[str, Any] = {} if sleep is None else {"sleep": sleep}
        self._requests = Requests(table_name, client or _default_client(threads), threads=threads, **options)
        self._entry = QueueEntry(self._requests, queue, self._shards)
        self._retired = Retired(self._requests, self._layout, self._shards, self.clock)

    @classmethod
    def from_url(cls, url: StorageURL, queue: str, *, clock: Clock | None = None) -> DynamoDBStorage:
        """Open `dynamodb://table?region=…`; the options are those of `URLOptions`."""
        from batchstate_dynamodb.opening import open_url  # noqa: PLC0415 - it stands on this module

        return open_url(url, queue, clock=clock)

    @classmethod
    def provision(cls, url: StorageURL, *, recovery: bool) -> list[str]:
        """Create the table that `url` names if there is none, and answer what was done or is wrong with it."""
        from batchstate_dynamodb.opening import provision_url  # noqa: PLC0415 - it stands on this module

        return provision_url(url, recovery=recovery)

    @classmethod
    def template(cls, url: StorageURL, form: str) -> str:
        """Answer the table as a template (`"cloudformation"`), or the rights that a worker needs (`"iam"`)."""
        from batchstate_dynamodb.opening import template_of  # noqa: PLC0415 - it stands on this module

        return template_of(url, form)

    def describe(self) -> tuple[dict[str, str], list[str]]:
        """Answer facts about the table, and what endangers its data; needs the rights to describe it."""
        return describe_table(self.client, self._requests.table)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of queue {self._queue!r} in table {self._requests.table!r}>"

    @property
    def queue(self) -> str:
        return self._queue

    @property
    def client(self) -> DynamoDBClient:
        """The low-level client this storage works with."""
        return self._requests.client

    @property
    def parts(self) -> Parts:
        """What this storage is made of, for the functions beside it."""
        return Parts(self._requests, self._layout, self._shards, self._entry)

    def check_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return [row if isinstance(row, BatchStateError) else None for row in encode_batches(batches, self._queue)]

    def create_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        rows = encode_batches(batches, self._queue)
        if any(not isinstance(row, BatchStateError) for row in rows):
            self._entry.file()
        return self._each(list(zip(batches, rows, strict=True)), lambda pair: pair[0].id, self._create)

    def get_batches(self, ids: Iterable[str]) -> dict[str, Batch | Unreadable]:
        keys = {self._layout.row(batch_id): batch_id for batch_id in ids}
        return {keys[key]: row for key, row in self._requests.get_many(keys, self._layout.read_row).items()}

    def update_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        rows = encode_batches([swap.after for swap in swaps], self._queue)
        self._entry.check()
        return self._each(list(zip(swaps, rows, strict=True)), lambda pair: pair[0].before.id, self._swap)

    def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._write_records(records, self._put)

    def delete_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._write_records(records, self._delete)

    def get_records(self, keys: Iterable[tuple[str, str]]) -> list[MembershipRecord]:
        self._entry.check()
        wanted = [
            Key(self._layout.bucket(state, shard), batch_id)
            for state, batch_id in keys
            for shard in self._shards.places(batch_id)
        ]
        found: dict[tuple[str, str], MembershipRecord] = {}
        for record in self._requests.get_many(wanted, self._layout.read_record).values():
            known = found.get((record.state, record.batch_id))
            if known is None or known.version < record.version:
                found[record.state, record.batch_id] = record
        return list(found.values())

    def list_records(self, state: str, cursor: str | None = None, *, limit: int = 500) -> Page[MembershipRecord]:
        self._entry.check()
        ends: list[tuple[int, str | None]] = (
            [(shard, None) for shard in self._shards.all] if cursor is None else json.loads(cursor)
        )
        now, later = ends[: max(limit, 1)], ends[max(limit, 1) :]
        each = max(limit // len(now), 1)
        pages = self._requests.side_by_side(
            lambda end: self._requests.query(self._layout.bucket(state, end[0]), end[1], each), now
        )
        left = [(shard, page.last) for (shard, _), page in zip(now, pages, strict=True) if page.last is not None]
        records = [self._layout.read_record(item) for page in pages for item in page.items]
        return Page(records, json.dumps([*later, *left]) if later or left else None)

    def put_associations(self, associations: Sequence[Association]) -> list[Outcome]:
        checked = [(association, self._refusal(association, check_association)) for association in associations]
        self._entry.check()
        return self._each(checked, lambda pair: (pair[0].request_id, pair[0].batch_id), self._associate)

    def list_associations(self, request_id: str) -> list[Association]:
        items = self._requests.query_all(self._layout.attempts(request_id))
        return [self._layout.read_association(item) for item in items]

    def list_retired(self, cursor: str | None = None, *, limit: int = 500) -> Page[Batch | Unreadable]:
        self._entry.check()
        return self._retired.page(cursor, limit)

    def delete_batches(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        outcomes = [self._refusal(record_of(batch), check_record) for batch in batches]
        self._entry.check()
        sound = [batch for batch, outcome in zip(batches, outcomes, strict=True) if outcome is None]
        deleted = iter(self._retired.delete(sound, states))
        return [next(deleted) if outcome is None else outcome for outcome in outcomes]

    def list_queues(self) -> list[str]:
        return sorted(read_text(item, "sk") for item in self._requests.query_all(QUEUES))

    def scan(self, kind: Kind, cursor: str | None = None, *, limit: int = 500) -> Page[object]:
        prefix, read = self._of_kind(kind)
        after = None if cursor is None else Key(*json.loads(cursor))
        items, last = self._requests.scan(prefix, after, limit)
        return Page([read(item) for item in items], None if last is None else json.dumps(last))

    def close(self) -> None:
        self._requests.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _of_kind(self, kind: Kind) -> tuple[str, Callable[[Item], object]]:
        if kind == "batches":
            return self._layout.batches, self._layout.read_row
        if kind == "records":
            return self._layout.records, self._layout.read_record
        return self._layout.requests, self._layout.read_association

    def _each(
        self, things: Sequence[Thing], row_of: Callable[[Thing], Hashable], write: Callable[[Thing], Outcome]
    ) -> list[Outcome]:
        """Do `write` for each of these, side by side, but those of one row one after the other, in their order."""
        places: dict[Hashable, list[int]] = {}
        for place, thing in enumerate(things):
            places.setdefault(row_of(thing), []).append(place)
        outcomes: list[Outcome] = [None] * len(things)

        def write_in_order(mine: list[int]) -> None:
            for place in mine:
                outcomes[place] = _outcome_of(write, things[place])

        self._requests.side_by_side(write_in_order, places.values())
        return outcomes

    def _create(self, pair: tuple[Batch, BatchRow | BatchStateError]) -> Outcome:
        batch, row = pair
        if isinstance(row, BatchStateError):
            return row
        if row.retired_at is None:
            return self._insert(batch, row)
        return self._filed(batch, lambda: self._insert(batch, row))

    def _insert(self, batch: Batch, row: BatchRow) -> Outcome:
        key = self._layout.row(row.id)
        try:
            self._requests.call("put_item", **insert_row(key, row))
        except ConditionFailedError as failed:
            return self._judge_creation(batch, key, failed)
        return None

    def _judge_creation(self, batch: Batch, key: Key, failed: ConditionFailedError) -> Outcome:
        met = self._met(key, failed)
        if met is None:
            raise StorageUnavailableError(f"batch {batch.id!r} came and went while it was created") from failed
        return judge_creation(batch, met)

    def _swap(self, pair: tuple[Swap, BatchRow | BatchStateError]) -> Outcome:
        swap, row = pair
        if isinstance(row, BatchStateError):
            return row
        if row.retired_at is not None:
            return self._retire(swap, row)
        return self._update(swap, row)

    def _update(self, swap: Swap, row: BatchRow) -> Outcome:
        key = self._layout.row(row.id)
        try:
            self._requests.call("update_item", **update_row(key, swap.before, row))
        except ConditionFailedError as failed:
            return judge_swap(swap, self._met(key, failed))
        return None

    def _retire(self, swap: Swap, row: BatchRow) -> Outcome:
        return self._filed(swap.after, lambda: self._update(swap, row))

    def _filed(self, batch: Batch, write: Callable[[], Outcome]) -> Outcome:
        """File a row for `list_retired` before it is seen to be retired; take that back where it never is."""
        entry = self._retired.key(batch)
        self._requests.call("put_item", Item=item_key(entry))
        outcome = write()
        if outcome is not None:
            self._requests.delete_many([entry])
        return outcome

    def _met(self, key: Key, failed: ConditionFailedError) -> Batch | Unreadable | None:
        """Answer the row that a failed condition met; read it where the backend did not return it."""
        item = failed.item if failed.item is not None else self._requests.get(key)
        return None if item is None else self._layout.read_row(item)

    def _write_records(
        self, records: Sequence[MembershipRecord], write: Callable[[MembershipRecord], None]
    ) -> list[Outcome]:
        checked = [(record, self._refusal(record, check_record)) for record in records]
        self._entry.check()

        def write_one(pair: tuple[MembershipRecord, Outcome]) -> Outcome:
            if pair[1] is None:
                write(pair[0])
            return pair[1]

        return self._each(checked, lambda pair: (pair[0].state, pair[0].batch_id), write_one)

    def _put(self, record: MembershipRecord) -> None:
        key = Key(self._layout.bucket(record.state, self._shards.home(record.batch_id)), record.batch_id)
        self._requests.attempt("put_item", **put_record(key, record.version))

    def _delete(self, record: MembershipRecord) -> None:
        for shard in self._shards.places(record.batch_id):
            key = Key(self._layout.bucket(record.state, shard), record.batch_id)
            self._requests.attempt("delete_item", **delete_record(key, record.version))

    def _associate(self, pair: tuple[Association, Outcome]) -> Outcome:
        association, refusal = pair
        if refusal is None:
            key = Key(self._layout.attempts(association.request_id), association.batch_id)
            self._requests.attempt("put_item", **insert_association(key, association.outcome))
        return refusal

    def _refusal(self, thing: Thing, check: Callable[[Thing, str], None]) -> Outcome:
        try:
            check(thing, self._queue)
        except BatchStateError as error:
            return error
        return None


def _outcome_of(write: Callable[[Thing], Outcome], thing: Thing) -> Outcome:
    """Answer what became of one item, so that what the service refuses of it costs the others nothing."""
    try:
        return write(thing)
    except InvalidValueError as error:
        return error


def _default_client(threads: int) -> Callable[[], DynamoDBClient]:
    from batchstate_dynamodb.opening import make_client  # noqa: PLC0415 - importing boto3 takes a while

    return lambda: make_client(threads=threads)
