"""The lifecycle half on a Valkey or Redis server of its own, on this machine."""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING

from batchstate_redis import RedisStorage
from tests.benchmarks.batches import filled
from tests.benchmarks.bench_lifecycle import LISTED, listing, transitions
from tests.benchmarks.redis_floor import RedisFloor
from tests.servers.redis_servers import Make, RedisServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from redis import Redis

    from tests.benchmarks.racing import Race

__all__ = ["cpu_of", "redis7", "valkey"]

NOW = 1_800_000_000_000


def valkey() -> Iterator[Race]:
    """Valkey."""
    return _lifecycle(Make.VALKEY)


def redis7() -> Iterator[Race]:
    """Redis 7."""
    return _lifecycle(Make.REDIS7)


def cpu_of(client: Redis) -> Callable[[], float]:
    """Answer what tells how many seconds of the processor's time this process and the server have used together."""

    def used() -> float:
        told = client.info("cpu")
        return process_time() + float(told["used_cpu_user"]) + float(told["used_cpu_sys"])

    return used


def _lifecycle(make: Make) -> Iterator[Race]:
    with RedisServer(make) as server, server.client() as client:
        floor = RedisFloor(client, filled(RedisStorage(client, "bench", prefix="made"), 300))
        store = RedisStorage(client, "bench", prefix="moved")
        yield from transitions(make, store, lambda places, to: floor.move(places, to, NOW), cpu_of(client))
        listed = RedisStorage(client, "bench", prefix="listed")
        filled(listed, LISTED)
        yield listing(make, listed, lambda: floor.list_state("listed", "queued"), cpu_of(client))
