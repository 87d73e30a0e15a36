"""batchstate on Amazon DynamoDB: one table, no index, every read consistent.

What lies where, for the queue `merges` with four shards. The last part of a key is a name as it is;
the queue's is percent-encoded where it holds `#` or `%`.

| pk | sk | attributes | what it is |
|---|---|---|---|
| `merges#batch#batch-17` | `row` | format, version 3, state `merging`, entered 3 … | a batch's row: a `BatchRow` |
| `merges#state#2#merging` | `batch-17` | version 3 | a membership record, in shard 2 of its state |
| `merges#request#pr-1` | `batch-17` | outcome, where there is one | an association |
| `merges#retired#2` | `0001753900000000:batch-17:9f86d081884c7d65` | | a retired row, by instant |
| `#queues` | `merges` | layout 1, shards 4 | a queue |

With transactions the queue keeps jobs as well. What changes about a job lies in the item of its place:

| pk | sk | attributes | what it is |
|---|---|---|---|
| `merges#job#pr-1` | `guard` | group, order, payload; or until when it is remembered as done | guards an ID |
| `merges#waiting#ada` | `0000000000000007:pr-1` | counters, last claim | a job that waits in group `ada` |
| `merges#scheduled#ada` | `0001753900000000:0000000000000007:pr-1` | the same | one that is due later |
| `merges#dead` | `0000000000000007:pr-1` | the same | one that is dead |
| `merges#claims#2` | `claim-17` | lease, what its end does, the jobs held with their counters | a claim in flight |
| `merges#groups` | `:ada` | counts, ceiling, paused, turn, mark | a group |
| `merges#jobs` | `queue`, `numbers` | paused and the default ceiling; the last order and turn | what holds for all |
| `merges#done#1` | `0001753900000000:pr-1` | | a remembered ID, by when it is forgotten |
| `merges#hold#batch-17` | `hold` | token, until | a hold on a batch |

A step on jobs writes the items of their groups on condition that nobody wrote them since it read them, and is decided
anew where somebody did. So the steps on one group follow each other; groups do not hinder each other. What DynamoDB
cannot do: a claim takes up to 94 jobs, larger settlements and sweeps are several transactions, each whole; the time is
the host's, so that a sweep takes a `skew`; a claim that is under way does not see that the queue is paused; with
several claimers a group may wait for as many turns as there are claimers, times groups; counts are no snapshot.

Versions and instants are numbers; what the user gave is JSON text, so that it comes back as it went
in. What is empty is left out. Nothing has a time to live: rows go by `purge` alone.

A move is three conditional writes: the row's update, the record's put, the record's delete.
`TransactingDynamoDBStorage` does them in one transaction, at twice the units. A write that fails its
condition brings the item that it met, so that a lost race costs no read.
"""

from batchstate_dynamodb.opening import make_client
from batchstate_dynamodb.reshard import reshard
from batchstate_dynamodb.storage import DynamoDBStorage
from batchstate_dynamodb.table import check_table, cloudformation, create_table, iam_policy
from batchstate_dynamodb.transactions import TransactingDynamoDBStorage

__all__ = [
    "DynamoDBStorage",
    "TransactingDynamoDBStorage",
    "check_table",
    "cloudformation",
    "create_table",
    "iam_policy",
    "make_client",
    "reshard",
]
