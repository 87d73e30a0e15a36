"""Changing the number of shards, while workers go on.

Each step is rolled out to every worker before the next begins:

1. `shards=4, other_shards=16`: everybody still puts into 4, and looks and deletes in 16 as well;
2. `shards=16, other_shards=4`: everybody puts into 16, and looks and deletes in 4 as well;
3. `reshard(storage)`, on a storage opened like that, moves what still lies in the old shards;
4. `shards=16`.

At no time is a record put where somebody does not look for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batchstate.errors import InvalidValueError
from batchstate_dynamodb.expressions import delete_record, put_record
from batchstate_dynamodb.layout import Filing, Key, item_key, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batchstate_dynamodb.layout import Layout
    from batchstate_dynamodb.queues import QueueEntry
    from batchstate_dynamodb.requests import Requests
    from batchstate_dynamodb.sharding import Shards
    from batchstate_dynamodb.storage import DynamoDBStorage

__all__ = ["Parts", "reshard"]


class Parts(NamedTuple):
    """What a storage is made of.

    Attributes:
        requests: the way to the table.
        layout: where things lie.
        shards: over how many partitions they are spread.
        entry: the queue's entry.
    """

    requests: Requests
    layout: Layout
    shards: Shards
    entry: QueueEntry


def reshard(storage: DynamoDBStorage) -> int:
    """Move everything of the queue that is sharded to where `storage` puts it, each put before it is deleted.

    Safe beside working pipelines, and when called again after it was interrupted. It goes through
    the whole table.

    Args:
        storage: opened with the new number as `shards` and the old one as `other_shards`.

    Returns:
        How many records and entries of retired rows it moved.

    Raises:
        InvalidValueError: the storage was opened with one number only. Nothing was written.
        StorageUnavailableError: the store could not be reached. What was moved is moved; call it
            again.
    """
    parts = storage.parts
    if len(parts.shards.counts) == 1:
        msg = "open the storage with shards= the new number and other_shards= the old one, and tell every worker first"
        raise InvalidValueError(msg)
    moved = 0
    for page in _pages(parts):
        parts.requests.side_by_side(lambda record: _move_record(parts, *record), page)
        moved += len(page)
    for shard in parts.shards.all:
        moved += _move_retired(parts, shard)
    parts.entry.change()
    return moved


def _pages(parts: Parts) -> Iterator[list[tuple[Key, int]]]:
    """Go through the records that lie elsewhere than where they are put."""
    last: Key | None = None
    while True:
        items, last = parts.requests.scan(parts.layout.records, last, None)
        records = [(Key(item["pk"]["S"], item["sk"]["S"]), parts.layout.read_record(item)) for item in items]
        yield [
            (key, record.version)
            for key, record in records
            if key.pk != parts.layout.bucket(record.state, parts.shards.home(record.batch_id))
        ]
        if last is None:
            return


def _move_record(parts: Parts, key: Key, version: int) -> None:
    _, _, state = key.pk.removeprefix(parts.layout.records).partition("#")
    home = Key(parts.layout.bucket(state, parts.shards.home(key.sk)), key.sk)
    parts.requests.attempt("put_item", **put_record(home, version))
    parts.requests.attempt("delete_item", **delete_record(key, version))


def _move_retired(parts: Parts, shard: int) -> int:
    bucket = parts.layout.retired(shard)
    moves = []
    for item in parts.requests.query_all(bucket):
        sk = read_text(item, "sk")
        home = parts.layout.retired(parts.shards.home(Filing.of(sk).batch_id))
        if home != bucket:
            moves.append((Key(home, sk), Key(bucket, sk)))
    parts.requests.side_by_side(lambda move: parts.requests.call("put_item", Item=item_key(move[0])), moves)
    parts.requests.delete_many(old for _, old in moves)
    return len(moves)
