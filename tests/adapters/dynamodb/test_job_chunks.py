"""Steps on jobs that are larger than a transaction, and what is left of them where they break off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.checking import check_batches
from batchstate.errors import StorageUnavailableError
from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate.job_checking import check_jobs
from batchstate.jobs import Job
from batchstate.queue import BatchQueue
from tests.adapters.dynamodb.fakes import cancellation, failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate_dynamodb import TransactingDynamoDBStorage
    from tests.adapters.dynamodb.conftest import Table

LEASE = 30_000
MANY = [f"{number:02}" for number in range(50)]


def added(store: TransactingDynamoDBStorage, names: Sequence[str] = MANY) -> None:
    """Add jobs."""
    assert store.add_jobs([NewJob(name, "1") for name in names]) == ["added"] * len(names)


def claimed(store: TransactingDynamoDBStorage) -> None:
    """Add jobs, and claim them all."""
    added(store)
    claim = store.claim_jobs(Claiming("c", len(MANY), LEASE, "0123456789abcdef"))
    assert claim is not None
    assert len(claim.jobs) == len(MANY)


def break_off(table: Table, whole: int) -> None:
    """Let so many transactions be written, and none after them, as if the worker had died."""
    table.fakes.next("TransactWriteItems", *[None] * whole)
    table.fakes.always("TransactWriteItems", failure("AccessDeniedException"))


def go_on(table: Table) -> None:
    """Let transactions be written again."""
    table.fakes.always("TransactWriteItems", None)


def is_sound(store: TransactingDynamoDBStorage, table: Table) -> bool:
    """Answer whether nothing is wrong with what is stored."""
    return [*check_batches(store, None, settled_for=0, clock=table.clock), *check_jobs(store)] == []


@pytest.mark.parametrize("whole", [0, 1])
def test_an_addition_that_breaks_off(transacting: TransactingDynamoDBStorage, table: Table, whole: int) -> None:
    """Of an addition that breaks off, whole transactions are there; sent again, it adds the rest and nothing twice."""
    break_off(table, whole)
    with pytest.raises(StorageUnavailableError):
        transacting.add_jobs([NewJob(name, "1") for name in MANY])
    go_on(table)
    there = transacting.count_jobs().waiting
    assert there == 30 * whole

    answers = transacting.add_jobs([NewJob(name, "1") for name in MANY])

    assert answers == ["duplicate"] * there + ["added"] * (len(MANY) - there)
    assert [job.id for job in transacting.list_jobs("waiting").items if isinstance(job, Job)] == MANY
    assert is_sound(transacting, table)


@pytest.mark.parametrize("verdict", ["complete", "retry", "release"])
@pytest.mark.parametrize("whole", [0, 1])
def test_a_settlement_that_breaks_off(
    transacting: TransactingDynamoDBStorage, table: Table, whole: int, verdict: str
) -> None:
    """Of a settlement that breaks off, the claim holds the rest; sent again, it is whole, each job charged once."""
    claimed(transacting)
    settlings = [Settling(name, verdict, "no") for name in MANY]  # type: ignore[arg-type]  # it is a verdict
    break_off(table, whole)
    with pytest.raises(StorageUnavailableError):
        transacting.settle_jobs("c", settlings, keep_done=1000)
    go_on(table)
    held = transacting.count_jobs().active
    assert (held == len(MANY)) == (whole == 0)
    assert held > 0
    assert is_sound(transacting, table)

    settled = transacting.settle_jobs("c", settlings, keep_done=1000)

    assert len(set(settled.outcomes)) == 1
    assert settled.finished
    counts = transacting.count_jobs()
    assert (counts.waiting, counts.active) == (0 if verdict == "complete" else len(MANY), 0)
    attempts = {job.attempts for job in transacting.list_jobs("waiting").items if isinstance(job, Job)}
    assert attempts == {"complete": set(), "retry": {1}, "release": {0}}[verdict]
    assert transacting.get_batches(["c"])["c"].state == "settled"  # type: ignore[union-attr]  # it can be read
    assert is_sound(transacting, table)


@pytest.mark.parametrize("whole", [0, 1])
def test_a_sweep_that_breaks_off(transacting: TransactingDynamoDBStorage, table: Table, whole: int) -> None:
    """Of a sweep that breaks off, the claim holds the rest; the next sweep takes it, and each job is charged once."""
    claimed(transacting)
    table.clock.advance("30s")
    break_off(table, whole)
    with pytest.raises(StorageUnavailableError):
        transacting.sweep_jobs(500, max_stalls=3)
    go_on(table)
    held = transacting.count_jobs().active
    assert is_sound(transacting, table)

    swept = transacting.sweep_jobs(500, max_stalls=3)

    assert list(swept.returned) == MANY[len(MANY) - held :]
    assert (swept.dead, swept.ended, swept.more) == ((), ("c",), False)
    returned = [job for job in transacting.list_jobs("waiting").items if isinstance(job, Job)]
    assert [(job.id, job.stalls) for job in returned] == [(name, 1) for name in MANY]
    assert transacting.get_batches(["c"])["c"].state == "abandoned"  # type: ignore[union-attr]  # it can be read
    assert is_sound(transacting, table)


def test_a_claim_that_breaks_off(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """A large claim that breaks off after its associations took nothing, and the next one takes what it would have."""
    added(transacting)
    break_off(table, 0)
    with pytest.raises(StorageUnavailableError):
        transacting.claim_jobs(Claiming("lost", 49, LEASE, "0123456789abcdef"))
    go_on(table)
    assert table.watch.counts["PutItem"] > 49
    queue = BatchQueue(transacting)
    assert list(queue.attempts("00")) == []

    claim = queue.claim(49)

    assert claim is not None
    assert [job.id for job in claim] == MANY[:49]
    assert [attempt.batch.id for attempt in queue.attempts("00")] == [claim.id]


@pytest.mark.parametrize(
    "reasons",
    [
        ["None", "TransactionConflict"],
        ["ThrottlingError", "ConditionalCheckFailed"],
        ["None", "ProvisionedThroughputExceeded", "TransactionConflict"],
    ],
)
def test_large_steps_under_contention(
    transacting: TransactingDynamoDBStorage, table: Table, reasons: list[str]
) -> None:
    """Each transaction of a large step is cancelled and sent again by itself, and what was written before it stands."""
    claimed(transacting)
    table.fakes.next("TransactWriteItems", cancellation(*reasons), None, cancellation(*reasons), None)

    settled = transacting.settle_jobs("c", [Settling(name, "retry", "no") for name in MANY], keep_done=0)

    assert set(settled.outcomes) == {"retried"}
    assert {job.attempts for job in transacting.list_jobs("waiting").items if isinstance(job, Job)} == {1}
    assert is_sound(transacting, table)
