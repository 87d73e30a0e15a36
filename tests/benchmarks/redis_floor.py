"""The floor for Redis: a hand-written script on bare redis-py that swaps a row and moves its record, with our bytes."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis import Redis

    from batchstate import Batch

__all__ = ["RedisFloor"]

SCRIPT = """
local moved = 0
for n = 1, #KEYS - 2 do
  local at = n * 4 - 3
  local row = redis.call('GET', KEYS[n + 2])
  if row and row:sub(1, #ARGV[at]) == ARGV[at] then
    redis.call('SET', KEYS[n + 2], ARGV[at + 1])
    redis.call('ZADD', KEYS[1], ARGV[at + 2], ARGV[at + 3])
    redis.call('ZREM', KEYS[2], ARGV[at + 3])
    moved = moved + 1
  end
end
return moved
"""

Held = tuple[str, int, str, str, str, str, dict[str, Any]]
"""ID, version, state, marks, moves, the second line, attributes."""


class RedisFloor:
    """Moves and lists batches by hand, in keys of its own that hold the same rows as the adapter's."""

    def __init__(self, client: Redis, batches: Sequence[Batch]) -> None:
        self._client = client
        self._script = client.register_script(SCRIPT)
        self.held: list[Held] = [
            (
                *(batch.id, batch.version, batch.state, batch.marks, batch.history.text),
                f"{batch.created_at}\t{json.dumps(batch.request_ids, separators=(',', ':'))}",
                batch.attributes,
            )
            for batch in batches
        ]
        for place, (batch_id, version, state, *_) in enumerate(self.held):
            _, row, self.held[place] = self._changed(place, state, 1_800_000_000_000)
            client.set(f"floor:{{q}}:b:{batch_id}", row)
            client.zadd(f"floor:{{q}}:s:{state}", {batch_id: version})

    def move(self, places: Sequence[int], to: str, now: int) -> None:
        """Move the held batches at these places, which are in one state, in one script."""
        state = self.held[places[0]][2]
        keys = [f"floor:{{q}}:s:{to}", f"floor:{{q}}:s:{state}"]
        arguments: list[str | int] = []
        for place in places:
            head, row, self.held[place] = self._changed(place, to, now)
            batch_id, version, *_ = self.held[place]
            keys.append(f"floor:{{q}}:b:{batch_id}")
            arguments += (head, row, version, batch_id)
        if self._script(keys=keys, args=arguments) != len(places):
            raise AssertionError(state)

    def _changed(self, place: int, to: str, now: int) -> tuple[str, str, Held]:
        """Answer what a held batch's row begins with, the row in its next version, and the batch in that."""
        batch_id, version, state, marks, moves, second, attributes = self.held[place]
        mark = secrets.token_hex(8)
        *earlier, last = marks.split(" ")[-8:]
        kept = [*earlier, last][-7:]
        move = json.dumps([state, to, version + 1, now, "bench", ""], separators=(",", ":"))
        new_moves = "\n".join([*moves.split("\n")[-19:], move])
        encoded = json.dumps(attributes, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        first = f"1\t{version + 1}\t\t{mark}\t{version + 1}\t{now}\t{to}\t{' '.join(kept)}"
        head = f"1\t{version}\t\t{last.rpartition(':')[2]}\t"
        new_marks = " ".join([*kept, f"{version + 1}:{mark}"])
        held = (batch_id, version + 1, to, new_marks, new_moves, second, attributes)
        return head, f"{first}\n{second}\n{encoded}\n{new_moves}", held

    def list_state(self, prefix: str, state: str) -> list[tuple[Any, ...]]:
        """List a state of the adapter's own: its records, MGET by 500, requests and attributes decoded."""
        ids: list[bytes] = self._client.zrange(f"{prefix}:{{bench}}:s:{state}", 0, -1)  # type: ignore[assignment]
        base = f"{prefix}:{{bench}}:b:".encode()
        found: list[tuple[Any, ...]] = []
        for start in range(0, len(ids), 500):
            chunk = ids[start : start + 500]
            rows: list[bytes] = self._client.mget([base + batch_id for batch_id in chunk])  # type: ignore[assignment]
            for batch_id, row in zip(chunk, rows, strict=True):
                first, second, attributes, moves = row.decode().split("\n", 3)
                fields = first.split("\t")
                created, requests = second.split("\t")
                if fields[6] == state:
                    found.append((batch_id, *fields, created, json.loads(requests), json.loads(attributes), moves))
        return sorted(found)
