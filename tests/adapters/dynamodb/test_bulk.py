"""Many at once: pieces that are left unprocessed, pages with nothing in them, threads."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.creation import create_many
from batchstate.entities import Association, MembershipRecord
from batchstate.errors import StorageUnavailableError
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.tidying import purge, retire
from batchstate.transition import transition_many
from batchstate_dynamodb.requests import TRIES, Requests
from tests.adapters.dynamodb.conftest import FLOW, TABLE, Table, new
from tests.adapters.dynamodb.fakes import failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate_dynamodb import DynamoDBStorage

MANY = 230


def made(store: DynamoDBStorage, number: int) -> list[str]:
    """Create so many batches, and answer their IDs."""
    ids = [f"b-{each:03d}" for each in range(number)]
    create_many(store, [new(batch_id, "r") for batch_id in ids])
    return ids


def leaving(left: int) -> Any:
    """Answer a reply to a BatchGetItem that does all but so many of its keys, without looking."""

    def reply(params: dict[str, Any]) -> dict[str, Any]:
        keys = params["RequestItems"][TABLE]["Keys"]
        return {"Responses": {TABLE: []}, "UnprocessedKeys": {TABLE: {"Keys": keys[-left:], "ConsistentRead": True}}}

    return reply


def test_unprocessed_keys_are_asked_for_again(plain: DynamoDBStorage, table: Table) -> None:
    """A load of many batches is complete though the service leaves keys unprocessed, twice."""
    ids = made(plain, 100)
    table.watch.forget()
    table.fakes.next("BatchGetItem", leaving(100), leaving(100))

    assert set(plain.get_batches(ids)) == set(ids)

    assert table.watch.counts["BatchGetItem"] == 3
    assert len(table.waits) == 2


def test_keys_left_for_ever_are_an_outage(plain: DynamoDBStorage, table: Table) -> None:
    """Keys that are never processed end a load after a bounded number of ever longer waits, never as a short answer."""
    table.fakes.always("BatchGetItem", leaving(2))

    with pytest.raises(StorageUnavailableError, match="unprocessed"):
        plain.get_batches(["a", "b"])

    assert len(table.waits) == TRIES - 1
    assert table.waits == sorted(set(table.waits))


def test_a_slow_load_ends_as_long_as_it_gets_on(plain: DynamoDBStorage, table: Table) -> None:
    """A load of large rows, of which each answer holds one, is complete: only standing still counts as a try."""
    ids = made(plain, 20)

    def one(params: dict[str, Any]) -> dict[str, Any]:
        keys = params["RequestItems"][TABLE]["Keys"]
        items = [item for item in table.items() if item["pk"] == keys[0]["pk"]]
        return {"Responses": {TABLE: items}, "UnprocessedKeys": {TABLE: {"Keys": keys[1:]}} if keys[1:] else {}}

    table.fakes.always("BatchGetItem", one)

    assert set(plain.get_batches(ids)) == set(ids)


def test_unprocessed_deletions_are_sent_again(plain: DynamoDBStorage, table: Table) -> None:
    """A purge deletes everything though the service leaves deletions unprocessed."""
    [batch] = create_many(plain, [new("b", *(f"r-{each}" for each in range(30)), state="merged")])
    assert not isinstance(batch, Exception)
    retire(plain, batch, lifecycle=FLOW, clock=table.clock)
    table.clock.advance("30d")

    def none(params: dict[str, Any]) -> dict[str, Any]:
        return {"UnprocessedItems": params["RequestItems"]}

    table.fakes.next("BatchWriteItem", none, none)

    assert purge(plain, FLOW.states, clock=table.clock).batches == 1

    assert table.held() == [("#queues", "q")]


def test_requests_never_name_a_key_twice(plain: DynamoDBStorage) -> None:
    """A batch under two states, asked for twice, costs the service no refusal: it checks each request for its keys."""
    ids = made(plain, 3)
    plain.put_records([MembershipRecord("q", "testing", batch_id, 1) for batch_id in ids])

    assert len(plain.get_batches([*ids, *ids])) == 3
    assert len(plain.get_records([("queued", ids[0])] * 5 + [("testing", ids[0])] * 5)) == 2
    assert [batch.id for batch in list_by_states(plain, ["queued", "testing"])] == ids
    assert plain.put_associations([Association("q", "r", ids[0])] * 3) == [None] * 3


def test_an_empty_page_is_not_the_end(plain: DynamoDBStorage, table: Table) -> None:
    """A page without items but with a key to go on after is followed by the others, in each listing."""
    ids = made(plain, 12)
    empty = {"Items": [], "Count": 0, "LastEvaluatedKey": {"pk": {"S": "any"}, "sk": {"S": " "}}}

    table.fakes.next("Query", *[empty] * 3)
    assert [batch.id for batch in list_by_states(plain, ["queued"])] == ids

    table.fakes.next("Query", *[empty] * 3)
    assert [batch.id for batch in find_by_request_id(plain, "r").batches] == ids

    table.fakes.next("Query", empty)
    assert plain.list_queues() == ["q"]


def test_an_empty_page_of_retired_rows_is_not_the_end(plain: DynamoDBStorage, table: Table) -> None:
    """Retired rows are listed past pages without items, oldest first over all shards."""
    ids = made(plain, 12)
    for batch in list(plain.get_batches(ids).values()):
        assert not isinstance(batch, Exception)
        table.clock.advance("1s")
        retire(plain, batch, clock=table.clock)
    empty = {"Items": [], "Count": 0, "LastEvaluatedKey": {"pk": {"S": "any"}, "sk": {"S": " "}}}
    table.fakes.next("Query", empty, None, empty, None)

    found: list[str] = []
    cursor = None
    while True:
        page = plain.list_retired(cursor, limit=4)
        found += [row.id for row in page.items if not isinstance(row, Exception)]
        cursor = page.cursor
        if cursor is None:
            break

    assert sorted(found) == ids
    instants = [row.retired_at for row in plain.get_batches(found).values() if not isinstance(row, Exception)]
    assert len(instants) == 12


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_pages_are_as_small_as_asked(plain: DynamoDBStorage, limit: int) -> None:
    """A page holds no more than was asked for, and together they hold each record once."""
    ids = made(plain, 9)
    found: list[str] = []
    cursor = None
    while True:
        page = plain.list_records("queued", cursor, limit=limit)
        assert len(page.items) <= limit
        found += [record.batch_id for record in page.items]
        cursor = page.cursor
        if cursor is None:
            break

    assert sorted(found) == ids


def test_reads_go_in_hundreds(plain: DynamoDBStorage, table: Table) -> None:
    """Loading 230 batches takes three requests."""
    ids = [f"b-{each}" for each in range(MANY)]
    table.watch.forget()

    plain.get_batches(ids)

    assert [len(params["RequestItems"][TABLE]["Keys"]) for _, params in table.watch.sent] == [100, 100, 30]


def test_one_outage_among_many_is_raised(plain: DynamoDBStorage, table: Table) -> None:
    """An outage in the middle of many writes is told of the whole call; each write is done whole or not at all."""
    ids = made(plain, 3)
    batches = [batch for batch in plain.get_batches(ids).values() if not isinstance(batch, Exception)]
    table.fakes.next("UpdateItem", None, *[failure("ThrottlingException")] * TRIES)

    outcomes = transition_many(plain, batches, "testing")

    assert all(isinstance(outcome, StorageUnavailableError) for outcome in outcomes)
    assert sorted(batch.version for batch in plain.get_batches(ids).values() if not isinstance(batch, Exception)) == [
        1,
        1,
        2,
    ]


def test_nothing_still_writes_when_a_call_has_failed() -> None:
    """When one of several tasks fails, those under way are waited for and those not begun are left out."""
    requests = Requests("none", client=_no_client, threads=2)
    first, done = Event(), []

    def work(number: int) -> int:
        if number == 0:
            first.wait(10)
            msg = "so it is"
            raise StorageUnavailableError(msg)
        first.set()
        Event().wait(0.02)
        done.append(number)
        return number

    with pytest.raises(StorageUnavailableError):
        requests.side_by_side(work, range(100))

    finished = list(done)
    requests.close()
    assert 1 in finished
    assert len(finished) < 50
    assert done == finished


def test_answers_come_in_the_order_of_the_questions() -> None:
    """What is done side by side is answered in the order given."""
    requests = Requests("none", client=_no_client, threads=8)
    assert requests.side_by_side(lambda number: number * 2, range(50)) == [number * 2 for number in range(50)]
    requests.close()


def _no_client(*_: Sequence[object]) -> Any:
    msg = "no client is needed here"
    raise AssertionError(msg)
