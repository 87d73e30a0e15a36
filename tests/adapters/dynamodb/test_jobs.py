"""Jobs on DynamoDB: lost replies, cancelled transactions, races, and who keeps no jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from batchstate.errors import StorageUnavailableError
from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate.job_storage import JobStorage, Restorable
from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage
from tests.adapters.dynamodb.fakes import cancellation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.adapters.dynamodb.conftest import Table

LEASE = 30_000


def added(store: TransactingDynamoDBStorage, *names: str, group: str = "") -> None:
    """Add jobs, as a worker does."""
    assert store.add_jobs([NewJob(name, f'"{name}"', group) for name in names]) == ["added"] * len(names)


def claiming(claim_id: str = "c", limit: int = 10, group: str | None = None) -> Claiming:
    """Answer a claim to make."""
    return Claiming(claim_id, limit, LEASE, "0123456789abcdef", group)


def test_only_transactions_keep_jobs(plain: DynamoDBStorage, transacting: TransactingDynamoDBStorage) -> None:
    """Without transactions a storage has no jobs, and says so by its type."""
    assert not isinstance(plain, JobStorage)
    assert isinstance(transacting, JobStorage)
    assert isinstance(transacting, Restorable)


def test_a_lost_reply_adds_a_job_once(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """An addition whose reply was lost is sent again, answers as the first would have, and is done once."""
    table.fakes.lose_reply("TransactWriteItems")
    added(transacting, "a", "b")

    assert transacting.count_jobs().waiting == 2
    assert transacting.add_jobs([NewJob("a", "1")]) == ["duplicate"]


def test_a_lost_reply_claims_once(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """A claim whose reply was lost holds the jobs it took, and takes no others."""
    added(transacting, "a", "b", "c")
    table.fakes.lose_reply("TransactWriteItems")

    claim = transacting.claim_jobs(claiming(limit=2))

    assert claim is not None
    assert [job.id for job in claim.jobs] == ["a", "b"]
    assert transacting.count_jobs().waiting == 1
    assert transacting.get_claims(["c"]) == {"c": claim}


def test_a_lost_reply_charges_once(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """A retry whose reply was lost is charged once, and ends its claim once."""
    added(transacting, "a")
    transacting.claim_jobs(claiming())
    table.fakes.lose_reply("TransactWriteItems")

    settled = transacting.settle_jobs("c", [Settling("a", "retry", "no", 1000)], keep_done=0)

    assert (settled.outcomes, settled.finished) == (("retried",), True)
    found: Any = transacting.get_jobs(["a"])["a"]
    assert (found.attempts, found.place) == (1, "scheduled")
    batch: Any = transacting.get_batches(["c"])["c"]
    assert (batch.state, batch.version) == ("settled", 2)


def test_a_lost_reply_sweeps_once(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """A sweep whose reply was lost counts one stall, and says which jobs it returned."""
    added(transacting, "a", "b")
    transacting.claim_jobs(claiming())
    table.clock.advance("30s")
    table.fakes.lose_reply("TransactWriteItems")

    swept = transacting.sweep_jobs(10, max_stalls=5)

    assert (swept.returned, swept.ended) == (("a", "b"), ("c",))
    assert [job.stalls for job in transacting.list_jobs("waiting").items] == [1, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "reasons",
    [
        ["TransactionConflict"],
        ["None", "TransactionConflict"],
        ["ConditionalCheckFailed"],
        ["TransactionConflict", "ConditionalCheckFailed"],
        ["ThrottlingError", "ProvisionedThroughputExceeded"],
    ],
)
def test_a_cancelled_step_is_decided_anew(
    transacting: TransactingDynamoDBStorage, table: Table, reasons: list[str]
) -> None:
    """A transaction cancelled because of others, for whatever mix of reasons, is tried again and done once."""
    added(transacting, "a", "b")
    table.fakes.next("TransactWriteItems", *[cancellation(*reasons)] * 3)
    claim = transacting.claim_jobs(claiming())
    table.fakes.next("TransactWriteItems", *[cancellation(*reasons)] * 3)

    assert claim is not None
    assert [job.deliveries for job in claim.jobs] == [1, 1]
    assert transacting.settle_jobs("c", [Settling("a", "complete")], keep_done=0).outcomes == ("completed",)
    assert transacting.count_jobs().active == 1
    assert table.waits


@pytest.mark.parametrize("reason", ["TransactionConflict", "ConditionalCheckFailed"])
def test_endless_contention_is_unavailability(
    transacting: TransactingDynamoDBStorage, table: Table, reason: str
) -> None:
    """A step that others always get ahead of gives up after a bounded number of tries, and has written nothing."""
    added(transacting, "a")
    before = table.held()
    table.fakes.always("TransactWriteItems", cancellation(reason))

    with pytest.raises(StorageUnavailableError):
        transacting.claim_jobs(claiming())

    assert table.held() == before
    assert table.watch.counts["TransactWriteItems"] <= 52
    assert max(table.waits) <= 7


def _claim(store: TransactingDynamoDBStorage) -> object:
    return store.claim_jobs(claiming("other", 2))


def _remove(store: TransactingDynamoDBStorage) -> object:
    return store.remove_jobs(["a"])


def _add(store: TransactingDynamoDBStorage) -> object:
    return store.add_jobs([NewJob("d", "1")])


@pytest.mark.parametrize(
    ("meanwhile", "expected"), [(_claim, ["c"]), (_remove, ["b", "c"]), (_add, ["a", "b", "c", "d"])]
)
def test_what_others_do_just_before_a_claim_is_written(
    transacting: TransactingDynamoDBStorage,
    table: Table,
    meanwhile: Callable[[TransactingDynamoDBStorage], object],
    expected: list[str],
) -> None:
    """A claim that is overtaken between reading and writing takes what is then there, and no job of another claim."""
    added(transacting, "a", "b", "c")
    other = table.open(TransactingDynamoDBStorage, threads=1)
    overtaken = False

    def overtake(_: dict[str, Any]) -> None:
        nonlocal overtaken
        if not overtaken:
            overtaken = True
            meanwhile(other)

    table.fakes.always("TransactWriteItems", overtake)

    claim = transacting.claim_jobs(claiming())

    assert claim is not None
    assert [job.id for job in claim.jobs] == expected


def test_a_sweep_overtaken_by_an_extension_takes_nothing(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """A claim that is extended between a sweep's look and its writing keeps its jobs."""
    added(transacting, "a")
    transacting.claim_jobs(claiming())
    table.clock.advance("30s")
    other = table.open(TransactingDynamoDBStorage, threads=1)

    def extend(_: dict[str, Any]) -> None:
        other.extend_claim("c", LEASE)

    table.fakes.next("TransactWriteItems", extend)

    swept = transacting.sweep_jobs(10, max_stalls=1)

    assert (swept.returned, swept.dead, swept.ended) == ((), (), ())
    assert transacting.count_jobs().active == 1


def test_no_item_of_a_place_holds_the_payload(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """A payload is written with its job and deleted with it, and no move writes it again."""
    transacting.add_jobs([NewJob("a", '"large"')])
    table.watch.forget()
    transacting.claim_jobs(claiming())
    transacting.settle_jobs("c", [Settling("a", "retry", "no", 1)], keep_done=0)

    assert "large" not in str([params for operation, params in table.watch.sent if operation.endswith("Items")])
