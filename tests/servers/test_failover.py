"""The cluster and the sentinels that the tests stand on, and their failovers."""

import pytest
from redis.backoff import NoBackoff
from redis.exceptions import MovedError
from redis.retry import Retry

from tests.servers.cluster import ClusterEndpoint, ValkeyCluster
from tests.servers.ports import wait_until
from tests.servers.redis_servers import RedisEndpoint
from tests.servers.sentinel import RedisSentinel, SentinelEndpoint


def test_cluster_serves_keys_of_every_primary(valkey_cluster: ClusterEndpoint) -> None:
    """One client made from the URL writes and reads keys of all slots."""
    with valkey_cluster.client(decode_responses=True) as client:
        for number in range(50):
            client.set(f"every-primary-{number}", number)
        values = [client.get(f"every-primary-{number}") for number in range(50)]
        assert values == [str(number) for number in range(50)]
        assert len(client.get_primaries()) == 3
        assert len(client.get_replicas()) == 3


def test_cluster_fails_over(breakable_cluster: ValkeyCluster) -> None:
    """When a primary is killed its replica takes its slots over, with the data, within seconds."""
    old = breakable_cluster.primary_of("failover")
    with breakable_cluster.client() as client:
        client.set("failover", "kept")
        with old.client() as direct:
            assert direct.wait(1, 1_000) == 1
        seconds = breakable_cluster.fail_over("failover")
        assert seconds < 15
        assert client.get("failover") == b"kept"
    new = breakable_cluster.primary_of("failover")
    assert new is not old
    assert f":{old.port}" not in breakable_cluster.url


def test_killed_node_comes_back_as_a_replica(breakable_cluster: ValkeyCluster) -> None:
    """A healed cluster is whole, and the killed primary follows the one that took over."""
    old = breakable_cluster.primary_of("healed")
    breakable_cluster.fail_over("healed")
    breakable_cluster.heal()
    new = breakable_cluster.primary_of("healed")
    assert breakable_cluster.replica_of(new) is old


def test_paused_primary_is_replaced_and_steps_down(breakable_cluster: ValkeyCluster) -> None:
    """A primary that only hangs loses its slots, too, and redirects when it goes on."""
    old = breakable_cluster.primary_of("paused")
    old.pause()
    wait_until(lambda: breakable_cluster.owners("paused", besides=old) != [], "a new primary", 15)
    old.resume()
    breakable_cluster.wait_until_whole()
    with old.impatient_client() as direct, pytest.raises(MovedError):
        direct.get("paused")


def test_sentinels_name_the_primary(redis_sentinel: SentinelEndpoint) -> None:
    """One client made from the URL finds the primary and may write to it."""
    with redis_sentinel.client(decode_responses=True) as client:
        client.set("named", "yes")
        assert client.get("named") == "yes"
        assert client.info("replication")["role"] == "master"


def test_sentinels_fail_over(breakable_sentinel: RedisSentinel) -> None:
    """When the primary is killed the sentinels make the replica the primary, within seconds."""
    old = breakable_sentinel.primary()
    with breakable_sentinel.client(retry=Retry(NoBackoff(), 1)) as client:
        client.set("failover", "kept")
        with old.client() as direct:
            assert direct.wait(1, 1_000) == 1
        assert breakable_sentinel.fail_over() < 20
        assert client.get("failover") == b"kept"
    assert breakable_sentinel.primary() is not old
    with RedisEndpoint(breakable_sentinel.primary().url).client() as direct:
        assert direct.info("replication")["role"] == "master"
