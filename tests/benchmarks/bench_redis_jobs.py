"""The claim half on a Valkey server of its own, on this machine: claiming and settling one by one and by 50.

The floors show what a claim's batch costs, and the associations by which every attempt at a job is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

from batchstate import BatchQueue, JobPolicy, JobSpec
from batchstate_redis import RedisStorage
from tests.benchmarks.bench_claims import LINES, work
from tests.benchmarks.bench_redis import cpu_of
from tests.benchmarks.racing import Contestant, Race, race
from tests.benchmarks.redis_job_floor import RedisJobFloor
from tests.servers.redis_servers import Make, RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

__all__ = ["valkey"]

ROUNDS = 15
JOBS_A_ROUND = {1: 150, 50: 1_000}
"""How many jobs each claims and settles in a round, by how many it claims together: some 50 ms of work."""


def valkey() -> Iterator[Race]:
    """Valkey."""
    with RedisServer(Make.VALKEY) as server, server.client() as client:
        for waiting in LINES[:2]:
            for together in JOBS_A_ROUND:
                yield _claims(client, waiting, together)


def _filled(client: Redis, prefix: str, waiting: int) -> BatchQueue:
    queue = BatchQueue(RedisStorage(client, "bench", prefix=prefix), by="bench", policy=JobPolicy(max_stalls=100))
    queue.add_many(JobSpec(f"job-{n:06}", {"n": n, "path": "kombu/transport/base.py"}) for n in range(waiting))
    return queue


def _claims(client: Redis, waiting: int, together: int) -> Race:
    client.flushall()
    jobs = JOBS_A_ROUND[together]
    enough = waiting + jobs * (ROUNDS + 3)
    queue = _filled(client, "ours", enough)
    floors = {
        "floor, which does less": RedisJobFloor(client, "floor", enough),
        "floor and the batch's row": RedisJobFloor(client, "rows", enough, rows=True),
        "floor and associations": RedisJobFloor(client, "associations", enough, associations=True),
        "floor and both": RedisJobFloor(client, "both", enough, rows=True, associations=True),
    }
    work(queue, together, together)  # has the server know the scripts
    with patch.object(client, "execute_command", wraps=client.execute_command) as sent:
        work(queue, together, together)
        trips = sent.call_count

    def by_hand(floor: RedisJobFloor) -> None:
        for _ in range(jobs // together):
            floor.work(together)

    return race(
        f"valkey: jobs by {together}, {waiting:,} waiting, {trips} round trips",
        jobs,
        [
            *[Contestant(name, lambda _, floor=floor: by_hand(floor)) for name, floor in floors.items()],  # type: ignore[misc]
            Contestant("batchstate", lambda _: work(queue, together, jobs)),
        ],
        rounds=ROUNDS,
        cpu=cpu_of(client),
    )
