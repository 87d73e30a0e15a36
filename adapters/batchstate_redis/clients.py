"""Clients: which ones of a caller's can be used, and those that a URL opens."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated, Any, Final, Literal, TypeAlias

import stamina
from attrs import frozen
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from redis import Redis, Sentinel
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.cluster import ClusterNode, ClusterPipeline, RedisCluster
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from batchstate.errors import InvalidValueError
from batchstate.times import milliseconds
from batchstate.urls import StorageURL, read_options
from batchstate_redis.faults import CLIENT_ERRORS, NODE_OF_A_CLUSTER, explained, is_passing
from batchstate_redis.keys import DEFAULT_PREFIX

__all__ = ["PATIENCE", "Client", "Opened", "check_client", "check_server", "describe_client", "open_client"]

Client: TypeAlias = Redis | RedisCluster

PATIENCE: Final = 5.0
"""For how many seconds a call goes on trying while a failover or a restart passes."""

OLDEST: Final = (6, 2)
SENTINEL_PORT: Final = 26379
REDIS_PORT: Final = 6379


def _seconds(value: object) -> float:
    number = float(value) if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value) else value
    return milliseconds(number, "it") / 1000  # type: ignore[arg-type]  # what is no duration is refused there


Seconds: TypeAlias = Annotated[float, BeforeValidator(_seconds)]


class _Options(BaseModel):
    """What may stand in a URL's query. Durations are seconds or texts such as `250ms`."""

    model_config = ConfigDict(extra="forbid")

    prefix: str = DEFAULT_PREFIX
    patience: Seconds = PATIENCE
    timeout: Seconds = 5.0
    connect_timeout: Seconds = 2.0
    max_connections: Annotated[int, Field(ge=1)] | None = None
    client_name: str | None = None
    protocol: Literal["2", "3"] = "2"
    db: Annotated[int, Field(ge=0)] | None = None
    ssl_ca_certs: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_check_hostname: bool = True
    sentinel_username: str | None = None
    sentinel_password: str | None = None


@frozen
class Opened:
    """What a URL opened.

    Attributes:
        client: the client, which is ours to close.
        prefix: the keys' prefix.
        patience: for how many seconds a call goes on trying.
        close: closes the client and all that was opened for it.
    """

    client: Client
    prefix: str
    patience: float
    close: Callable[[], None]


def check_client(client: Client) -> Client:
    """Answer `client` if it can be used; raises `InvalidValueError`, without I/O, where it cannot."""
    given: object = client  # of a program that is not type-checked
    if not isinstance(given, (Redis, RedisCluster)) or isinstance(given, (Pipeline, ClusterPipeline)):
        kind = f"{type(given).__module__}.{type(given).__qualname__}"
        raise InvalidValueError(
            f"client must be a redis.Redis or redis.RedisCluster, no pipeline and not of redis.asyncio, not a {kind}"
        )
    pool = getattr(client, "connection_pool", None)
    from_replicas = (
        getattr(client, "read_from_replicas", False)
        or getattr(client, "load_balancing_strategy", None) is not None
        or (isinstance(pool, SentinelConnectionPool) and not pool.is_master)
    )
    if from_replicas:
        raise InvalidValueError("this client reads from replicas, which may lag behind; give one that does not")
    return client


def describe_client(client: Client) -> str:
    """Answer where a client connects to, with no user name and no password in it."""
    if isinstance(client, RedisCluster):
        nodes = sorted(client.nodes_manager.startup_nodes)
        return f"the cluster of {nodes[0]}" if nodes else "the cluster"
    pool = client.connection_pool
    if isinstance(pool, SentinelConnectionPool):
        return f"the sentinels' {pool.service_name!r}"
    kwargs = pool.connection_kwargs
    if "path" in kwargs:
        return str(kwargs["path"])
    return f"{kwargs.get('host', 'localhost')}:{kwargs.get('port', REDIS_PORT)}"


def check_server(client: Client, server: bytes, memory: bytes, where: str) -> None:
    """Check what `describe_server` answered: raise where the server will not do, warn where it may forget.

    Raises:
        InvalidValueError: it is older than Redis 6.2, or a node of a cluster and `client` knows of
            none.
    """
    version = re.search(rb"^redis_version:(\d+)\.(\d+)", server, re.MULTILINE)
    if version and (int(version[1]), int(version[2])) < OLDEST:
        found = f"{int(version[1])}.{int(version[2])}"
        raise InvalidValueError(f"the server at {where} is Redis {found}, and batchstate needs 6.2 or later")
    if re.search(rb"^(redis|server)_mode:cluster", server, re.MULTILINE) and not isinstance(client, RedisCluster):
        raise InvalidValueError(f"the server at {where} cannot be used: {NODE_OF_A_CLUSTER}")
    policy = re.search(rb"^maxmemory_policy:(\S+)", memory, re.MULTILINE)
    if policy and policy[1] != b"noeviction":
        warnings.warn(
            f"the server at {where} has the maxmemory-policy {policy[1].decode()}: when its memory is used up it "
            "deletes data instead of refusing writes; set it to noeviction",
            RuntimeWarning,
            stacklevel=2,
        )


