"""Redis and Valkey servers of several makes and ages, each a real process.

```python
with RedisServer("valkey") as server, server.client() as client:
    client.set("a", 1)
    server.restart()
```
"""

import contextlib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from typing_extensions import override

from tests.servers.binaries import redis7_binary, redis62_binary, valkey_binary
from tests.servers.controlled import ControlledServer

if TYPE_CHECKING:
    from tests.servers.tls import Certificates

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})


class Make(StrEnum):
    """Which program is started."""

    VALKEY = "valkey"
    REDIS7 = "redis7"
    REDIS62 = "redis62"


_BINARIES = {
    Make.VALKEY: valkey_binary,
    Make.REDIS7: redis7_binary,
    Make.REDIS62: redis62_binary,
}


def binary_of(make: Make | str) -> Path:
    """Return the program of a make.

    Raises:
        FileNotFoundError: This machine lacks it.

    """
    path = _BINARIES[Make(make)]()
    if path is None:
        raise FileNotFoundError(f"this machine has no {make} server")
    return path


class RedisEndpoint:
    """A server known by its URL alone; somebody else started it."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        """What a user would write to connect."""
        return self._url

    def client(self, **options: object) -> redis.Redis:
        """Return a new redis-py client; `options` are those of `redis.Redis.from_url`."""
        return redis.Redis.from_url(self.url, **options)

    def impatient_client(self, **options: object) -> redis.Redis:
        """Return a client that re-sends nothing and does not wait to reconnect."""
        return self.client(retry=Retry(NoBackoff(), 0), **options)


class RedisServer(ControlledServer, RedisEndpoint):
    """One server of ours. As a context manager it runs within the block.

    Args:
        make: Which program.
        password: What a client must say; None for an open server.
        tls: The server speaks TLS alone, with these certificates; only redis7 can.
        durable: Write a log of all changes, so that they survive `restart` and `kill`.
        settings: Further lines of the configuration file.
        sentinel: Start as a sentinel.

    Raises:
        FileNotFoundError: This machine lacks the program.

    """

    def __init__(
        self,
        make: Make | str,
        *,
        password: str | None = None,
        tls: "Certificates | None" = None,
        durable: bool = False,
        settings: Mapping[str, str] = _NO_SETTINGS,
        sentinel: bool = False,
    ) -> None:
        self.make = Make(make)
        name = f"{self.make}-sentinel" if sentinel else str(self.make)
        ControlledServer.__init__(self, name)
        RedisEndpoint.__init__(self, url="")
        self.password = password
        self.tls = tls
        self.configuration = self.process.folder / "server.conf"
        """Written when the server starts, read again when it restarts."""
        self._binary = binary_of(self.make)
        self._settings = dict(settings)
        self._durable = durable
        self._sentinel = sentinel

    @property
    @override
    def url(self) -> str:
        """The URL with everything a client needs in it."""
        user = f":{self.password}@" if self.password else ""
        address = f"{user}{self.host}:{self.port}"
        if self.tls is None:
            return f"redis://{address}/0"
        return f"rediss://{address}/0?ssl_ca_certs={self.tls.authority}"

    @override
    def prepare(self) -> None:
        self.configuration.write_text(self._lines())

    @override
    def command(self) -> list[str | Path]:
        """Return the program, with the file that `prepare` has written."""
        return [self._binary, self.configuration, *(["--sentinel"] if self._sentinel else [])]

    @override
    def answers(self) -> bool:
        # Another server may have taken the port just before ours: so ask for the process, too.
        with (
            contextlib.suppress(redis.RedisError, OSError),
            self.impatient_client(decode_responses=True) as client,
        ):
            return bool(client.info("server")["process_id"] == self.process.pid)
        return False

    def _lines(self) -> str:
        lines = {"bind": self.host, "port": str(self.port), "dir": str(self.process.folder)}
        if not self._sentinel:
            lines |= {"save": '""', "appendonly": "yes" if self._durable else "no"}
            lines |= {"repl-diskless-sync-delay": "0", "shutdown-timeout": "0"}
            if self.make is Make.REDIS62:
                del lines["shutdown-timeout"]
        if self.password:
            lines |= {"requirepass": self.password, "masterauth": self.password}
        if self.tls:
            lines |= {"port": "0", "tls-port": str(self.port), "tls-auth-clients": "no"}
            lines |= {
                "tls-cert-file": str(self.tls.certificate),
                "tls-key-file": str(self.tls.key),
                "tls-ca-cert-file": str(self.tls.authority),
            }
        lines |= self._settings
        return "".join(f"{name} {value}\n" for name, value in lines.items())
