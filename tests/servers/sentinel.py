"""One Redis primary with a replica, watched by three sentinels: real ones, from Debian's server.

```python
with RedisSentinel() as watched:
    client = watched.client()
    client.set("a", 1)
    watched.fail_over()  # kills the primary, and waits until the replica has taken over
    watched.heal()  # the killed server is back, as a replica
```
"""

from contextlib import ExitStack, suppress
from typing import Self
from urllib.parse import urlsplit

import redis
from redis.sentinel import Sentinel
from typing_extensions import override

from tests.servers.ports import wait_until
from tests.servers.redis_servers import Make, RedisServer

_SENTINELS = 3
_QUORUM = 2
_DEFAULT_PORT = 26379
_LONGEST_START = 20.0
_LONGEST_FAILOVER = 30.0
_TIMEOUT = 1.0

SERVICE = "primary"
# Above the second that a sentinel takes to connect to a new primary: else it finds that down, too.
DOWN_AFTER_MS = 2_000
FAILOVER_TIMEOUT_MS = 3_000


class SentinelEndpoint:
    """A watched primary known by its URL alone, `redis+sentinel://host:port,host:port/service/0`."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        """What a user would write to connect."""
        return self._url

    def sentinel(self) -> Sentinel:
        """Return redis-py's object for asking the sentinels."""
        addresses = []
        for address in urlsplit(self.url).netloc.split(","):
            host, _, port = address.partition(":")
            addresses.append((host, int(port or _DEFAULT_PORT)))
        return Sentinel(addresses, socket_timeout=_TIMEOUT)  # type: ignore[no-untyped-call]

    def client(self, **options: object) -> redis.Redis:
        """Return a new client of whichever server is the primary when it connects."""
        service = urlsplit(self.url).path.split("/")[1]
        sentinel = self.sentinel()
        client: redis.Redis = sentinel.master_for(service, **options)  # type: ignore[no-untyped-call]
        return client


class RedisSentinel(SentinelEndpoint):
    """Two servers and three sentinels of ours. As a context manager it runs within the block.

    Raises:
        FileNotFoundError: This machine lacks the distribution's Redis.

    """

    def __init__(self) -> None:
        super().__init__(url="")
        self.servers = [RedisServer(Make.REDIS7)]
        self.sentinels: list[RedisServer] = []

    @property
    @override
    def url(self) -> str:
        """The URL, with the sentinels that run."""
        running = [each for each in self.sentinels if each.process.running]
        addresses = ",".join(f"{each.host}:{each.port}" for each in running)
        return f"redis+sentinel://{addresses}/{SERVICE}/0"

    def start(self) -> Self:
        """Start all and wait until the sentinels know the replica and one another."""
        with ExitStack() as undo:
            undo.callback(self.stop)
            primary = self.servers[0].start()
            address = f"{primary.host} {primary.port}"
            if len(self.servers) == 1:
                self.servers.append(RedisServer(Make.REDIS7, settings={"replicaof": address}))
            self.servers[1].start()
            wait_until(self._is_replicated, "the replica to be in step", _LONGEST_START)
            self.sentinels = [_sentinel(address) for _ in range(_SENTINELS)]
            for sentinel in self.sentinels:
                sentinel.start()
            self.wait_until_whole()
            undo.pop_all()
        return self

    def stop(self) -> None:
        """End all."""
        for each in (*self.sentinels, *self.servers):
            each.kill()

    def restart(self) -> None:
        """Start all anew, without the data."""
        self.stop()
        self.servers = [RedisServer(Make.REDIS7)]
        self.start()

    def pause(self) -> None:
        """Leave every connection open and answer nothing."""
        for each in (*self.sentinels, *self.servers):
            each.pause()

    def resume(self) -> None:
        """End a pause."""
        for each in (*self.sentinels, *self.servers):
            each.resume()

    def primary(self) -> RedisServer:
        """Return the server that is the primary, as all sentinels agree.

        Raises:
            TimeoutError: They do not agree.

        """
        wait_until(lambda: len(self._named()) == 1, "the sentinels to agree", _LONGEST_FAILOVER)
        (port,) = self._named()
        return next(server for server in self.servers if server.port == port)

    def fail_over(self) -> float:
        """Kill the primary; return the seconds until another is named by all, and is one."""
        self.wait_until_whole()
        old = self.primary()
        old.kill()
        (new,) = (server for server in self.servers if server is not old)
        return wait_until(
            lambda: self._named() == {new.port} and _role(new) == "master",
            "a new primary",
            _LONGEST_FAILOVER,
        )

    def heal(self) -> None:
        """Let all run again and wait until the primary has its replica and the sentinels know."""
        primary = self.primary()
        for each in (*self.sentinels, *self.servers):
            if each.process.running:
                each.resume()
                continue
            if each in self.servers:
                # The last line counts. A sentinel would wait 8 s before it says so, and look again after 10 s.
                with each.configuration.open("a") as lines:
                    lines.write(f"replicaof {primary.host} {primary.port}\n")
            each.restart()
        self.wait_until_whole()

    def wait_until_whole(self) -> None:
        """Wait until the replica follows the primary and every sentinel knows everybody."""
        wait_until(self._is_whole, "the sentinels to know everybody", _LONGEST_START)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _named(self) -> set[int]:
        return {_named_primary(each) for each in self.sentinels if each.process.running}

    def _is_whole(self) -> bool:
        return self._is_replicated() and all(_knows_everybody(each) for each in self.sentinels)

    def _is_replicated(self) -> bool:
        with suppress(redis.RedisError):
            for server in self.servers:
                with server.impatient_client(decode_responses=True) as client:
                    if client.info("replication").get("master_link_status") == "up":
                        return True
        return False


def _sentinel(address: str) -> RedisServer:
    host, port = address.split()
    settings = {
        f"sentinel monitor {SERVICE} {host}": f"{port} {_QUORUM}",
        f"sentinel down-after-milliseconds {SERVICE}": str(DOWN_AFTER_MS),
        f"sentinel failover-timeout {SERVICE}": str(FAILOVER_TIMEOUT_MS),
    }
    return RedisServer(Make.REDIS7, sentinel=True, settings=settings)


def _role(server: RedisServer) -> str:
    with suppress(redis.RedisError), server.impatient_client(decode_responses=True) as client:
        return str(client.info("replication")["role"])
    return "none"


def _named_primary(sentinel: RedisServer) -> int:
    with suppress(redis.RedisError), sentinel.impatient_client(decode_responses=True) as client:
        return int(client.execute_command("SENTINEL MASTER", SERVICE)["port"])
    return 0


def _knows_everybody(sentinel: RedisServer) -> bool:
    with suppress(redis.RedisError), sentinel.impatient_client(decode_responses=True) as client:
        primary = client.execute_command("SENTINEL MASTER", SERVICE)
        replicas = client.execute_command("SENTINEL SLAVES", SERVICE)
        return (
            primary["flags"] == "master"
            and primary["num-other-sentinels"] == _SENTINELS - 1
            and [each["flags"] for each in replicas] == ["slave"]
            and replicas[0]["master-port"] == primary["port"]
        )
    return False