def open_client(url: StorageURL) -> Opened:
    """Open the client that `url` names; only a cluster's is connected by that.

    Raises:
        InvalidValueError: the URL or its options make no sense, or the cluster refuses us.
        StorageUnavailableError: the cluster cannot be reached.
    """
    options = read_options(url, _Options)
    scheme = url.scheme.partition("+")
    settings = _settings(url, options, tls=scheme[0] == "rediss")
    with ExitStack() as closing:
        if url.scheme == "unix":
            client = _unix(url, options, settings)
        elif scheme[2] == "cluster":
            client = _cluster(url, options, settings)
        elif scheme[2] == "sentinel":
            client = _sentinel(url, options, settings, closing)
        else:
            client = _single(url, options, settings)
        closing.callback(client.close)
        return Opened(client, options.prefix, options.patience, closing.pop_all().close)


def _settings(url: StorageURL, options: _Options, *, tls: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "username": url.username or None,
        "password": url.password or None,
        "socket_timeout": options.timeout,
        "socket_connect_timeout": options.connect_timeout,
        "protocol": int(options.protocol),
        "client_name": options.client_name,
        # A connection may have gone stale since its last use, so it is made anew once; all further waiting is ours.
        "retry": Retry(NoBackoff(), 1),
    }
    if options.max_connections is not None:
        settings["max_connections"] = options.max_connections
    tls_options = {
        name: value
        for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
        if (value := getattr(options, name)) is not None
    }
    if tls:
        settings |= {"ssl": True, "ssl_check_hostname": options.ssl_check_hostname, **tls_options}
    elif tls_options:
        raise InvalidValueError(f"{url.scheme}:// is not encrypted, so {', '.join(tls_options)} would do nothing")
    return settings


def _single(url: StorageURL, options: _Options, settings: dict[str, Any]) -> Client:
    [(host, port)] = _hosts(url, REDIS_PORT, most=1)
    return Redis(host=host, port=port, db=_db(url.path.strip("/"), url, options), **settings)


def _unix(url: StorageURL, options: _Options, settings: dict[str, Any]) -> Client:
    if not url.path or url.host:
        raise InvalidValueError("unix:// wants the socket's whole path, such as unix:///run/redis.sock?db=0")
    return Redis(unix_socket_path=url.path, db=options.db or 0, **settings)


def _cluster(url: StorageURL, options: _Options, settings: dict[str, Any]) -> Client:
    if _db(url.path.strip("/"), url, options):
        raise InvalidValueError("a cluster has the database 0 alone")
    nodes = [
        ClusterNode(host, port)  # type: ignore[no-untyped-call]
        for host, port in _hosts(url, REDIS_PORT)
    ]
    where = f"the cluster of {url.host}"
    try:
        for attempt in stamina.retry_context(
            on=is_passing, attempts=None, timeout=options.patience, wait_initial=0.05, wait_max=0.5
        ):
            with attempt:
                return RedisCluster(startup_nodes=nodes, **settings)
    except CLIENT_ERRORS as error:
        raise explained(error, where, opening=True) from error
    raise AssertionError  # pragma: no cover - the loop ends by returning or raising


def _sentinel(url: StorageURL, options: _Options, settings: dict[str, Any], closing: ExitStack) -> Client:
    service, _, db = url.path.strip("/").partition("/")
    if not service:
        raise InvalidValueError("redis+sentinel:// wants the service's name, such as redis+sentinel://host:26379/main")
    own = {name: value for name, value in settings.items() if name not in {"username", "password", "max_connections"}}
    own |= {"username": options.sentinel_username, "password": options.sentinel_password}
    sentinel = Sentinel(_hosts(url, SENTINEL_PORT), sentinel_kwargs=own)  # type: ignore[no-untyped-call]
    for one in sentinel.sentinels:
        closing.callback(one.close)
    number = _db(db, url, options)
    client: Redis = sentinel.master_for(service, db=number, **settings)  # type: ignore[no-untyped-call]
    return client


def _hosts(url: StorageURL, port: int, *, most: int | None = None) -> list[tuple[str, int]]:
    """Read `host:port,host:port`; an IPv6 address stands in brackets."""
    hosts = [_host(part, port) for part in url.host.split(",")] if url.host else [("localhost", port)]
    if most is not None and len(hosts) > most:
        raise InvalidValueError(
            f"{url.scheme}:// wants one server; several are for redis+cluster:// or redis+sentinel://"
        )
    return hosts


def _host(part: str, port: int) -> tuple[str, int]:
    match = re.fullmatch(r"(?:\[(?P<six>[^\]]+)\]|(?P<name>[^:\[\]]*))(?::(?P<port>\d{1,5}))?", part)
    if match is None:
        raise InvalidValueError(f"{part!r} is no host with a port, such as localhost:6379 or [::1]:6379")
    return match["six"] or match["name"] or "localhost", int(match["port"] or port)


def _db(text: str, url: StorageURL, options: _Options) -> int:
    if text and not (text.isascii() and text.isdecimal()):
        raise InvalidValueError(f"{url.scheme}:// wants a database's number after the host, not {text!r}")
    if text and options.db is not None and int(text) != options.db:
        raise InvalidValueError(f"the URL names two databases: {text} and {options.db}")
    return int(text) if text else options.db or 0
