"""Rows that only SQLite can have, or cannot have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from batchstate.entities import Batch, MembershipRecord, RowMemory
from batchstate.errors import BatchStateError, CorruptRowError, InvalidValueError
from batchstate.listing import list_by_states
from batchstate.storage import Swap
from batchstate_sqlite import SQLiteStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOO_LARGE = 2**63


@pytest.fixture
def store() -> Iterator[SQLiteStorage]:
    """Open a storage in memory."""
    with SQLiteStorage(":memory:", "q") as store:
        yield store


def at_version(batch: Batch, version: int) -> Batch:
    """Answer the batch as another write would have left it."""
    return attrs.evolve(batch, version=version, memory=RowMemory(f"{version}:mark", batch.request_ids, '["r-b1"]'))


@pytest.mark.parametrize("column", ["state", "attributes", "moves", "marks"])
@pytest.mark.parametrize("alien", ["CAST(x'61ff62' AS TEXT)", "x'61ff62'"])
def test_bytes_that_are_no_text_spoil_their_own_row_alone(
    store: SQLiteStorage, create: Callable[..., Batch], column: str, alien: str
) -> None:
    """A row into which another program wrote bytes is named as corrupt, and the others are read."""
    create(store, "bad")
    create(store, "good")
    with store.database.transaction() as cursor:
        cursor.execute(f"UPDATE batchstate_batches SET {column} = {alien} WHERE id = 'bad'")  # noqa: S608 - our constants
    problems: list[BatchStateError] = []
    assert [batch.id for batch in list_by_states(store, ["queued"], on_problem=problems.append)] == ["good"]
    [problem] = problems
    assert isinstance(problem, CorruptRowError)
    assert problem.key == "bad"


def test_a_text_is_compared_beyond_a_nul(store: SQLiteStorage, create: Callable[..., Batch]) -> None:
    """No batch has a NUL in its ID, so what is sought with one is not found, nor is what comes before the NUL."""
    create(store, "b1")
    assert store.get_batches(["b1\0", "b1\0b1"]) == {}
    assert store.get_records([("queued\0", "b1"), ("queued", "b1\0")]) == []


def test_numbers_beyond_64_bits_are_refused_alone(store: SQLiteStorage, create: Callable[..., Batch]) -> None:
    """A version or a time that SQLite would round or refuse is answered for that item, and costs no other anything."""
    batch = create(store)
    large = at_version(attrs.evolve(batch, id="b2"), TOO_LARGE)
    late = attrs.evolve(batch, id="b3", updated_at=-TOO_LARGE - 1)
    retired = attrs.evolve(batch, id="b4", retired_at=TOO_LARGE)
    good = at_version(attrs.evolve(batch, id="b5"), TOO_LARGE - 1)
    *refused, done = store.create_batches([large, late, retired, good])
    assert [type(outcome) for outcome in refused] == [InvalidValueError] * 3
    assert done is None
    assert store.get_batches(["b2", "b3", "b4", "b5"]) == {"b5": good}
    [outcome] = store.move_batches([Swap(good, at_version(good, TOO_LARGE))])
    assert isinstance(outcome, InvalidValueError)
    [outcome, done] = store.put_records([MembershipRecord("q", "queued", "b5", version) for version in (TOO_LARGE, 7)])
    assert isinstance(outcome, InvalidValueError)
    assert done is None
