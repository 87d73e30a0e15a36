"""The floor for jobs on Redis: hand-written scripts on bare redis-py that claim and acknowledge, and do less than ours.

A claim takes jobs out of a line, has them lapse in 30 seconds by the server's clock, and answers their payloads; an
acknowledgement takes them away, remembers their IDs for a day, and tells if one was not held. There is one group, no
pause, no ceiling, nothing due, no counting of deliveries, no order to go back to, nobody is told apart who holds a job,
and nobody who waits is woken.

With `rows` it also writes the batch that a claim leaves behind, its record, and their end; with `associations` an
association a job, and what became of it.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from redis import Redis

__all__ = ["RedisJobFloor"]

CLAIM = """
local time = redis.call('TIME')
local expires = time[1] * 1000 + math.floor(time[2] / 1000) + 30000
local popped = redis.call('ZPOPMIN', KEYS[1], ARGV[1])
local ids, leases = {}, {}
for n = 1, #popped, 2 do
  ids[#ids + 1] = popped[n]
  leases[n] = expires
  leases[n + 1] = popped[n]
end
redis.call('ZADD', KEYS[2], unpack(leases))
"""
ASSOCIATE = """
for n = 1, #ids do
  redis.call('HSET', KEYS[5] .. ids[n], ARGV[2], '')
end
"""
BEGIN_BATCH = """
redis.call('SET', KEYS[6] .. ARGV[2], ARGV[3] .. table.concat(ids, '","'))
redis.call('ZADD', KEYS[7], 1, ARGV[2])
"""
TAKEN = "return {expires, ids, redis.call('HMGET', KEYS[3], unpack(ids))}"

ACKNOWLEDGE = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local done = {}
for n = 2, #ARGV do
  done[2 * n - 3] = now + 86400000
  done[2 * n - 2] = ARGV[n]
end
redis.call('ZADD', KEYS[4], unpack(done))
redis.call('HDEL', KEYS[3], unpack(ARGV, 2))
"""
CONCLUDE = """
for n = 2, #ARGV do
  redis.call('HSET', KEYS[5] .. ARGV[n], ARGV[1], 'completed')
end
"""
END_BATCH = """
local row = redis.call('GET', KEYS[6] .. ARGV[1])
redis.call('SET', KEYS[6] .. ARGV[1], 'settled' .. row)
redis.call('ZREM', KEYS[7], ARGV[1])
redis.call('ZADD', KEYS[8], now, ARGV[1])
"""
GONE = "return redis.call('ZREM', KEYS[2], unpack(ARGV, 2))"


class RedisJobFloor:
    """Claims and acknowledges jobs by hand."""

    def __init__(
        self, client: Redis, prefix: str, waiting: int, *, rows: bool = False, associations: bool = False
    ) -> None:
        names = ["waiting", "active", "payloads", "done"]
        names += ["a:", "b:", "s", "r"] if rows or associations else []
        self._keys = [f"{prefix}:{{q}}:{name}" for name in names]
        self._is_named = rows or associations
        self._rows = rows
        self._claim = client.register_script(CLAIM + ASSOCIATE * associations + BEGIN_BATCH * rows + TAKEN)
        self._acknowledge = client.register_script(ACKNOWLEDGE + CONCLUDE * associations + END_BATCH * rows + GONE)
        pipeline = client.pipeline(transaction=False)
        for number in range(waiting):
            name = f"job-{number:06}"
            pipeline.zadd(self._keys[0], {name: number})
            pipeline.hset(self._keys[2], name, json.dumps({"n": number, "path": "kombu/transport/base.py"}))
        pipeline.execute()

    def work(self, together: int) -> None:
        """Claim so many, decode their payloads, and acknowledge them."""
        claim_id = str(uuid4()) if self._is_named else ""
        row = f"1\t1\t\t{secrets.token_hex(8)}\tclaimed\t" if self._rows else ""
        found: Any = self._claim(keys=self._keys, args=[together, claim_id, row])
        _, ids, texts = found
        jobs = {name.decode(): json.loads(text) for name, text in zip(ids, texts, strict=True)}
        if self._acknowledge(keys=self._keys, args=[claim_id, *jobs]) != together:
            raise AssertionError
