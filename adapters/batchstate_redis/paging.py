"""Going through what is too much for one answer: buckets by position, keys and hashes by the server's own cursor."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from batchstate.entities import Association, MembershipRecord
from batchstate.errors import InvalidValueError, StorageUnavailableError
from batchstate_redis.keys import text_of
from batchstate_redis.scripts import Call, script

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batchstate_redis.keys import Keys
    from batchstate_redis.scripts import Runner

__all__ = ["Pager", "entries_of"]

FIELDS_AT_ONCE: Final = 1000
HASHES_AT_ONCE: Final = 200


class Pager:
    """Reads one queue's keys by pages.

    Cursors of a sorted set are positions in it, `[score, member]`. Those of SCAN and HSCAN mean
    something to the server that gave them alone, so they carry that server's ID, and a page asked
    of another is refused.

    Args:
        runner: runs the scripts.
        keys: the queue's keys.
        queue: the queue.
    """

    def __init__(self, runner: Runner, keys: Keys, queue: str) -> None:
        self._runner = runner
        self._keys = keys
        self._queue = queue

    def page(self, key: bytes, cursor: str | None, limit: int) -> tuple[list[tuple[str, int]], str | None]:
        """Answer up to `limit` members of a sorted set with their scores, and the cursor of those that follow."""
        score, member = ("", "") if cursor is None else _read_cursor(cursor)
        call = Call(key)
        call.arguments += (limit + 1, score, str(member).encode("utf-8", "surrogateescape"))
        flat = self._runner.run(script("page_after"), call)
        entries = entries_of(flat[: 2 * limit])
        if len(flat) <= 2 * limit:
            return entries, None
        last = flat[2 * limit - 2].decode("utf-8", "surrogateescape")
        return entries, json.dumps([entries[-1][1], last])

    def keys(self, kind: str, cursor: str | None, limit: int) -> tuple[list[bytes], str | None]:
        """Answer some keys of a kind, possibly none, and the cursor of those that follow."""
        server, place = ("", 0) if cursor is None else _read_cursor(cursor)
        call = Call(self._keys.count)
        call.arguments += (str(server), str(place), self._keys.pattern(kind), limit)
        answer = self._runner.run(script("scan_keys"), call)
        if answer == 0:
            raise self._moved()
        server, place, found = answer
        return found, None if place == b"0" else json.dumps([server.decode(), place.decode()])

    def records(self, cursor: str | None, limit: int) -> tuple[list[MembershipRecord], str | None]:
        """Answer some records of all states, and the cursor of those that follow.

        The cursor holds that of the keys, the states whose keys were found and not gone through
        yet, and the position in the first of these.
        """
        outer, states, position = (None, [], None) if cursor is None else json.loads(cursor)
        if not states:
            found, outer = self.keys("s", outer, max(limit, 100))
            states, position = [self._keys.state_of(key) for key in found], None
        records: list[MembershipRecord] = []
        if states:
            entries, position = self.page(self._keys.state(states[0]), position, limit)
            records = [MembershipRecord(self._queue, states[0], *entry) for entry in entries]
            states = states if position is not None else states[1:]
        if outer is None and not states:
            return records, None
        return records, json.dumps([outer, states, position])

    def hash_of(self, request_id: str) -> list[tuple[str, str]]:
        """Answer a request's attempts and what became of it in each, all of them."""
        found: dict[str, str] = {}
        server, place = b"", b"0"
        while True:
            call = Call(self._keys.request(request_id))
            call.arguments += (server, place, FIELDS_AT_ONCE)
            answer = self._runner.run(script("scan_hash"), call)
            if answer == 0:  # another server took over: begin anew
                server, place = b"", b"0"
                continue
            server, place, flat = answer
            found |= _pairs(flat)
            if place == b"0":
                return list(found.items())

    def associations_under(self, keys: Sequence[bytes]) -> list[Association]:
        """Answer all associations under these requests' keys."""
        associations: list[Association] = []
        for start in range(0, len(keys), HASHES_AT_ONCE):
            chunk = keys[start : start + HASHES_AT_ONCE]
            for key, flat in zip(chunk, self._runner.run(script("get_hashes"), Call(*chunk)), strict=True):
                request_id = self._keys.request_id(key)
                associations += [Association(self._queue, request_id, *pair) for pair in _pairs(flat).items()]
        return associations

    def _moved(self) -> StorageUnavailableError:
        return StorageUnavailableError(
            f"queue {self._queue!r} moved to another server while it was gone through; nothing was written; begin anew"
        )


def entries_of(flat: Sequence[bytes]) -> list[tuple[str, int]]:
    """Answer members and scores, as the server gives them one after the other, in pairs."""
    return [(text_of(member), int(score)) for member, score in _two_by_two(flat)]


def _pairs(flat: Sequence[bytes]) -> dict[str, str]:
    return {text_of(field): text_of(value) for field, value in _two_by_two(flat)}


def _two_by_two(flat: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _read_cursor(cursor: str) -> tuple[Any, Any]:
    try:
        first, second = json.loads(cursor)
    except (ValueError, TypeError) as error:
        raise InvalidValueError(f"this is no cursor of this listing: {cursor!r:.80}") from error
    return first, second
