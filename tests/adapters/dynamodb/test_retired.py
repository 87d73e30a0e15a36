"""The bucket of retired rows: filed before the swap, read by mark, emptied by the purge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.creation import create_batch
from batchstate.entities import Batch, MembershipRecord
from batchstate.errors import StorageUnavailableError, VersionMismatchError
from batchstate.tidying import purge, retire
from batchstate.transition import transition
from tests.adapters.dynamodb.conftest import FLOW, TABLE, Table, new
from tests.adapters.dynamodb.fakes import failure

if TYPE_CHECKING:
    from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage


def entries(table: Table) -> list[str]:
    """Answer the entries of the bucket."""
    return [sk for pk, sk in table.held() if "#retired#" in pk]


def ended(store: DynamoDBStorage) -> Batch:
    """Create an ended batch."""
    return create_batch(store, new(state="merged"))


def test_a_row_is_filed_before_it_is_seen_retired(plain: DynamoDBStorage, table: Table) -> None:
    """The entry is written, and acknowledged, before the swap is sent."""
    batch = ended(plain)
    table.watch.forget()

    retire(plain, batch, clock=table.clock)

    assert [operation for operation, _ in table.watch.sent] == ["PutItem", "UpdateItem", "DeleteItem"]


def test_a_retirement_is_one_transaction(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """With transactions the entry and the row are one step."""
    batch = ended(transacting)
    table.watch.forget()

    retire(transacting, batch, clock=table.clock)

    assert [operation for operation, _ in table.watch.sent] == ["TransactWriteItems", "DeleteItem"]


def test_a_lost_retirement_leaves_no_entry(either: DynamoDBStorage, table: Table) -> None:
    """A retirement that loses its race takes its entry back, and the winner's stays."""
    batch = ended(either)
    transition(either, batch, "merged")

    with pytest.raises(VersionMismatchError):
        retire(either, batch, clock=table.clock)

    assert entries(table) == []


def test_two_that_retire_at_once_leave_one_entry(either: DynamoDBStorage, table: Table) -> None:
    """Of two that retire a batch in the same millisecond one loses, and does not take the other's entry away."""
    batch = ended(either)
    first = retire(either, batch, clock=table.clock)

    assert retire(either, batch, clock=table.clock) == first

    assert len(entries(table)) == 1
    assert list(either.list_retired().items) == [first]


def test_an_entry_whose_row_is_not_retired_is_passed_over(plain: DynamoDBStorage, table: Table) -> None:
    """A crash between the entry and the swap retires nothing; the retirement that comes again is listed once."""
    batch = ended(plain)
    table.fakes.next("UpdateItem", failure("AccessDeniedException"))
    with pytest.raises(StorageUnavailableError):
        retire(plain, batch, clock=table.clock)
    assert len(entries(table)) == 1
    assert list(plain.list_retired().items) == []

    table.clock.advance("1s")
    retired = retire(plain, batch, clock=table.clock)

    assert list(plain.list_retired().items) == [retired]
    assert len(entries(table)) == 2


def test_an_entry_left_by_a_crash_goes_in_time(plain: DynamoDBStorage, table: Table) -> None:
    """An entry that no row answers to is removed when no writer can still need it, and not before."""
    batch = ended(plain)
    table.fakes.next("UpdateItem", failure("AccessDeniedException"))
    with pytest.raises(StorageUnavailableError):
        retire(plain, batch, clock=table.clock)

    table.clock.advance("14d")
    plain.list_retired()
    assert len(entries(table)) == 1

    table.clock.advance("1d")
    plain.list_retired()
    assert entries(table) == []


def test_who_may_not_write_can_list_all_the_same(plain: DynamoDBStorage, table: Table) -> None:
    """A listing does not fail because an entry that no row answers to cannot be removed."""
    batch = ended(plain)
    table.fakes.next("UpdateItem", failure("AccessDeniedException"))
    with pytest.raises(StorageUnavailableError):
        retire(plain, batch, clock=table.clock)
    table.clock.advance("15d")
    table.fakes.always("BatchWriteItem", failure("AccessDeniedException"))

    assert list(plain.list_retired().items) == []


def test_a_purge_leaves_nothing(either: DynamoDBStorage, table: Table) -> None:
    """After a purge nothing of the batch is in the table, also where another's record was left under a state."""
    batch = create_batch(either, new())
    batch = transition(either, batch, "testing")
    either.put_records([MembershipRecord("q", state, "b", 1) for state in ("queued", "failed")])
    retire(either, transition(either, batch, "merged"), clock=table.clock)
    table.clock.advance("15d")

    assert purge(either, FLOW.states, clock=table.clock).batches == 1

    assert table.held() == [("#queues", "q")]


def test_a_purge_cut_short_is_completed_by_the_next(plain: DynamoDBStorage, table: Table) -> None:
    """A purge that ended before its associations were gone is found again by the next, since the row goes last."""
    retire(plain, ended(plain), clock=table.clock)
    table.clock.advance("15d")
    for _ in range(2):
        table.fakes.next("BatchWriteItem", failure("AccessDeniedException"))
        with pytest.raises(StorageUnavailableError):
            purge(plain, FLOW.states, clock=table.clock)
        assert len(plain.list_retired().items) == 1

    assert purge(plain, FLOW.states, clock=table.clock).batches == 1
    assert table.held() == [("#queues", "q")]


def test_the_entry_goes_after_the_row(plain: DynamoDBStorage, table: Table) -> None:
    """A purge that ended after the row leaves an entry, which the next listing removes."""
    retire(plain, ended(plain), clock=table.clock)
    table.clock.advance("15d")
    table.fakes.next("BatchWriteItem", None, failure("AccessDeniedException"))
    with pytest.raises(StorageUnavailableError):
        purge(plain, FLOW.states, clock=table.clock)
    assert plain.get_batches(["b"]) == {}

    assert list(plain.list_retired().items) == []

    assert table.held() == [("#queues", "q")]


def test_an_unreadable_retired_row_is_named(plain: DynamoDBStorage, table: Table) -> None:
    """A retired row that cannot be read is listed as the error that names it."""
    retire(plain, ended(plain), clock=table.clock)
    item = next(item for item in table.items() if item["sk"]["S"] == "row")
    table.client.put_item(TableName=TABLE, Item={**item, "attributes": {"S": "{"}})

    [found] = plain.list_retired().items

    assert "'b'" in str(found)
    assert isinstance(found, Exception)
