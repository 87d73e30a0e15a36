"""The servers as pytest fixtures.

Each is started when the first test asks for it, once per test process, and shared by all tests of
it: so every test takes a queue name or a prefix of its own. A test that stops, pauses or changes a
server takes one of its own from `start_redis`, or a breakable one, which is healed after it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.servers.available import Server, given_url, need
from tests.servers.cluster import ClusterEndpoint, ValkeyCluster
from tests.servers.dynamo_servers import (
    DynaliteServer,
    DynamoEndpoint,
    MotoServer,
    dummy_credentials,
    moto_in_process,
)
from tests.servers.redis_servers import Make, RedisEndpoint, RedisServer
from tests.servers.sentinel import RedisSentinel, SentinelEndpoint

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from tests.servers.tls import Certificates


class StartRedis(Protocol):
    """What the fixture `start_redis` gives: a call that starts a server for one test alone."""

    def __call__(
        self,
        make: Make | str,
        *,
        password: str | None = None,
        tls: "Certificates | None" = None,
        durable: bool = False,
    ) -> RedisServer:
        """Start it; the arguments are those of `RedisServer`."""
        ...


def _shared(server: Server) -> Iterator[RedisEndpoint]:
    need(server)
    url = given_url(server)
    if url is not None:
        yield RedisEndpoint(url)
        return
    with RedisServer(server) as ours:
        yield ours


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[RedisEndpoint]:
    """A Valkey server."""
    yield from _shared(Server.VALKEY)


@pytest.fixture(scope="session")
def redis7_server() -> Iterator[RedisEndpoint]:
    """The distribution's Redis server."""
    yield from _shared(Server.REDIS7)


@pytest.fixture(scope="session")
def redis62_server() -> Iterator[RedisEndpoint]:
    """A Redis 6.2 server: the oldest that is supported."""
    yield from _shared(Server.REDIS62)


@pytest.fixture(scope="session")
def our_valkey_cluster() -> Iterator[ValkeyCluster]:
    """The cluster that this run has started; tests take one of the next two."""
    need(Server.CLUSTER, ours=True)
    with ValkeyCluster() as ours:
        yield ours


@pytest.fixture(scope="session")
def valkey_cluster(request: pytest.FixtureRequest) -> ClusterEndpoint:
    """A Valkey cluster of three primaries with a replica each."""
    url = given_url(Server.CLUSTER)
    if url is not None:
        return ClusterEndpoint(url)
    ours: ValkeyCluster = request.getfixturevalue("our_valkey_cluster")
    return ours


@pytest.fixture
def breakable_cluster(our_valkey_cluster: ValkeyCluster) -> Iterator[ValkeyCluster]:
    """A cluster whose nodes the test may kill; all of them run again when it has ended."""
    yield our_valkey_cluster
    our_valkey_cluster.heal()


@pytest.fixture(scope="session")
def our_redis_sentinel() -> Iterator[RedisSentinel]:
    """The watched servers that this run has started; tests take one of the next two."""
    need(Server.SENTINEL, ours=True)
    with RedisSentinel() as ours:
        yield ours


@pytest.fixture(scope="session")
def redis_sentinel(request: pytest.FixtureRequest) -> SentinelEndpoint:
    """A Redis primary with a replica, watched by three sentinels."""
    url = given_url(Server.SENTINEL)
    if url is not None:
        return SentinelEndpoint(url)
    ours: RedisSentinel = request.getfixturevalue("our_redis_sentinel")
    return ours


@pytest.fixture
def breakable_sentinel(our_redis_sentinel: RedisSentinel) -> Iterator[RedisSentinel]:
    """Watched servers that the test may kill; all of them run again when it has ended."""
    yield our_redis_sentinel
    our_redis_sentinel.heal()


@pytest.fixture
def start_redis() -> Iterator[StartRedis]:
    """Start servers for one test alone, stopped after it."""
    with ExitStack() as stack:

        def start(
            make: Make | str,
            *,
            password: str | None = None,
            tls: "Certificates | None" = None,
            durable: bool = False,
        ) -> RedisServer:
            need(Server(make), ours=True)
            server = RedisServer(make, password=password, tls=tls, durable=durable)
            return stack.enter_context(server)

        yield start


@pytest.fixture(scope="session")
def moto_server() -> Iterator[DynamoEndpoint]:
    """The emulator moto, over HTTP; credentials for it are in the environment from here on."""
    yield from _shared_dynamo(Server.MOTO, MotoServer)


@pytest.fixture(scope="session")
def dynalite_server() -> Iterator[DynamoEndpoint]:
    """The emulator dynalite; credentials for it are in the environment from here on."""
    yield from _shared_dynamo(Server.DYNALITE, DynaliteServer)


@pytest.fixture
def moto_client() -> Iterator["DynamoDBClient"]:
    """A client of the emulator moto inside this process, which all other clients reach as well."""
    need(Server.MOTO, ours=True)
    with moto_in_process() as client:
        yield client


def _shared_dynamo(server: Server, ours: type[MotoServer | DynaliteServer]) -> Iterator[DynamoEndpoint]:
    need(server)
    endpoint = given_url(server)
    with dummy_credentials():
        if endpoint is not None:
            yield DynamoEndpoint(endpoint)
            return
        with ours() as started:
            yield started
