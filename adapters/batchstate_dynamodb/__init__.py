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
