"""Steps on jobs whose replies are lost: the write was applied, and is sent again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from batchstate.job_calls import Claiming, Settling
from batchstate.queue import BatchQueue
from batchstate.testing.contract.jobs.base import everything_of
from batchstate.testing.contract.jobs.replays import CALLS
from batchstate_dynamodb import TransactingDynamoDBStorage

if TYPE_CHECKING:
    from tests.adapters.dynamodb.conftest import Table

LEASE = 30_000
WRITES = ("TransactWriteItems", "UpdateItem", "PutItem", "DeleteItem")
FORGETFUL = frozenset({"purge", "remove"})
"""What they did is seen by nothing that is left. The service knows them again by their token, the emulator does not."""


def given(table: Table, name: str, call: str) -> BatchQueue:
    """Answer a queue with a dead job, one due later, one waiting, and two that are held."""
    store = table.open(TransactingDynamoDBStorage, name, threads=1)
    queue = BatchQueue(store)
    for job in ("dead", "a", "b", "c"):
        queue.add(job, group="g")
    queue.add("late", delay=500)
    store.claim_jobs(Claiming("first", 1, LEASE, "0123456789abcdef", "g"))
    store.settle_jobs("first", [Settling("dead", "dead", "no")], keep_done=0)
    store.claim_jobs(Claiming("claim", 2, LEASE, "0123456789abcdef", "g"))
    if call.endswith("hold") and call != "hold":
        store.take_hold("claim", "held", 10 * LEASE)
    return queue


def told(seen: object) -> str:
    """Answer a text of what is seen, without the queue's name; numbers in the line may be left out, so these too."""
    return re.sub(r"order=\d+", "", repr(seen).replace("'losing'", "'sound'"))


@pytest.mark.parametrize("call", [call for call in CALLS if call not in FORGETFUL])
def test_a_call_that_loses_replies(table: Table, call: str) -> None:
    """A call that loses one reply of each kind of write answers, and leaves, what it would have otherwise."""
    sound, losing = given(table, "sound", call), given(table, "losing", call)
    if call == "sweep":
        table.clock.advance("30s")

    expected = CALLS[call](sound)
    for operation in WRITES:
        table.fakes.lose_reply(operation)
    answer = CALLS[call](losing)
    for operation in WRITES:
        table.fakes.lose_reply(operation, times=0)

    assert told(answer) == told(expected)
    assert told(everything_of(losing)) == told(everything_of(sound))
    assert table.waits
