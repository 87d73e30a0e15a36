"""The Redis adapter keeps the contract on Valkey, on Redis 7 and 6.2, on a cluster and behind sentinels."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from typing_extensions import override

from batchstate.storage import AtomicCreates, AtomicMoves, SnapshotListing
from batchstate.testing import ExplorerContract, Harness, JobContract, JobExplorerContract, StorageContract
from batchstate.wire import BatchRow
from batchstate_redis import RedisStorage
from batchstate_redis.keys import Keys
from batchstate_redis.rows import row_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from redis import Redis
    from redis.cluster import RedisCluster

    from tests.servers.cluster import ClusterEndpoint
    from tests.servers.redis_servers import RedisEndpoint
    from tests.servers.sentinel import SentinelEndpoint


class RedisHarness(Harness):
    """A prefix of its own on a server that many tests share; the client is shared, as a worker's threads share one."""

    capabilities = frozenset({AtomicMoves, AtomicCreates, SnapshotListing})
    sees_rows = True
    scale = 5_000
    schedules = 3

    def __init__(self, client: Redis | RedisCluster) -> None:
        super().__init__()
        self.client = client
        self.prefix = f"test-{uuid4().hex}"

    @override
    def open(self, queue: str = "q") -> RedisStorage:
        return RedisStorage(self.client, queue, prefix=self.prefix, clock=self.clock)

    @override
    def plant(self, queue: str, batch_id: str, values: Sequence[object]) -> None:
        self.client.set(Keys(self.prefix, queue).batch(batch_id), row_text(BatchRow._make(values)).encode())

    @override
    def lose(self, queue: str, batch_id: str) -> None:
        self.client.delete(Keys(self.prefix, queue).batch(batch_id))

    def clear(self) -> None:
        """Delete all keys of the prefix."""
        pipeline = self.client.pipeline(transaction=False)
        for key in self.client.scan_iter(f"{self.prefix}:*", count=5_000):
            pipeline.delete(key)
        pipeline.execute()


def _harness(client: Redis | RedisCluster) -> Iterator[RedisHarness]:
    harness = RedisHarness(client)
    yield harness
    harness.clear()


@pytest.fixture(scope="module")
def valkey_client(valkey_server: RedisEndpoint) -> Iterator[Redis]:
    """Connect."""
    with valkey_server.client() as client:
        yield client


class TestValkey(StorageContract, ExplorerContract):
    """The contract on Valkey."""

    @pytest.fixture
    def harness(self, valkey_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(valkey_client)


@pytest.fixture(scope="module")
def decoding_client(valkey_server: RedisEndpoint) -> Iterator[Redis]:
    """Connect."""
    with valkey_server.client(decode_responses=True, protocol=3, encoding="latin-1") as client:
        yield client


@pytest.mark.measured_elsewhere
class TestDecodingClient(StorageContract, ExplorerContract):
    """The contract on a client that speaks RESP3 and decodes every reply, with another encoding even."""

    @pytest.fixture
    def harness(self, decoding_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(decoding_client)


@pytest.fixture(scope="module")
def redis7_client(redis7_server: RedisEndpoint) -> Iterator[Redis]:
    """Connect."""
    with redis7_server.client(protocol=3) as client:
        # So that a few members are paged through as many are; else they come in one piece.
        client.config_set("zset-max-listpack-entries", 0)
        client.config_set("hash-max-listpack-entries", 0)
        yield client


@pytest.mark.measured_elsewhere
class TestRedis7(StorageContract, ExplorerContract):
    """The contract on the distribution's Redis."""

    @pytest.fixture
    def harness(self, redis7_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(redis7_client)


@pytest.fixture(scope="module")
def redis62_client(redis62_server: RedisEndpoint) -> Iterator[Redis]:
    """Connect."""
    with redis62_server.client(protocol=2, decode_responses=True) as client:
        yield client


@pytest.mark.measured_elsewhere
class TestRedis62(StorageContract, ExplorerContract):
    """The contract on the oldest Redis that is supported."""

    @pytest.fixture
    def harness(self, redis62_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(redis62_client)


@pytest.fixture(scope="module")
def cluster_client(valkey_cluster: ClusterEndpoint) -> Iterator[RedisCluster]:
    """Connect."""
    with valkey_cluster.client() as client:
        yield client


@pytest.mark.measured_elsewhere
class TestCluster(StorageContract, ExplorerContract):
    """The contract on a cluster of three primaries."""

    @pytest.fixture
    def harness(self, cluster_client: RedisCluster) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(cluster_client)


@pytest.fixture(scope="module")
def sentinel_client(redis_sentinel: SentinelEndpoint) -> Iterator[Redis]:
    """Connect."""
    with redis_sentinel.client() as client:
        yield client


@pytest.mark.measured_elsewhere
class TestSentinel(StorageContract, ExplorerContract):
    """The contract on a primary that sentinels watch."""

    @pytest.fixture
    def harness(self, sentinel_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(sentinel_client)


class TestValkeyJobs(JobContract, JobExplorerContract):
    """The claim half's contract on Valkey."""

    @pytest.fixture
    def harness(self, valkey_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(valkey_client)


@pytest.mark.measured_elsewhere
class TestDecodingClientJobs(JobContract, JobExplorerContract):
    """The claim half's contract on a client that decodes every reply."""

    @pytest.fixture
    def harness(self, decoding_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(decoding_client)


@pytest.mark.measured_elsewhere
class TestRedis7Jobs(JobContract, JobExplorerContract):
    """The claim half's contract on the distribution's Redis."""

    @pytest.fixture
    def harness(self, redis7_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(redis7_client)


@pytest.mark.measured_elsewhere
class TestRedis62Jobs(JobContract, JobExplorerContract):
    """The claim half's contract on the oldest Redis that is supported."""

    @pytest.fixture
    def harness(self, redis62_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(redis62_client)


@pytest.mark.measured_elsewhere
class TestClusterJobs(JobContract, JobExplorerContract):
    """The claim half's contract on a cluster of three primaries."""

    @pytest.fixture
    def harness(self, cluster_client: RedisCluster) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(cluster_client)


@pytest.mark.measured_elsewhere
class TestSentinelJobs(JobContract, JobExplorerContract):
    """The claim half's contract on a primary that sentinels watch."""

    @pytest.fixture
    def harness(self, sentinel_client: Redis) -> Iterator[RedisHarness]:
        """Take a prefix."""
        yield from _harness(sentinel_client)
