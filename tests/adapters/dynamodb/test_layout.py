"""Where things lie: keys that cannot collide, items as they are documented, sizes that stay below the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchstate.creation import create_batch
from batchstate.errors import CorruptRowError, TooLargeError, UnsupportedFormatError
from batchstate.transition import transition
from batchstate_dynamodb import DynamoDBStorage, create_table
from batchstate_dynamodb.layout import MOST, Filing, Key, Layout, item_key
from tests.adapters.dynamodb.conftest import TABLE, new
from tests.adapters.dynamodb.rules import LARGEST_ITEM, LONGEST_PK, LONGEST_SK
from tests.adapters.dynamodb.sizes import item_size

if TYPE_CHECKING:
    from tests.adapters.dynamodb.conftest import Table
    from tests.servers.dynamo_servers import DynamoEndpoint

NAMES = st.text(
    st.one_of(st.sampled_from("#%:235abé🙂"), st.characters(exclude_categories=["Cc", "Cs"])), min_size=1, max_size=8
)


@given(first=st.tuples(NAMES, NAMES, NAMES), second=st.tuples(NAMES, NAMES, NAMES))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_two_things_share_a_key(first: tuple[str, str, str], second: tuple[str, str, str]) -> None:
    """Different things have different keys, whatever separators the names hold."""
    ours, theirs = _keys(*first), _keys(*second)

    for what, key in ours.items():
        for other, their_key in theirs.items():
            if key == their_key:
                assert what[0] == other[0]
                assert what == other


def _keys(queue: str, name: str, batch_id: str) -> dict[tuple[str, ...], Key]:
    layout = Layout(queue)
    return {
        ("row", queue, batch_id): layout.row(batch_id),
        ("record", queue, name, batch_id): Key(layout.bucket(name, 2), batch_id),
        ("association", queue, name, batch_id): Key(layout.attempts(name), batch_id),
        ("retired", queue, batch_id): Key(layout.retired(2), Filing(5, batch_id, "m").sk),
        ("queue", queue): Key("#queues", queue),
    }


@pytest.mark.parametrize("character", ["#", "%", "é", "🙂", "x"])
def test_the_longest_names_fit(character: str) -> None:
    """Names of 255 bytes make keys within the service's limits, also where each character is escaped."""
    longest = character * (255 // len(character.encode()))
    for key in _keys(longest, longest, longest).values():
        assert len(key.pk.encode()) <= LONGEST_PK
        assert len(key.sk.encode()) <= LONGEST_SK


@given(batch_id=NAMES, at=st.integers(0, 10**15))
def test_an_entry_of_the_retired_reads_back(batch_id: str, at: int) -> None:
    """An entry's instant, batch and mark are read from its key, colons in the ID or not."""
    filing = Filing(at, batch_id, "0f")
    assert Filing.of(filing.sk) == filing


def test_what_lies_in_the_table(plain: DynamoDBStorage, table: Table) -> None:
    """A created batch is a row, a record, two associations and the queue's entry, as documented, and no more."""
    create_batch(plain, new(n=10**30), clock=table.clock)

    shard = plain.parts.shards.home("b")
    assert table.held() == sorted(
        [
            ("#queues", "q"),
            ("q#batch#b", "row"),
            ("q#request#r-1", "b"),
            ("q#request#r-2", "b"),
            (f"q#state#{shard}#queued", "b"),
        ]
    )
    row = next(item for item in table.items() if item["sk"]["S"] == "row")
    assert row["version"] == {"N": "1"}
    assert row["attributes"] == {"S": '{"n":1000000000000000000000000000000}'}
    assert "retired_at" not in row


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", {"S": "1"}),
        ("version", {"N": "1.5"}),
        ("attributes", {"S": "{"}),
        ("requests", {"N": "1"}),
        ("state", {"N": "1"}),
        ("marks", None),
    ],
)
def test_a_row_of_other_types_is_named(plain: DynamoDBStorage, table: Table, name: str, value: Any) -> None:
    """A row whose attributes are not what we write is answered with the error that names it."""
    create_batch(plain, new())
    item = next(item for item in table.items() if item["sk"]["S"] == "row")
    table.client.put_item(
        TableName=TABLE, Item={**item, name: value} if value else {k: v for k, v in item.items() if k != name}
    )

    found = plain.get_batches(["b"])["b"]

    assert isinstance(found, CorruptRowError)
    assert found.key == "b"
    assert name in str(found)


def test_a_record_without_its_version_is_named(plain: DynamoDBStorage, table: Table) -> None:
    """A record that is none is an error that names its batch, never skipped."""
    table.client.put_item(TableName=TABLE, Item=item_key(Key(Layout("q").bucket("queued", 0), "b")))

    with pytest.raises(CorruptRowError, match="'b'") as caught:
        plain.list_records("queued")

    assert caught.value.key == "b"


def test_a_queue_of_a_newer_layout_is_refused(plain: DynamoDBStorage, table: Table) -> None:
    """A queue that a newer program laid out is not touched."""
    table.client.put_item(
        TableName=TABLE, Item={**item_key(Key("#queues", "q")), "layout": {"N": "2"}, "shards": {"N": "4"}}
    )

    with pytest.raises(UnsupportedFormatError, match="upgrade"):
        create_batch(plain, new())


def test_a_batch_as_large_as_can_be_never_grows_too_large(dynalite_server: DynamoEndpoint) -> None:
    """A batch that was accepted at its largest is moved as often as one likes, with the longest texts there are.

    On dynalite: moto counts what an update replaces twice.
    """
    client = dynalite_server.client()
    create_table(client, "largest")
    store = DynamoDBStorage("largest", "q", client=client)
    worst = "\x01" * 1000
    room = MOST - len('["r"]') - len('{"t":""}')
    batch = create_batch(store, new("b", "r", state="a", t="x" * room), by=worst, why=worst)

    for number in range(24):
        batch = transition(store, batch, str(number % 10) * 255, by=worst, why=worst)

    found = client.get_item(TableName="largest", Key=item_key(Layout("q").row("b")), ConsistentRead=True)["Item"]
    assert item_size(found) <= LARGEST_ITEM
    assert len(batch.history) == 20
    client.delete_table(TableName="largest")


def test_a_batch_too_large_is_refused_before_anything_is_written(either: DynamoDBStorage, table: Table) -> None:
    """A batch of 20,000 requests is refused at its creation, with the number of bytes there is room for."""
    with pytest.raises(TooLargeError, match=f"{MOST:,}"):
        create_batch(either, new("b", *(f"request-{number:05d}" for number in range(20_000))))

    assert table.held() == []


def test_bytes_are_counted_and_not_characters(plain: DynamoDBStorage) -> None:
    """A text of characters of four bytes takes four times its length."""
    create_batch(plain, new("a", t="🙂" * (MOST // 4 - 10)))
    with pytest.raises(TooLargeError):
        create_batch(plain, new("b", t="🙂" * (MOST // 4)))
