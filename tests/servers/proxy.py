"""A TCP proxy in front of a server, which counts what passes and breaks what it is told to.

```python
with DroppingProxy(server.host, server.port) as proxy:
    client = redis.Redis.from_url(proxy.through(server.url))
    proxy.drop_next_reply("INCRBY")
    client.incrby("a")  # applied, its reply lost; the client sends it again
    assert proxy.names() == ["INCRBY", "INCRBY"]
```

It understands plain RESP and HTTP, no TLS. The addresses that a cluster's node or a sentinel tells
its clients lead past it.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from tests.servers.ports import LOCALHOST, free_port
from tests.servers.relay import Boss, Fate, Plan, Relay
from tests.servers.wire import Request

_BACKLOG = 64
_JOIN = 5.0


class DroppingProxy:
    """Passes everything between clients and one server; listens on a port of its own.

    Args:
        host: The server's.
        port: The server's.

    """

    def __init__(self, host: str, port: int) -> None:
        self.server = (host, port)
        self.host = LOCALHOST
        self.port = free_port()
        self.delay = 0.0
        """Seconds for which each piece of a reply is held back, on every connection by itself."""
        self.accepted = 0
        """Connections so far."""
        self._lock = threading.Lock()
        self._plans: list[Plan] = []
        self._requests: list[Request] = []
        self._round_trips = 0
        self._relays: set[Relay] = set()
        self._listener: socket.socket | None = None
        self._acceptor: threading.Thread | None = None

    def through(self, url: str) -> str:
        """Return the URL of the server, or any text with its address, leading through the proxy."""
        host, port = self.server
        return url.replace(f"{host}:{port}", f"{self.host}:{self.port}")

    @property
    def requests(self) -> list[Request]:
        """What clients have sent, but for what sets a connection up."""
        with self._lock:
            return list(self._requests)

    @property
    def round_trips(self) -> int:
        """How often a client sent something and waited.

        A pipeline is one if it comes in one piece; a longer one may count more than once, for its
        first replies can be there before its end.
        """
        with self._lock:
            return self._round_trips

    def names(self) -> list[str]:
        """Return the requests' names alone."""
        return [request.name for request in self.requests]

    def forget(self) -> None:
        """Count from nothing again."""
        with self._lock:
            self._requests.clear()
            self._round_trips = 0

    def drop_next_reply(self, name: str | None = None) -> None:
        """Let the server apply the next request, and cut the connection instead of its reply.

        Args:
            name: The next request of this name; None: the next that does not set a connection up.

        """
        self._plan(Plan(Fate.REPLY_LOST, name))

    def drop_next_request(self, name: str | None = None) -> None:
        """Cut the connection before the server sees the next request."""
        self._plan(Plan(Fate.REQUEST_LOST, name))

    def answer_next(self, answer: bytes, name: str | None = None) -> None:
        r"""Answer the next request without the server, with `b"-LOADING wait\r\n"` for instance."""
        self._plan(Plan(Fate.ANSWERED, name, answer))

    @property
    def planned(self) -> int:
        """How many of the drops and answers asked for have not happened yet."""
        with self._lock:
            return len(self._plans)

    def cut(self) -> None:
        """End every connection; new ones are accepted."""
        with self._lock:
            relays = list(self._relays)
        for relay in relays:
            relay.cut()

    def refuse(self) -> None:
        """End every connection and refuse new ones, as if the server were gone."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
            listener.close()
        if self._acceptor is not None:
            self._acceptor.join(_JOIN)
        self.cut()

    def accept(self) -> None:
        """Accept connections, again or for the first time."""
        if self._listener is not None:
            return
        listener = socket.create_server((self.host, self.port), backlog=_BACKLOG)
        self._listener = listener
        self._acceptor = threading.Thread(target=self._accept_all, args=(listener,), daemon=True)
        self._acceptor.start()

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Refuse connections within the block."""
        self.refuse()
        try:
            yield
        finally:
            self.accept()

    def __enter__(self) -> Self:
        self.accept()
        return self

    def __exit__(self, *exception: object) -> None:
        self.refuse()

    def _note(self, request: Request, begins_round_trip: bool) -> Plan | None:  # noqa: FBT001 - as it is noted
        with self._lock:
            if not request.is_set_up:
                self._requests.append(request)
                self._round_trips += begins_round_trip
            for plan in self._plans:
                if plan.concerns(request):
                    self._plans.remove(plan)
                    return plan
        return None

    def _gone(self, relay: Relay) -> None:
        with self._lock:
            self._relays.discard(relay)

    def _plan(self, plan: Plan) -> None:
        with self._lock:
            self._plans.append(plan)

    def _accept_all(self, listener: socket.socket) -> None:
        boss = Boss(note=self._note, delay=lambda: self.delay, gone=self._gone)
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.server)
            except OSError:
                client.close()
                continue
            relay = Relay(boss, client, server)
            with self._lock:
                self.accepted += 1
                self._relays.add(relay)
            relay.start()
