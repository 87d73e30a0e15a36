"""The claim half on a Valkey server of its own, on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate import BatchQueue, JobPolicy, JobSpec
from batchstate_redis import RedisStorage
from tests.benchmarks.bench_claims import JOBS_A_ROUND, LINES, ROUNDS, work
from tests.benchmarks.racing import Contestant, Race, race
from tests.benchmarks.redis_job_floor import RedisJobFloor
from tests.servers.redis_servers import Make, RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

__all__ = ["valkey"]


def valkey() -> Iterator[Race]:
    """Valkey."""
    with RedisServer(Make.VALKEY) as server, server.client() as client:
        for waiting in LINES[:2]:
            for together in (1, 50):
                yield _claims(client, waiting, together)


def _filled(client: Redis, prefix: str, waiting: int) -> BatchQueue:
    queue = BatchQueue(RedisStorage(client, "bench", prefix=prefix), by="bench", policy=JobPolicy(max_stalls=100))
    queue.add_many(JobSpec(f"job-{n:06}", {"n": n, "path": "kombu/transport/base.py"}) for n in range(waiting))
    return queue


def _claims(client: Redis, waiting: int, together: int) -> Race:
    client.flushall()
    enough = waiting + JOBS_A_ROUND * (ROUNDS + 2)
    queue = _filled(client, "ours", enough)
    floor = RedisJobFloor(client, "floor", enough)
    batches = RedisJobFloor(client, "batches", enough, batches=True)

    def by_hand(floor: RedisJobFloor) -> None:
        for _ in range(JOBS_A_ROUND // together):
            floor.work(together)

    return race(
        f"valkey: claim and settle by {together}, {waiting:,} waiting",
        JOBS_A_ROUND,
        [
            Contestant("floor, which does less", lambda _: by_hand(floor)),
            Contestant("floor with batch and associations", lambda _: by_hand(batches)),
            Contestant("batchstate", lambda _: work(queue, together)),
        ],
        rounds=ROUNDS,
    )
