"""Opening by URL: what is understood, and what is told, without a secret, of what is wrong."""

from __future__ import annotations

import socket
import traceback
import warnings
from typing import TYPE_CHECKING

import pytest
from redis import Redis
from redis.cluster import RedisCluster

from batchstate.errors import BatchStateError, InvalidValueError, StorageUnavailableError
from batchstate.urls import StorageURL, open_storage
from batchstate_redis import RedisStorage
from batchstate_redis.clients import open_client
from tests.adapters.redis.given import made
from tests.servers.ports import free_port
from tests.servers.redis_servers import Make
from tests.servers.tls import make_certificates

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.cluster import ClusterEndpoint
    from tests.servers.fixtures import StartRedis
    from tests.servers.redis_servers import RedisEndpoint, RedisServer
    from tests.servers.sentinel import SentinelEndpoint

SECRET = "s3cret!with&signs"  # noqa: S105 - of servers that live for one test
QUOTED = "s3cret%21with%26signs"


def _told(error: BaseException) -> str:
    """Answer all that a log would show of an error."""
    return "".join(traceback.format_exception(error)) + repr(error)


def test_a_server(valkey_server: RedisEndpoint, prefix: str) -> None:
    """`redis://` opens a server, under the prefix that the URL names, and closing closes the client."""
    with open_storage(f"{valkey_server.url}?prefix={prefix}", queue="q") as store:
        made(store)
        with open_storage(f"{valkey_server.url}?prefix={prefix}-other", queue="q") as other:
            assert other.list_queues() == []
        assert store.list_queues() == ["q"]


def test_a_cluster(valkey_cluster: ClusterEndpoint, prefix: str) -> None:
    """`redis+cluster://` opens a cluster by any of its nodes."""
    with open_storage(f"{valkey_cluster.url}?prefix={prefix}", queue="q") as store:
        assert store.get_batches(["b"]) == {}
        made(store)
        assert store.list_queues() == ["q"]


def test_sentinels(redis_sentinel: SentinelEndpoint, prefix: str) -> None:
    """`redis+sentinel://` asks the sentinels for the primary of the service."""
    with open_storage(f"{redis_sentinel.url}?prefix={prefix}", queue="q") as store:
        made(store)
        assert store.list_queues() == ["q"]


def test_a_socket(tmp_path: Path, start_redis: StartRedis) -> None:
    """`unix://` opens a server's socket."""
    server = start_redis(Make.REDIS7)
    path = tmp_path / "redis.sock"
    # The server is on TCP: the socket leads there by a relay of one connection.
    with pytest.raises(StorageUnavailableError, match=r"redis\.sock"):
        open_storage(f"unix://{path}?patience=0.1", queue="q")
    opened = open_client(StorageURL.parse(f"unix://{path}?db=3"))
    assert isinstance(opened.client, Redis)
    assert opened.client.connection_pool.connection_kwargs["path"] == str(path)
    assert opened.client.connection_pool.connection_kwargs["db"] == 3
    opened.close()
    assert server.process.running


@pytest.mark.parametrize("user", ["", "default"])
def test_a_password(start_redis: StartRedis, user: str) -> None:
    """A user name and a password in the URL are percent-decoded and used."""
    server = start_redis(Make.VALKEY, password=SECRET)
    with open_storage(f"redis://{user}:{QUOTED}@{server.host}:{server.port}", queue="q") as store:
        made(store)
        assert SECRET not in repr(store)


@pytest.mark.parametrize("make", [Make.VALKEY, Make.REDIS7, Make.REDIS62])
@pytest.mark.parametrize("login", ["", ":wrong-s3cret@", "somebody:wrong-s3cret@"])
def test_a_wrong_password(start_redis: StartRedis, make: Make, login: str) -> None:
    """A lacking or wrong password is a wrong value, told without the password in any text of the error."""
    server = start_redis(make, password=SECRET)
    with pytest.raises(InvalidValueError, match="user name or the password") as refused:
        open_storage(f"redis://{login}{server.host}:{server.port}", queue="q")
    assert "s3cret" not in _told(refused.value)
    assert str(server.port) in str(refused.value)


