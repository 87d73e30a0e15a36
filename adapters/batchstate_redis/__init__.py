"""The Redis and Valkey backend: for a fleet, at the lowest latency.

The layout, with `batchstate` for the prefix and `{q}` for the queue, percent-encoded, in braces:

    batchstate:{q}:b:<batch>     string        a batch's row, see `rows`
    batchstate:{q}:s:<state>     sorted set    a state's records: batches scored by version
    batchstate:{q}:a:<request>   hash          a request's associations: batch to outcome
    batchstate:{q}:r             sorted set    the retired batches, scored by retired_at
    batchstate:{q}:n             string        how many rows the queue has
    batchstate:queues            set           the names of the store's queues

The braces make a cluster keep a queue's keys in one slot, so that one script can change several of
them in one step. The set of names is elsewhere; a name is written there before the queue's first
row. No key has an expiry: what is deleted is deleted by `purge`.

The format of this layout is the first field of every row. A program that meets a higher one leaves
the row alone, with an error that says so; so whoever changes what a key holds raises the format.

What a server has acknowledged it can still lose, in a crash as its `appendfsync` says, and in a
failover what had not reached the replica. A swap checks the mark of the row that was read, so a
batch that went back in time this way is not taken for the one that was read.
"""

from batchstate_redis.storage import RedisStorage

__all__ = ["RedisStorage"]
