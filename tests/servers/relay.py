"""One client's connection to a server, passed on in both directions, and cut as planned."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

import attrs

from tests.servers.wire import ReplyCounter, Request, RequestReader, replies_to

_PIECE = 65_536


class Fate(Enum):
    """What is to become of a request."""

    REPLY_LOST = "the server applies it, the connection ends before the reply gets through"
    REQUEST_LOST = "the connection ends before the server sees it"
    ANSWERED = "the server does not see it, the proxy answers"


@attrs.frozen
class Plan:
    """What is to become of the next request of a name, or of the next one whatever its name."""

    fate: Fate
    name: str | None
    answer: bytes = b""

    def concerns(self, request: Request) -> bool:
        """Whether this is the request that was meant."""
        return not request.is_set_up if self.name is None else request.name == self.name


@attrs.frozen
class Boss:
    """What a relay asks the one who started it."""

    note: Callable[[Request, bool], Plan | None]
    """Takes each request, and whether the client waited for nothing before it; returns its plan."""
    delay: Callable[[], float]
    """Returns the seconds for which a piece of a reply is held back."""
    gone: Callable[["Relay"], None]
    """Takes a relay that has ended."""


class Relay:
    """Passes one connection on, with a thread for each direction."""

    def __init__(self, boss: Boss, client: socket.socket, server: socket.socket) -> None:
        self._boss = boss
        self._client = client
        self._server = server
        self._lock = threading.Lock()
        self._counter: ReplyCounter | None = None
        self._directions = 2
        self._unanswered = 0
        self._replies_to_doom: int | None = None

    def start(self) -> None:
        """Begin to pass things on."""
        for each in (self._client, self._server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for work in (self._pass_requests, self._pass_replies):
            threading.Thread(target=self._until_cut, args=(work,), daemon=True).start()

    def cut(self) -> None:
        """End the connection on both sides."""
        for each in (self._client, self._server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _until_cut(self, work: Callable[[], None]) -> None:
        with suppress(OSError):
            work()
        self.cut()
        with self._lock:
            self._directions -= 1
            if self._directions:
                return  # the other thread may be about to use the sockets; it will close them
        self._client.close()
        self._server.close()
        self._boss.gone(self)

    def _pass_requests(self) -> None:
        reader = RequestReader()
        while data := self._client.recv(_PIECE):
            with self._lock:
                waits_for_nothing = self._unanswered == 0
            for request in reader.feed(data):
                if not self._pass_request(request, waits_for_nothing):
                    return
                waits_for_nothing = False

    def _pass_request(self, request: Request, waits_for_nothing: bool) -> bool:  # noqa: FBT001 - as it is noted
        with self._lock:
            self._counter = self._counter or replies_to(request)
        plan = self._boss.note(request, waits_for_nothing)
        if plan is not None and plan.fate is Fate.REQUEST_LOST:
            return False
        if plan is not None and plan.fate is Fate.ANSWERED:
            self._client.sendall(plan.answer)
            return True
        with self._lock:
            self._unanswered += 1
            if plan is not None:
                self._replies_to_doom = self._unanswered
        self._server.sendall(request.raw)
        return True

    def _pass_replies(self) -> None:
        while data := self._server.recv(_PIECE):
            with self._lock:
                replies = self._counter.feed(data) if self._counter else 0
                # Counted before it is passed on: the client's next request may follow at once.
                self._unanswered = max(0, self._unanswered - replies)
                doomed = self._replies_to_doom is not None
                if self._replies_to_doom is not None:
                    self._replies_to_doom -= replies
                    if self._replies_to_doom <= 0:
                        return
            if doomed:
                continue
            if delay := self._boss.delay():
                time.sleep(delay)
            self._client.sendall(data)
