"""What the keys of a queue are called: one hash slot for all of them, and no name can leave its place."""

from __future__ import annotations

from urllib.parse import quote

from batchstate.errors import InvalidNameError
from batchstate.names import check_name

__all__ = ["DEFAULT_PREFIX", "Keys", "queues_key", "text_of"]

DEFAULT_PREFIX = "batchstate"


class Keys:
    """The keys of one queue. See the package's head for what stands under each.

    Args:
        prefix: what every key of the store begins with.
        queue: the queue. Percent-encoded, so that no brace and no colon of its name is one of ours.

    Raises:
        InvalidNameError: `prefix` is no name, or has a brace, which would move the hash tag.
    """

    def __init__(self, prefix: str, queue: str) -> None:
        check_name("prefix", prefix)
        if "{" in prefix or "}" in prefix:
            raise InvalidNameError(f"a prefix must not have braces, which say where a cluster keeps a key: {prefix!r}")
        self._base = f"{prefix}:{{{quote(queue, safe='')}}}".encode()
        self.count = self._base + b":n"
        self.retired = self._base + b":r"
        self._batch = self._base + b":b:"
        self._state = self._base + b":s:"
        self._request = self._base + b":a:"
        self._jobs = self._base + b":j:"
        self.jobs = self.job_part("queue")
        self.absent = self.job_part("absent")

    def batch(self, batch_id: str) -> bytes:
        """Answer the key of a batch's row."""
        return self._batch + _bytes(batch_id)

    def state(self, state: str) -> bytes:
        """Answer the key of a state's bucket."""
        return self._state + _bytes(state)

    def request(self, request_id: str) -> bytes:
        """Answer the key of a request's associations."""
        return self._request + _bytes(request_id)

    def job_part(self, part: str) -> bytes:
        """Answer the key of one of the sets and hashes in which the queue's jobs are, see the package's head."""
        return self._jobs + part.encode()

    def batch_id(self, key: bytes) -> str:
        """Answer whose row this key is of."""
        return text_of(key[len(self._batch) :])

    def state_of(self, key: bytes) -> str:
        """Answer which state's bucket this key is of."""
        return text_of(key[len(self._state) :])

    def request_id(self, key: bytes) -> str:
        """Answer which request's associations this key is of."""
        return text_of(key[len(self._request) :])

    def pattern(self, kind: str) -> bytes:
        """Answer the pattern that matches all keys of a kind (`"b"`, `"s"`, `"a"`) and no other key."""
        escaped = b"".join(b"\\" + bytes([code]) if code in b"*?[]\\^-" else bytes([code]) for code in self._base)
        return escaped + b":" + kind.encode() + b":*"


def queues_key(prefix: str) -> bytes:
    """Answer the key of the set of all queues' names, which is the one key outside the queues' slots."""
    return f"{prefix}:queues".encode()


def text_of(raw: bytes) -> str:
    """Answer a name as it was given; what no program of ours wrote comes out readable, not as an error."""
    return raw.decode("utf-8", "backslashreplace")


def _bytes(name: str) -> bytes:
    # A lone surrogate is no name, so nothing is ever found under it.
    return name.encode("utf-8", "surrogatepass")
