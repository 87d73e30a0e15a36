"""What `storage info` tells of a Redis or Valkey server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.provisioning import Described
from batchstate.urls import open_storage
from batchstate_redis import RedisStorage
from tests.servers.redis_servers import Make

if TYPE_CHECKING:
    from tests.servers.cluster import ClusterEndpoint
    from tests.servers.fixtures import StartRedis

SAFE = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction", "min-replicas-to-write": "1"}


def test_settings_that_endanger_data_are_named(start_redis: StartRedis) -> None:
    """A server is described with its version and mode; each setting that endangers data is named, and no other."""
    server = start_redis(Make.VALKEY)
    with server.client() as client:
        store = RedisStorage(client, "q")
        assert isinstance(store, Described)
        for name, value in SAFE.items():
            client.config_set(name, value)
        facts, warnings = store.describe()
        assert facts["server"].startswith("Valkey ")
        assert {name: facts[name] for name in ("mode", "role", *SAFE)} == {
            "mode": "standalone",
            "role": "master",
            **SAFE,
        }
        assert warnings == []
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("appendfsync", "everysec")
        assert [warning.split(" ")[0] for warning in store.describe()[1]] == ["maxmemory-policy", "appendfsync"]
        client.config_set("appendonly", "no")
        assert [warning.split(" ")[0] for warning in store.describe()[1]] == ["maxmemory-policy", "appendonly"]


def test_a_user_who_may_not_ask_is_told(start_redis: StartRedis) -> None:
    """Where the user may not read the set-up, that is said, and nothing fails."""
    server = start_redis(Make.REDIS7)
    with server.client() as client:
        client.execute_command(
            "ACL", "SETUSER", "worker", "on", ">pw", "~batchstate:*", "+@all", "-@admin", "-@dangerous"
        )
    url = server.url.replace("redis://", "redis://worker:pw@")
    with open_storage(url, queue="q") as store:
        assert isinstance(store, Described)
        facts, [warning] = store.describe()
        assert facts["appendonly"].startswith("unknown")
        assert "appendonly" in warning
        assert "pw" not in str(facts)


def test_a_cluster_is_described(valkey_cluster: ClusterEndpoint) -> None:
    """In a cluster the primary of the queue is asked."""
    with valkey_cluster.client() as client:
        facts, _ = RedisStorage(client, "q").describe()
        assert facts["mode"] == "cluster"
        assert facts["appendfsync"] == "everysec"