def test_a_wrong_database(valkey_server: RedisServer) -> None:
    """A database that the server does not have is a wrong value."""
    address = f"redis://{valkey_server.host}:{valkey_server.port}"
    with pytest.raises(InvalidValueError, match="DB index"):
        open_storage(f"{address}/4711", queue="q")
    with pytest.raises(InvalidValueError, match="number"):
        open_storage(f"{address}/main", queue="q")
    with pytest.raises(InvalidValueError, match="two databases"):
        open_storage(f"{address}/1?db=2", queue="q")


def test_databases_are_apart(valkey_server: RedisServer, prefix: str) -> None:
    """Two databases of one server are two stores."""
    address = f"redis://{valkey_server.host}:{valkey_server.port}"
    with open_storage(f"{address}/3?prefix={prefix}", queue="q") as store:
        made(store)
        with open_storage(f"{address}/4?prefix={prefix}", queue="q") as other:
            assert other.get_batches(["b"]) == {}


def test_tls(start_redis: StartRedis) -> None:
    """`rediss://` speaks TLS with a server whose certificate the named authority signed."""
    server = start_redis(Make.REDIS7, tls=make_certificates())
    with open_storage(server.url, queue="q") as store:
        made(store)


def test_a_certificate_that_is_not_trusted(start_redis: StartRedis) -> None:
    """A certificate that nobody we trust has signed is a wrong value, told as such and at once."""
    server = start_redis(Make.REDIS7, tls=make_certificates())
    other = make_certificates()
    with pytest.raises(InvalidValueError, match="certificate is not trusted") as refused:
        open_storage(f"rediss://:{QUOTED}@{server.host}:{server.port}?ssl_ca_certs={other.authority}", queue="q")
    assert "s3cret" not in _told(refused.value)


def test_tls_to_a_server_without(valkey_server: RedisServer) -> None:
    """A server that does not speak TLS is told as such."""
    with pytest.raises(BatchStateError) as refused:
        open_storage(f"rediss://{valkey_server.host}:{valkey_server.port}?patience=0.1&timeout=0.5", queue="q")
    assert isinstance(refused.value, (InvalidValueError, StorageUnavailableError))
    assert str(valkey_server.port) in str(refused.value)


def test_nobody_there() -> None:
    """A server that does not answer is an outage, told with its address and not with the password."""
    port = free_port()
    with pytest.raises(StorageUnavailableError, match=str(port)) as refused:
        open_storage(f"redis://user:{QUOTED}@127.0.0.1:{port}?patience=0.1", queue="q")
    assert "s3cret" not in _told(refused.value)
    with pytest.raises(StorageUnavailableError, match=str(port)):
        open_storage(f"redis+cluster://127.0.0.1:{port}?patience=0.1", queue="q")
    with pytest.raises(StorageUnavailableError, match="sentinel"):
        open_storage(f"redis+sentinel://127.0.0.1:{port}/main?patience=0.1", queue="q")


def test_a_node_of_a_cluster_taken_for_a_server(valkey_cluster: ClusterEndpoint) -> None:
    """A node of a cluster that is opened as a single server is refused with the scheme to use."""
    node = valkey_cluster.url.removeprefix("redis+cluster://").split(",")[0]
    queues = [f"q-{number}" for number in range(20)]
    refusals = []
    for queue in queues:
        try:
            open_storage(f"redis://{node}", queue=queue).close()
        except InvalidValueError as error:
            refusals.append(str(error))
    assert len(refusals) == len(queues)
    assert all("redis+cluster" in refusal for refusal in refusals)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis://h1,h2", "one server"),
        ("redis://h:port", "no host"),
        ("redis://h?timout=3", "timout"),
        ("redis://h?timeout=soon", "timeout"),
        ("redis://h?protocol=4", "protocol"),
        ("redis://h?ssl_ca_certs=x.pem", "not encrypted"),
        ("redis+cluster://h/1", "database 0"),
        ("redis+sentinel://h", "service"),
        ("unix://", "path"),
        ("redis://h?prefix=a{b", "braces"),
    ],
)
def test_a_url_that_makes_no_sense(url: str, words: str) -> None:
    """A URL that cannot be meant so is refused before any I/O, with the part that is wrong."""
    with pytest.raises(InvalidValueError, match=words):
        open_storage(url, queue="q")


