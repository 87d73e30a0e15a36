"""Who waits for jobs is woken by whoever makes some claimable, in whatever process, and once."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from batchstate.job_calls import Claiming, Settling
from batchstate.job_storage import Wakeable
from batchstate.queue import BatchQueue
from batchstate_redis import RedisStorage
from batchstate_redis.keys import Keys
from tests.adapters.redis.jobs_given import added, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from redis import Redis

    from batchstate.jobs import Job
    from tests.servers.cluster import ClusterEndpoint
    from tests.servers.fixtures import StartRedis
    from tests.servers.redis_servers import RedisEndpoint

SOON = 5.0
"""Seconds within which a machine that is busy with other things must have woken somebody who was told."""


class Sleeper:
    """Counts how often it was woken."""

    def __init__(self) -> None:
        self.times = 0
        self._woken = threading.Event()

    def __call__(self) -> None:
        """Wake."""
        self.times += 1
        self._woken.set()

    def slept(self, seconds: float) -> bool:
        """Answer whether nobody woke us for so long."""
        return not self._woken.wait(seconds)

    def again(self) -> None:
        """Sleep again."""
        self._woken.clear()


@contextmanager
def asleep(store: RedisStorage, client: Redis) -> Iterator[Sleeper]:
    """Listen, and have found nothing to do, as a consumer that waits."""
    sleeper = Sleeper()
    channel = _channel(store)
    forget = store.listen(sleeper)
    _until(lambda: _listeners(client, channel) > 0)
    assert not sleeper.slept(SOON)  # it looks once when it has begun to listen
    sleeper.again()
    assert store.claim_jobs(Claiming("none", 1, 1_000, "m", group="nobody's")) is None
    yield sleeper
    forget()
    store.close()


def _channel(store: RedisStorage) -> str:
    return Keys(store._prefix, store.queue).job_part("wake").decode()


def _listeners(client: Redis, channel: str) -> int:
    [(_, count)] = client.pubsub_numsub(channel)
    return int(count)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _settled(store: RedisStorage, verdict: str, delay: int = 0) -> Callable[[], object]:
    added(store, "a")
    claim = taken(store)
    settling = Settling("a", verdict, "no", delay)  # type: ignore[arg-type] # it is a verdict
    return lambda: store.settle_jobs(claim.batch.id, [settling], keep_done=0)


def _freed(store: RedisStorage) -> Callable[[], object]:
    store.set_ceiling("g", 1)
    added(store, "ab", group="g")
    claim = taken(store)
    return lambda: store.settle_jobs(claim.batch.id, [Settling("a", "complete")], keep_done=0)


def _lapsed(store: RedisStorage) -> Callable[[], object]:
    added(store, "a")
    taken(store, lease=1)
    _until(lambda: store.count_jobs().lapsed == 1)
    return lambda: store.sweep_jobs(9, max_stalls=1)


def _dead(store: RedisStorage) -> Callable[[], object]:
    _settled(store, "dead")()
    return lambda: store.revive_jobs(["a"])


def _paused(store: RedisStorage) -> Callable[[], object]:
    store.set_paused(None, "why")
    added(store, "a")
    return lambda: store.set_paused(None, None)


def _full(store: RedisStorage) -> Callable[[], object]:
    store.set_ceiling(None, 1)
    added(store, "ab")
    taken(store)
    return lambda: store.set_ceiling(None, None)


WAYS: dict[str, Callable[[RedisStorage], Callable[[], object]]] = {
    "add": lambda store: lambda: added(store, "a"),
    "release": lambda store: _settled(store, "release"),
    "retry at once": lambda store: _settled(store, "retry"),
    "free a slot": _freed,
    "sweep": _lapsed,
    "revive": _dead,
    "resume": _paused,
    "raise the ceiling": _full,
}


@pytest.mark.parametrize("way", WAYS)
def test_whoever_waits_is_woken(store: RedisStorage, client: Redis, prefix: str, way: str) -> None:
    """Whatever makes a job claimable wakes who waits in another process, long before it would look by itself."""
    call = WAYS[way](store)
    with asleep(RedisStorage(client, "q", prefix=prefix), client) as sleeper:
        call()
        assert not sleeper.slept(SOON)


def test_nobody_is_woken_for_nothing(store: RedisStorage, client: Redis, prefix: str) -> None:
    """What makes nothing claimable wakes nobody, and neither does another queue."""
    with asleep(RedisStorage(client, "q", prefix=prefix), client) as sleeper:
        added(RedisStorage(client, "other", prefix=prefix), "a")
        added(store, "b", delay=600_000)
        store.set_paused("g", "why")
        assert store.claim_jobs(Claiming("c", 1, 1_000, "m")) is None
        assert sleeper.slept(0.2)


def test_a_busy_queue_publishes_nothing(store: RedisStorage, client: Redis, prefix: str) -> None:
    """Nobody is told of jobs while nobody has found too little, and then it is told once, however much is added."""
    with asleep(RedisStorage(client, "q", prefix=prefix), client) as sleeper:
        before = sleeper.times
        for number in range(20):
            added(store, [f"{number}-a", f"{number}-b"])
        assert not sleeper.slept(SOON)
        added(store, "z")
        assert sleeper.times == before + 1
        assert len(taken(store).jobs) == 41
        sleeper.again()
        added(store, "y")
        assert sleeper.slept(0.2)
        taken(store)
        assert store.claim_jobs(Claiming("c", 1, 1_000, "m")) is None
        added(store, "x")
        assert not sleeper.slept(SOON)


def test_many_are_woken_one_after_the_other(store: RedisStorage, client: Redis, prefix: str) -> None:
    """A thousand who wait are all woken, over a while, and one alone at once."""
    listener = RedisStorage(client, "q", prefix=prefix)
    with asleep(listener, client):
        woken: list[float] = []
        forget = [listener.listen(lambda: woken.append(time.monotonic())) for _ in range(1_000)]
        added(store, "a")
        _until(lambda: len(woken) == 1_000)
        assert woken[-1] - woken[0] > 0.05
        for call in forget:
            call()


def test_the_connection_is_one_and_goes_with_the_last(client: Redis, prefix: str) -> None:
    """A storage listens on one connection, whoever many wait, and on none when nobody does."""
    store = RedisStorage(client, "q", prefix=prefix)
    assert isinstance(store, Wakeable)
    forget = [store.listen(Sleeper()) for _ in range(50)]
    _until(lambda: _listeners(client, _channel(store)) == 1)
    for call in forget:
        call()
        call()
    _until(lambda: _listeners(client, _channel(store)) == 0)
    again = store.listen(Sleeper())
    _until(lambda: _listeners(client, _channel(store)) == 1)
    store.close()
    _until(lambda: _listeners(client, _channel(store)) == 0)
    again()


def test_a_lost_connection_is_made_again(store: RedisStorage, client: Redis, prefix: str) -> None:
    """When its connection is cut, a storage listens anew, and looks once for what it may have missed."""
    with asleep(RedisStorage(client, "q", prefix=prefix), client) as sleeper:
        for entry in client.client_list(_type="pubsub"):
            client.client_kill_filter(_id=entry["id"])
        assert not sleeper.slept(SOON)
        sleeper.again()
        assert store.claim_jobs(Claiming("c", 1, 1_000, "m")) is None
        added(store, "a")
        assert not sleeper.slept(SOON)


def test_a_user_without_the_right_to_the_channel_does_without(valkey_server: RedisEndpoint, prefix: str) -> None:
    """Where the user may not publish, jobs are added and claimed all the same."""
    with valkey_server.client() as admin:
        admin.acl_setuser("mute", enabled=True, nopass=True, keys=["*"], commands=["+@all"], reset_channels=True)
        with valkey_server.client(username="mute", password="any") as client:  # noqa: S106 - it has none
            store = RedisStorage(client, "q", prefix=prefix)
            assert store.claim_jobs(Claiming("none", 1, 1_000, "m")) is None
            added(store, "a")
            assert [job.id for job in taken(store).jobs] == ["a"]


def test_a_queue_that_follows_is_served_at_once(store: RedisStorage, client: Redis, prefix: str) -> None:
    """A loop that follows the queue gets a job long before its poll is over."""
    q = BatchQueue(RedisStorage(client, "q", prefix=prefix))
    served: list[tuple[Job, ...]] = []

    def follow() -> None:
        for claim in q.claims(5, follow=True, poll="60s"):
            served.append(claim.jobs)
            claim.release()
            return

    worker = threading.Thread(target=follow, daemon=True)
    worker.start()
    _until(lambda: _listeners(client, _channel(store)) > 0)
    _until(lambda: client.hexists(Keys(prefix, "q").jobs.decode(), "idle"))
    added(store, "a")
    worker.join(SOON)
    assert [[job.id for job in jobs] for jobs in served] == [["a"]]


def test_on_a_cluster(valkey_cluster: ClusterEndpoint, prefix: str) -> None:
    """On a cluster who waits is woken as well."""
    with valkey_cluster.client() as client:
        sleeper = Sleeper()
        store = RedisStorage(client, "q", prefix=prefix)
        forget = store.listen(sleeper)
        assert not sleeper.slept(SOON)
        sleeper.again()
        assert store.claim_jobs(Claiming("none", 1, 1_000, "m")) is None
        added(RedisStorage(client, "q", prefix=prefix), "a")
        assert not sleeper.slept(SOON)
        forget()
        store.close()


def test_a_server_that_is_away_is_tried_again(start_redis: StartRedis) -> None:
    """While the server is away the listener keeps trying, without noise, and listens when it is back."""
    server = start_redis("valkey")
    with server.client() as client:
        store = RedisStorage(client, "q", patience=0.1)
        with asleep(store, client) as sleeper:
            server.kill()
            time.sleep(0.2)
            server.start()
            assert not sleeper.slept(SOON)
