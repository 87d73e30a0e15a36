"""Requests and replies on the wire: RESP, as Redis speaks it, or HTTP, as DynamoDB does."""

from typing import Protocol

import attrs
import hiredis

_HTTP_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"

# What a RESP client says by itself when it connects.
SET_UP = frozenset({"AUTH", "CLIENT", "HELLO", "READONLY", "SELECT"})


@attrs.frozen
class Request:
    """One request: a RESP command, or an HTTP request to DynamoDB.

    `name` is the command in capitals (`EVALSHA`) or the operation (`PutItem`); `arguments` are the
    command's, or the one body. `raw` is what was sent.
    """

    name: str
    arguments: tuple[bytes, ...]
    raw: bytes = attrs.field(repr=False)

    @property
    def is_set_up(self) -> bool:
        """Whether the client sent it to set the connection up, and not for its user."""
        return self.name in SET_UP


class RequestReader:
    """Cuts what a client sends into requests, whatever the pieces in which it comes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Request]:
        """Take the next piece; return the requests that it completes."""
        self._rest += data
        requests = []
        while request := _first_request(self._rest):
            requests.append(request)
            self._rest = self._rest[len(request.raw) :]
        return requests


class ReplyCounter(Protocol):
    """Counts the replies in what a server sends."""

    def feed(self, data: bytes) -> int:
        """Take the next piece; return the number of replies that it completes."""
        ...


class RespReplies:
    """Counts RESP2 and RESP3 replies; what a server pushes unasked is none."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader()

    def feed(self, data: bytes) -> int:
        """Take the next piece; return the number of replies that it completes."""
        self._reader.feed(data)
        replies = 0
        while (reply := self._reader.gets(False)) is not False:  # noqa: FBT003 - not decoded
            replies += not isinstance(reply, hiredis.PushNotification)
        return replies


class HttpReplies:
    """Counts HTTP replies that say how long they are."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> int:
        """Take the next piece; return the number of replies that it completes."""
        self._rest += data
        replies = 0
        while (length := _http_length(self._rest)) is not None and length <= len(self._rest):
            self._rest = self._rest[length:]
            replies += 1
        return replies


def replies_to(request: Request) -> ReplyCounter:
    """Return the counter for the protocol of a connection's first request."""
    return RespReplies() if request.raw.startswith(b"*") else HttpReplies()


def _first_request(data: bytes) -> Request | None:
    if not data:
        return None
    return _resp_request(data) if data.startswith(b"*") else _http_request(data)


def _resp_request(data: bytes) -> Request | None:
    end = data.find(_LINE_END)
    if end < 0:
        return None
    parts = []
    position = end + len(_LINE_END)
    for _ in range(int(data[1:end])):
        end = data.find(_LINE_END, position)
        if end < 0:
            return None
        begin = end + len(_LINE_END)
        end = begin + int(data[position + 1 : end])
        position = end + len(_LINE_END)
        if len(data) < position:
            return None
        parts.append(data[begin:end])
    return Request(parts[0].decode().upper(), tuple(parts[1:]), data[:position])


def _http_request(data: bytes) -> Request | None:
    length = _http_length(data)
    if length is None or length > len(data):
        return None
    head, _, body = data[:length].partition(_HTTP_HEAD_END)
    first, *_ = head.decode("latin-1").splitlines()
    operation = _http_header(head, "x-amz-target").rpartition(".")[2]
    return Request(operation or first, (body,), data[:length])


def _http_length(data: bytes) -> int | None:
    end = data.find(_HTTP_HEAD_END)
    if end < 0:
        return None
    return end + len(_HTTP_HEAD_END) + int(_http_header(data[:end], "content-length") or 0)


def _http_header(head: bytes, name: str) -> str:
    for line in head.decode("latin-1").splitlines()[1:]:
        found, _, value = line.partition(":")
        if found.strip().lower() == name:
            return value.strip()
    return ""