def test_what_a_url_means() -> None:
    """Hosts, ports, databases, durations and the protocol are taken from the URL."""
    opened = open_client(
        StorageURL.parse("redis://[::1]:7000/2?timeout=250ms&connect_timeout=2&protocol=3&patience=1m")
    )
    assert isinstance(opened.client, Redis)
    kwargs = opened.client.connection_pool.connection_kwargs
    assert (kwargs["host"], kwargs["port"], kwargs["db"], kwargs["protocol"]) == ("::1", 7000, 2, 3)
    assert (kwargs["socket_timeout"], kwargs["socket_connect_timeout"], opened.patience) == (0.25, 2, 60)
    opened.close()


def test_a_server_that_is_too_old() -> None:
    """A server that is older than Redis 6.2 is refused with the version it has and the one it takes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        from threading import Thread  # noqa: PLC0415 - for this test alone

        port = listener.getsockname()[1]
        Thread(target=_old_server, args=(listener,), daemon=True).start()
        with pytest.raises(InvalidValueError, match=r"5\.0, and batchstate needs 6\.2"):
            open_storage(f"redis://127.0.0.1:{port}", queue="q")


def _old_server(listener: socket.socket) -> None:
    """Answer as a Redis 5 would to what a client says first, and to the first script."""
    info = b"# Server\r\nredis_version:5.0.7\r\n"
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(65536):
            for command in data.split(b"*")[1:]:
                if b"EVALSHA" in command:
                    connection.sendall(b"*2\r\n$%d\r\n%b\r\n$0\r\n\r\n" % (len(info), info))
                else:
                    connection.sendall(b"+OK\r\n")


def test_a_borrowed_client_is_left_open(valkey_server: RedisEndpoint, prefix: str) -> None:
    """Closing a storage on the caller's client leaves the client as it is."""
    with valkey_server.client() as client:
        store = RedisStorage(client, "q", prefix=prefix)
        connection = client.client_id()
        store.close()
        store.close()
        assert client.client_id() == connection


def test_what_no_client_is(valkey_server: RedisEndpoint, valkey_cluster: ClusterEndpoint) -> None:
    """A pipeline, a client of asyncio, one that reads from replicas, and what is no client are refused."""
    import redis.asyncio  # noqa: PLC0415 - for this test alone

    with valkey_server.client() as client, valkey_cluster.client() as cluster:
        with warnings.catch_warnings(action="ignore"):  # it has another name since redis-py 5.3
            lagging = RedisCluster(startup_nodes=list(cluster.get_nodes()), read_from_replicas=True)
        for wrong in (
            client.pipeline(),
            cluster.pipeline(),
            redis.asyncio.Redis(),
            lagging,
            object(),
            None,
            "redis://h",
        ):
            with pytest.raises(InvalidValueError, match="client"):
                RedisStorage(wrong, "q")  # type: ignore[arg-type]  # that is the test
        lagging.close()


def test_a_replicas_client_of_sentinels_is_refused(redis_sentinel: SentinelEndpoint) -> None:
    """A client of the replicas that sentinels know is refused."""
    sentinel = redis_sentinel.sentinel()
    replicas: Redis = sentinel.slave_for("primary")  # type: ignore[no-untyped-call]
    with replicas as client, pytest.raises(InvalidValueError, match="replicas"):
        RedisStorage(client, "q")
