"""The floor for jobs on Redis: hand-written scripts on bare redis-py that claim and acknowledge, and do less than ours.

There is one group, no pause, no ceiling, nothing due, no counting of deliveries, and nobody looks whether a job is
still held. With `batches` it also writes what a claim leaves behind: the row, its record, an association a job, and
their end.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from uuid6 import uuid7

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
return {expires, ids, redis.call('HMGET', KEYS[3], unpack(ids))}
"""

CLAIM_WITH_BATCH = CLAIM.replace(
    "return {",
    """
for n = 1, #ids do
  redis.call('HSET', KEYS[4] .. ids[n], ARGV[2], '')
end
redis.call('SET', KEYS[5] .. ARGV[2], ARGV[3] .. table.concat(ids, '","'))
redis.call('ZADD', KEYS[6], 1, ARGV[2])
return {""",
)

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
return redis.call('ZREM', KEYS[2], unpack(ARGV, 2))
"""

ACKNOWLEDGE_WITH_BATCH = ACKNOWLEDGE.replace(
    "local done",
    """
for n = 2, #ARGV do
  redis.call('HSET', KEYS[5] .. ARGV[n], ARGV[1], 'completed')
end
local row = redis.call('GET', KEYS[6] .. ARGV[1])
redis.call('SET', KEYS[6] .. ARGV[1], 'settled' .. row)
redis.call('ZREM', KEYS[7], ARGV[1])
redis.call('ZADD', KEYS[8], now, ARGV[1])
local done""",
)


class RedisJobFloor:
    """Claims and acknowledges jobs by hand."""

    def __init__(self, client: Redis, prefix: str, waiting: int, *, batches: bool = False) -> None:
        self._batches = batches
        self._keys = [
            f"{prefix}:{{q}}:{name}" for name in ("waiting", "active", "payloads", "done", "a:", "b:", "s", "r")
        ]
        self._claim = client.register_script(CLAIM_WITH_BATCH if batches else CLAIM)
        self._acknowledge = client.register_script(ACKNOWLEDGE_WITH_BATCH if batches else ACKNOWLEDGE)
        pipeline = client.pipeline(transaction=False)
        for number in range(waiting):
            name = f"job-{number:06}"
            pipeline.zadd(self._keys[0], {name: number})
            pipeline.hset(self._keys[2], name, json.dumps({"n": number, "path": "kombu/transport/base.py"}))
        pipeline.execute()

    def work(self, together: int) -> None:
        """Claim so many, decode their payloads, and acknowledge them."""
        waiting, active, payloads, done, associations, rows, records, retired = self._keys
        claim_id = str(uuid7())
        row = f"1\t1\t\t{secrets.token_hex(8)}\tclaimed\t"
        found: Any = self._claim(
            keys=[waiting, active, payloads, associations, rows, records], args=[together, claim_id, row]
        )
        _, ids, texts = found
        jobs = {name.decode(): json.loads(text) for name, text in zip(ids, texts, strict=True)}
        keys = [waiting, active, payloads, done, associations, rows, records, retired]
        if self._acknowledge(keys=keys, args=[claim_id, *jobs]) != together:
            raise AssertionError
