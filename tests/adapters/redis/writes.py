"""Every write of the adapter, each with what the store must look like once it was applied, once or twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import attrs

from batchstate.creation import create_batch
from batchstate.entities import Association, Batch, MembershipRecord
from batchstate.tidying import retire
from batchstate.transition import record_of, transition
from tests.adapters.redis.given import STATES, made, new

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate_redis import RedisStorage

    Write: TypeAlias = Callable[[RedisStorage], Callable[[], object]]
    """Prepares a store, and answers the write and nothing but the write."""


def _create(store: RedisStorage) -> Callable[[], object]:
    return lambda: create_batch(store, new())


def _move(store: RedisStorage) -> Callable[[], object]:
    batch = made(store)
    return lambda: transition(store, batch, "testing")


def _retire(store: RedisStorage) -> Callable[[], object]:
    batch = made(store)
    return lambda: retire(store, batch)


def _put_record(store: RedisStorage) -> Callable[[], object]:
    batch = made(store)
    return lambda: store.put_records([attrs.evolve(record_of(batch), state="merging")])


def _delete_record(store: RedisStorage) -> Callable[[], object]:
    batch = made(store)
    return lambda: store.delete_records([record_of(batch)])


def _put_association(store: RedisStorage) -> Callable[[], object]:
    made(store)
    return lambda: store.put_associations([Association("q", "r-9", "b", "done")])


def _delete(store: RedisStorage) -> Callable[[], object]:
    batch = retire(store, made(store))
    return lambda: store.delete_batches([batch], STATES)


WRITES: dict[str, Write] = {
    "create": _create,
    "move": _move,
    "retire": _retire,
    "put a record": _put_record,
    "delete a record": _delete_record,
    "put an association": _put_association,
    "delete": _delete,
}


def contents(store: RedisStorage) -> dict[str, object]:
    """Answer all that the store holds of the queue, but for marks and times, which differ from run to run."""
    rows = [row for row in store.get_batches(["b"]).values() if isinstance(row, Batch)]
    return {
        "queues": store.list_queues(),
        "rows": [(row.state, row.version, row.entered, bool(row.retired_at), len(row.history)) for row in rows],
        "records": [_records(store, state) for state in STATES],
        "associations": [store.list_associations(request) for request in ("r-1", "r-2", "r-9")],
        "retired": len(store.list_retired().items),
    }


def _records(store: RedisStorage, state: str) -> list[MembershipRecord]:
    return list(store.list_records(state).items)
