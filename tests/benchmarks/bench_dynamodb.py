"""DynamoDB: loads and moves on an emulator beside the bare client, and a listing of ten thousand at 5 ms an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate import Batch, create_batch, list_by_states, transition
from batchstate.wire import encode_batch
from batchstate_dynamodb import DynamoDBStorage, create_table, make_client
from batchstate_dynamodb.layout import Layout, record_item, row_item
from batchstate_dynamodb.sharding import DEFAULT_SHARDS, Shards
from batchstate_memory import MemoryStorage
from tests.benchmarks.batches import FLOW, filled, new_batch
from tests.benchmarks.dynamodb_floor import DynamoDBFloor
from tests.benchmarks.dynamodb_service import Service
from tests.benchmarks.racing import Contestant, Race, race
from tests.servers.dynamo_servers import DynaliteServer, dummy_credentials

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batchstate.storage import Storage

__all__ = ["dynamodb"]

TABLE = "bench"
OPERATIONS = 50
LISTED = 10_000
THREADS = 16
SERVICE_SECONDS = 0.005


def dynamodb() -> Iterator[Race]:
    """Dynalite for single operations, a service that takes 5 ms for the listing."""
    with dummy_credentials():
        with DynaliteServer() as server:
            client = server.client()
            create_table(client, TABLE)
            with DynamoDBStorage(TABLE, "bench", client=client) as store:
                floor = DynamoDBFloor(client, TABLE, "bench", THREADS)
                yield _moves(store, floor)
                yield _loads(store, floor)
                floor.close()
        yield _listing()


def _moves(store: DynamoDBStorage, floor: DynamoDBFloor) -> Race:
    numbers = iter(range(1_000_000))

    def fresh() -> list[Batch]:
        return [create_batch(store, new_batch(store, next(numbers))) for _ in range(OPERATIONS)]

    def by_floor(batches: object) -> None:
        for batch in _batches(batches):
            floor.move(batch, "testing", 1_800_000_000_000)

    def by_ours(batches: object) -> None:
        for batch in _batches(batches):
            transition(store, batch, "testing", lifecycle=FLOW, by="bench")

    return race(
        "dynamodb: transitions one by one",
        OPERATIONS,
        [Contestant("floor", by_floor, fresh), Contestant("batchstate", by_ours, fresh)],
        rounds=12,
    )


def _loads(store: DynamoDBStorage, floor: DynamoDBFloor) -> Race:
    ids = [create_batch(store, new_batch(store, 2_000_000 + number)).id for number in range(OPERATIONS)]

    def by_floor(_: object) -> None:
        for batch_id in ids:
            floor.load(batch_id)

    def by_ours(_: object) -> None:
        for batch_id in ids:
            store.get_batches([batch_id])

    return race(
        "dynamodb: loads one by one",
        OPERATIONS,
        [Contestant("floor", by_floor), Contestant("batchstate", by_ours)],
        rounds=12,
    )


def _listing() -> Race:
    client = make_client(region="eu-west-1", threads=THREADS)
    layout, shards = Layout("bench"), Shards(DEFAULT_SHARDS)
    items = []
    for batch in filled(MemoryStorage("bench"), LISTED):
        items.append(row_item(layout.row(batch.id), encode_batch(batch, "bench")))
        bucket = layout.bucket(batch.state, shards.home(batch.id))
        items.append(record_item(layout.row(batch.id)._replace(pk=bucket, sk=batch.id), batch.version))
    Service(client, items, SERVICE_SECONDS)
    floor = DynamoDBFloor(client, TABLE, "bench", THREADS)
    store: Storage = DynamoDBStorage(TABLE, "bench", client=client, threads=THREADS)

    def check(found: Sequence[object]) -> None:
        if len(found) != LISTED:
            raise AssertionError(len(found))

    return race(
        f"dynamodb: listing {LISTED:,} at 5 ms",
        LISTED,
        [
            Contestant("floor", lambda _: check(floor.list_state("queued"))),
            Contestant("batchstate", lambda _: check(list_by_states(store, ["queued"], lifecycle=FLOW))),
        ],
        rounds=7,
    )


def _batches(batches: object) -> list[Batch]:
    if not isinstance(batches, list):
        raise TypeError(batches)
    return batches
