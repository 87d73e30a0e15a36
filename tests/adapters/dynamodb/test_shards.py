"""Shards: a busy state is spread over several partitions, and their number can be changed while workers go on."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.creation import create_batch, create_many
from batchstate.errors import InvalidValueError
from batchstate.listing import list_by_states
from batchstate.tidying import purge, reconcile, retire
from batchstate.transition import transition, transition_many
from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage, reshard
from batchstate_dynamodb.sharding import Shards
from tests.adapters.dynamodb.conftest import FLOW, new

if TYPE_CHECKING:
    from batchstate.entities import Batch
    from tests.adapters.dynamodb.conftest import Table

KINDS = pytest.mark.parametrize("kind", [DynamoDBStorage, TransactingDynamoDBStorage])


def ids(batches: list[Batch]) -> list[str]:
    """Answer their IDs."""
    return [batch.id for batch in batches]


def test_records_are_spread_evenly() -> None:
    """A thousand batches lie in four shards, each with a fair part of them."""
    shards = Shards(4)
    homes = Counter(shards.home(f"batch-{number}") for number in range(1000))
    assert set(homes) == {0, 1, 2, 3}
    assert min(homes.values()) > 200


def test_a_shard_is_the_same_in_every_process() -> None:
    """Where a record lies depends on its batch's ID alone and never changes: these were computed once and for all."""
    assert [Shards(16).home(batch_id) for batch_id in ("batch-17", "é", "b")] == [6, 14, 9]


def test_a_state_is_read_from_all_its_shards(plain: DynamoDBStorage, table: Table) -> None:
    """Listing a state asks each of its partitions once."""
    create_many(plain, [new(f"b-{number:02d}") for number in range(20)])
    table.watch.forget()

    assert len(list_by_states(plain, ["queued"])) == 20

    assert table.watch.counts == {"Query": 4, "BatchGetItem": 1}


@pytest.mark.parametrize("shards", [0, -1, 257, 1.5, True, "4"])
def test_a_number_of_shards_that_is_none_is_refused(table: Table, shards: object) -> None:
    """Shards are 1 to 256."""
    with pytest.raises(InvalidValueError, match="shards"):
        table.open(DynamoDBStorage, shards=shards)


@KINDS
def test_another_number_of_shards_is_refused(table: Table, kind: type[DynamoDBStorage]) -> None:
    """Who opens a queue with another number of shards would miss batches, and is refused before any write."""
    batch = create_batch(table.open(kind, shards=4), new())
    other = table.open(kind, shards=8)
    before = table.items()

    for attempt in (
        lambda: create_batch(other, new("c")),
        lambda: transition(other, batch, "testing"),
        lambda: list_by_states(other, ["queued"]),
        lambda: other.get_records([("queued", "b")]),
        other.list_retired,
        lambda: retire(other, batch),
    ):
        with pytest.raises(InvalidValueError, match="shards=4"):
            attempt()

    assert table.items() == before


@KINDS
def test_the_number_of_shards_is_changed_step_by_step(table: Table, kind: type[DynamoDBStorage]) -> None:
    """In each step of the change, and between workers of two steps that follow each other, no batch is missed."""
    steps: list[dict[str, Any]] = [
        {"shards": 4},
        {"shards": 4, "other_shards": 6},
        {"shards": 6, "other_shards": 4},
        {"shards": 6},
    ]
    first = table.open(kind, threads=1, **steps[0])
    create_many(first, [new(f"b-{number}") for number in range(12)])
    everything = [f"b-{number}" for number in range(12)]
    done: set[str] = set()
    for older, newer in itertools.pairwise(steps):
        if "other_shards" not in newer:
            assert reshard(table.open(kind, threads=1, **older)) > 0
        stores = [table.open(kind, threads=1, **older), table.open(kind, threads=1, **newer)]
        for store, fellow in (stores, stores[::-1]):
            for state in ("testing", "queued"):
                batches = [batch for batch in list_by_states(store, FLOW.states) if batch.id not in done]
                assert ids(sorted(batches, key=lambda batch: int(batch.id[2:]))) == [
                    each for each in everything if each not in done
                ]
                moved = transition_many(store, batches[:6], state)
                assert not any(isinstance(batch, Exception) for batch in moved)
                assert {batch.id for batch in list_by_states(fellow, [state])} >= {batch.id for batch in batches[:6]}
        ended = transition(stores[1], list_by_states(stores[1], FLOW.states)[0], "merged")
        retire(stores[0], ended, lifecycle=FLOW, clock=table.clock)
        done.add(ended.id)
        assert done == {row.id for row in stores[1].list_retired().items if not isinstance(row, Exception)}

    last = table.open(kind, threads=1, **steps[-1])
    shards = Shards(6)
    for record in [item for item in table.items() if "#state#" in item["pk"]["S"]]:
        assert record["pk"]["S"].split("#")[2] == str(shards.home(record["sk"]["S"]))
    assert reconcile(last, FLOW.states).removed == 0
    with pytest.raises(InvalidValueError):
        list_by_states(table.open(kind, shards=4), ["queued"])
    table.clock.advance("30d")
    assert purge(last, FLOW.states, clock=table.clock).batches == 3


def test_resharding_needs_both_numbers(plain: DynamoDBStorage) -> None:
    """Who has not told the workers first is told how to."""
    with pytest.raises(InvalidValueError, match="other_shards"):
        reshard(plain)
