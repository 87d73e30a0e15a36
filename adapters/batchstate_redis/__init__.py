"""The Redis and Valkey backend: for a fleet, at the lowest latency.

The layout, with `batchstate` for the prefix and `{q}` for the queue, percent-encoded, in braces:

    batchstate:{q}:b:<batch>     string        a batch's row, see `rows`
    batchstate:{q}:s:<state>     sorted set    a state's records: batches scored by version
    batchstate:{q}:a:<request>   hash          a request's associations: batch to outcome
    batchstate:{q}:r             sorted set    the retired batches, scored by retired_at
    batchstate:{q}:n             string        how many rows the queue has
    batchstate:queues            set           the names of the store's queues

and for the queue's jobs

    batchstate:{q}:j:queue              hash          pause, default ceiling, counters, whether somebody waits for work
    batchstate:{q}:j:jobs               hash          job to what changes of it, see `job_rows`: the truth of its place;
                                                      and with a tab before it to its payload
    batchstate:{q}:j:waiting:<group>    sorted set    jobs by order
    batchstate:{q}:j:active:<group>     sorted set    jobs by order
    batchstate:{q}:j:scheduled:<group>  sorted set    order and job, by due time
    batchstate:{q}:j:dead:<group>       sorted set    jobs by order; j:dead has all of them, j:died by when they died
    batchstate:{q}:j:done               sorted set    IDs of done jobs by when they are forgotten
    batchstate:{q}:j:groups             sorted set    the groups that have anything, by name
    batchstate:{q}:j:ceilings, j:pauses hash          group to its own ceiling, to the reason of its pause
    batchstate:{q}:j:ring               sorted set    the servable groups by turn
    batchstate:{q}:j:alarms             sorted set    groups by when their next job falls due
    batchstate:{q}:j:claims             hash          claim to when its lease ends and how many jobs it holds, and with
                                                      a tab before it to how it ends and the jobs it was made of
    batchstate:{q}:j:leases             sorted set    claims by when a sweep looks at them, no later than a job lapses
    batchstate:{q}:j:holds              hash          batch to who holds it until when
    batchstate:{q}:j:swept              string        what the last sweep answered, should it be sent again

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
