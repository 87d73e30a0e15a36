"""The claim half on a Valkey server of its own, on this machine, and what waking saves over polling."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

from batchstate import BatchQueue, Done, JobPolicy, JobSpec
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
        yield _waking(client)


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


def _waking(client: Redis) -> Race:
    """From adding a job to having claimed it in a loop that waits for work."""
    client.flushall()
    polled, woken = Waiting(client, "polled", poll="100ms", deaf=True), Waiting(client, "woken", poll="10s")
    contestants = [
        Contestant("polling every 100 ms", lambda _: polled.add(), polled.rest),
        Contestant("woken", lambda _: woken.add(), woken.rest),
    ]
    result = race("valkey: from add to claim, while waiting", 1, contestants)
    polled.close()
    woken.close()
    return result


class Waiting:
    """A loop that waits for work in a thread, and whoever gives it some."""

    def __init__(self, client: Redis, name: str, *, poll: str, deaf: bool = False) -> None:
        store = RedisStorage(client, name, prefix="waiting")
        if deaf:
            store.listen = lambda nudge: lambda: None  # type: ignore[method-assign] # noqa: ARG005
        self._queue = BatchQueue(store)
        self._poll = poll
        self._claimed = threading.Semaphore(0)
        self._added = 0
        threading.Thread(target=self._follow, daemon=True).start()

    def rest(self) -> None:
        """Let the loop find nothing and wait, for any part of its poll."""
        time.sleep(random.uniform(0.05, 0.2))

    def add(self) -> None:
        """Add a job and wait until it is claimed."""
        self._added += 1
        self._queue.add(f"job-{self._added}")
        self._claimed.acquire()

    def close(self) -> None:
        """End the loop with a last job."""
        self._queue.add("last")
        self._claimed.acquire()
        self._queue.close()

    def _follow(self) -> None:
        for claim in self._queue.claims(1, follow=True, poll=self._poll):
            self._claimed.release()
            claim.settle({job.id: Done() for job in claim})
            if claim.jobs[0].id == "last":
                return
