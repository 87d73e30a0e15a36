"""Going through what is too much for one answer, a page at a time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from batchstate.entities import Association, MembershipRecord
from batchstate.errors import InvalidValueError
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

    A cursor of the list of retired batches is a position in it, `[score, member]`: scores there
    never change. Elsewhere it is the server's own, with the server's ID: versions rise while one
    looks, and what goes by them would run after those that rise and never come to the others. A
    server that took over cannot go on from another's cursor and begins anew, which at worst returns
    things twice.

    Args:
        runner: runs the scripts.
        keys: the queue's keys.
        queue: the queue.
    """

    def __init__(self, runner: Runner, keys: Keys, queue: str) -> None:
        self._runner = runner
        self._keys = keys
        self._queue = queue

    def retired(self, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        """Answer up to `limit` retired batches, and the cursor of those that follow."""
        score, member = ("", "") if cursor is None else _read_cursor(cursor)
        call = Call(self._keys.retired)
        call.arguments += (limit + 1, str(score).encode(), str(member).encode("utf-8", "surrogateescape"))
        flat = self._runner.run(script("page_after"), call)
        batch_ids = [batch_id for batch_id, _ in entries_of(flat[: 2 * limit])]
        if len(flat) <= 2 * limit:
            return batch_ids, None
        last, score = flat[2 * limit - 2 : 2 * limit]
        return batch_ids, json.dumps([int(score), last.decode("utf-8", "surrogateescape")])

    def bucket(self, state: str, cursor: str | None, limit: int) -> tuple[list[MembershipRecord], str | None]:
        """Answer about `limit` records of a state, and the cursor of those that follow."""
        flat, following = self._within(b"ZSCAN", self._keys.state(state), cursor, limit)
        return [MembershipRecord(self._queue, state, *entry) for entry in entries_of(flat)], following

    def keys(self, kind: str, cursor: str | None, limit: int) -> tuple[list[bytes], str | None]:
        """Answer some keys of a kind, possibly none, and the cursor of those that follow."""
        server, place = ("", "0") if cursor is None else _read_cursor(cursor)
        call = Call(self._keys.count)
        call.arguments += (str(server).encode(), str(place).encode(), self._keys.pattern(kind), limit)
        server, place, found = self._runner.run(script("scan_keys"), call)
        return found, _cursor(server, place)

    def records(self, cursor: str | None, limit: int) -> tuple[list[MembershipRecord], str | None]:
        """Answer some records of all states, and the cursor of those that follow.

        The cursor holds that of the keys, the states whose keys were found and not gone through
        yet, and the cursor in the first of these.
        """
        outer, states, inner = (None, [], None) if cursor is None else json.loads(cursor)
        if not states:
            found, outer = self.keys("s", outer, max(limit, 100))
            states, inner = [self._keys.state_of(key) for key in found], None
        records: list[MembershipRecord] = []
        if states:
            records, inner = self.bucket(states[0], inner, limit)
            states = states if inner is not None else states[1:]
        if outer is None and not states:
            return records, None
        return records, json.dumps([outer, states, inner])

    def attempts(self, request_id: str) -> list[tuple[str, str]]:
        """Answer a request's attempts and what became of it in each, all of them."""
        key = self._keys.request(request_id)
        flat, cursor = self._within(b"HSCAN", key, None, FIELDS_AT_ONCE)
        found = _pairs(flat)
        while cursor is not None:
            flat, cursor = self._within(b"HSCAN", key, cursor, FIELDS_AT_ONCE)
            found |= _pairs(flat)
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

    def members(self, key: bytes, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        """Answer about `limit` members of a sorted set, each once, and the cursor of those that follow."""
        flat, following = self._within(b"ZSCAN", key, cursor, limit)
        return list(_pairs(flat)), following

    def _within(self, command: bytes, key: bytes, cursor: str | None, limit: int) -> tuple[list[bytes], str | None]:
        server, place = ("", "0") if cursor is None else _read_cursor(cursor)
        call = Call(key)
        call.arguments += (command, str(server).encode(), str(place).encode(), limit)
        server, place, flat = self._runner.run(script("scan_within"), call)
        return flat, _cursor(server, place)


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


def _cursor(server: bytes, place: bytes) -> str | None:
    return None if place == b"0" else json.dumps([server.decode(), place.decode()])
