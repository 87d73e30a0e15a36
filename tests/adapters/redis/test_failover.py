"""Failovers: on a cluster, behind sentinels, and of a server that turns into a replica under its clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from batchstate.errors import StorageUnavailableError
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.transition import transition
from batchstate.urls import open_storage
from batchstate_redis import RedisStorage
from batchstate_redis.keys import Keys
from tests.adapters.redis.given import made
from tests.adapters.redis.writes import WRITES
from tests.servers.ports import wait_until
from tests.servers.redis_servers import Make

if TYPE_CHECKING:
    from tests.servers.cluster import ClusterEndpoint, ValkeyCluster
    from tests.servers.fixtures import StartRedis
    from tests.servers.redis_servers import RedisServer
    from tests.servers.sentinel import RedisSentinel


def test_queues_live_on_every_primary(valkey_cluster: ClusterEndpoint, prefix: str) -> None:
    """Queues spread over the primaries, and each works where it is, also when that primary alone lost its scripts."""
    with valkey_cluster.client() as client:
        stores = [RedisStorage(client, f"q-{number}", prefix=prefix) for number in range(12)]
        batches = [made(store) for store in stores]
        homes = {client.get_node_from_key(Keys(prefix, store.queue).count.decode()).name for store in stores}
        assert len(homes) == 3
        for primary in client.get_primaries():
            client.get_redis_connection(primary).script_flush()
            batches = [
                transition(store, batch, "testing" if batch.state == "queued" else "queued")
                for store, batch in zip(stores, batches, strict=True)
            ]
        for store, batch in zip(stores, batches, strict=True):
            assert list_by_states(store, ["queued", "testing"]) == [batch]
            assert find_by_request_id(store, "r-1") == ((batch,), 0)
        assert stores[0].list_queues() == sorted(store.queue for store in stores)


@pytest.mark.timeout(180)
def test_a_cluster_fails_over(breakable_cluster: ValkeyCluster, prefix: str) -> None:
    """When the primary of a queue dies, the same storage goes on with the replica, whose script cache is empty."""
    store = open_storage(f"{breakable_cluster.url}?prefix={prefix}&patience=30s", queue="q")
    with store:
        batch = made(store)
        key = Keys(prefix, "q").batch("b").decode()
        with breakable_cluster.primary_of(key).client() as direct:
            _wait_for_replica(direct, Keys(prefix, "q").state("sign").decode())
        breakable_cluster.wait_until_whole()
        breakable_cluster.kill_primary_of(key)

        moved = transition(store, batch, "testing")

        assert list_by_states(store, ["queued", "testing"]) == [moved]


@pytest.mark.timeout(180)
def test_sentinels_fail_over(breakable_sentinel: RedisSentinel, prefix: str) -> None:
    """When the primary dies, the same storage goes on with the server that the sentinels name."""
    with open_storage(f"{breakable_sentinel.url}?prefix={prefix}&patience=30s", queue="q") as store:
        batch = made(store)
        with breakable_sentinel.primary().client() as direct:
            _wait_for_replica(direct, "sign")
        breakable_sentinel.wait_until_whole()
        breakable_sentinel.primary().kill()

        moved = transition(store, batch, "testing")

        assert list_by_states(store, ["queued", "testing"]) == [moved]


@pytest.mark.parametrize("make", [Make.VALKEY, Make.REDIS7, Make.REDIS62])
def test_a_demoted_primary_is_an_outage_until_it_is_promoted(start_redis: StartRedis, make: Make) -> None:
    """A server that became a replica answers writes with a retryable error; promoted again, it takes them at once."""
    server, other = start_redis(make), start_redis(make)
    with _impatient(server) as client, other.client() as direct:
        store = RedisStorage(client, "q", patience=0.2)
        batch = made(store)
        _follow(client, other, direct)

        with pytest.raises(StorageUnavailableError, match=r"replica") as refused:
            made(store, "another")

        assert refused.value.retryable
        client.replicaof("NO", "ONE")
        batch = made(store, "after")
        assert transition(store, batch, "testing").version == 2


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("make", [Make.VALKEY, Make.REDIS62])
def test_what_a_replica_does_not_know_is_no_answer(start_redis: StartRedis, make: Make, write: str) -> None:
    """A replica's rows may be old: it says neither that a row is absent, nor that all is done, nor who won."""
    server, other = start_redis(make), start_redis(make)
    with _impatient(server) as client, other.client() as direct:
        store = RedisStorage(client, "q", patience=0.01)
        call = WRITES[write](store)
        made(RedisStorage(direct, "q"))  # what the replica knows of the batch is another's
        _follow(client, other, direct)
        with pytest.raises(StorageUnavailableError, match=r"replica"):
            call()


def test_connections_to_a_demoted_primary_are_dropped(start_redis: StartRedis) -> None:
    """After READONLY the storage connects anew, so that an address which now leads to the primary is followed."""
    server = start_redis(Make.REDIS7)
    with _impatient(server) as client:
        store = RedisStorage(client, "q", patience=0.2)
        batch = made(store)
        before = client.client_id()
        client.replicaof(server.host, server.port + 1)
        with pytest.raises(StorageUnavailableError):
            transition(store, batch, "testing")
        assert client.client_id() != before


def _impatient(server: RedisServer) -> Redis:
    return Redis.from_url(server.url, retry=Retry(NoBackoff(), 0))


def _follow(client: Redis, primary: RedisServer, direct: Redis) -> None:
    """Make a client's server a replica, and wait until it is one in step."""
    client.replicaof(primary.host, primary.port)
    direct.set("sign", 1)
    wait_until(lambda: client.get("sign") is not None, "the replica to be in step")


def _wait_for_replica(direct: Redis, key: str) -> None:
    """Wait until all that a primary has done so far is on its replica."""
    direct.set(key, 1)  # WAIT is for the writes of its own connection
    assert direct.wait(1, 5_000) == 1
    direct.delete(key)
