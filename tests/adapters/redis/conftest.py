"""What the tests of the Redis adapter share."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from batchstate_redis import RedisStorage
from tests.servers.proxy import DroppingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.redis_servers import RedisEndpoint, RedisServer


@pytest.fixture
def prefix() -> str:
    """Name a part of a server that no other test uses."""
    return f"test-{uuid4().hex}"


@pytest.fixture
def client(valkey_server: RedisEndpoint) -> Iterator[Redis]:
    """Connect to Valkey, without any re-sending of the client's own."""
    with valkey_server.impatient_client() as client:
        yield client


@pytest.fixture
def store(client: Redis, prefix: str) -> RedisStorage:
    """Open a storage of queue `q`."""
    return RedisStorage(client, "q", prefix=prefix)


@pytest.fixture
def proxy(valkey_server: RedisServer) -> Iterator[DroppingProxy]:
    """Stand between a client and Valkey."""
    with DroppingProxy(valkey_server.host, valkey_server.port) as proxy:
        yield proxy


@pytest.fixture
def far_store(proxy: DroppingProxy, valkey_server: RedisServer, prefix: str) -> Iterator[RedisStorage]:
    """Open a storage of queue `q` behind the proxy, on a client that does not send again by itself."""
    with Redis.from_url(proxy.through(valkey_server.url), retry=Retry(NoBackoff(), 0)) as client:
        yield RedisStorage(client, "q", prefix=prefix)
