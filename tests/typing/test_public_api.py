"""What type checkers see of the public API: each line is checked by mypy and pyright, and run as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, assert_type

import pytest

import batchstate
from batchstate import (
    AtomicCreates,
    AtomicMoves,
    Batch,
    BatchQueue,
    BatchStateError,
    Found,
    History,
    Lifecycle,
    Move,
    Page,
    Purged,
    Reconciled,
    SnapshotListing,
    Step,
    Storage,
    VersionMismatchError,
    advance,
    create_batch,
    ensure_record,
    find_by_request_id,
    iter_by_states,
    list_by_states,
    open_queue,
    open_storage,
    transition,
    transition_many,
)

if TYPE_CHECKING:
    from pathlib import Path

    from batchstate_memory import MemoryStorage
    from batchstate_sqlite import SQLiteStorage

FLOW = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")


@pytest.fixture
def queue() -> Iterator[BatchQueue]:
    """An empty queue of its own."""
    with open_queue("merges", "memory://", lifecycle=FLOW) as opened:
        assert_type(opened, BatchQueue)
        yield opened


def test_lifecycle_answers_in_plain_types(tmp_path: Path) -> None:
    """A lifecycle is made of text, mappings and files, and answers in tuples, sets and text."""
    assert_type(FLOW.states, tuple[str, ...])
    assert_type(FLOW.moves, tuple[tuple[str, str], ...])
    assert_type(FLOW.initial, str)
    assert_type(FLOW.terminal, frozenset[str])
    assert_type(FLOW.settled, str | None)
    assert_type(FLOW.abandoned, str | None)
    assert_type(FLOW.allows("queued", "testing"), bool)
    assert_type(FLOW.preceding(["merged"]), frozenset[str])
    assert_type(FLOW.ordered(FLOW.states), tuple[str, ...])
    assert_type(FLOW.mermaid(), str)
    assert_type(FLOW.svg({"queued": 3}), str)
    assert_type(Lifecycle.from_mapping(FLOW.to_mapping()), Lifecycle)
    file = tmp_path / "flow.toml"
    file.write_text('moves = "queued > done"\n')
    assert_type(Lifecycle.from_toml(file), Lifecycle)


def test_front_door_answers_with_batches_and_steps(queue: BatchQueue) -> None:
    """The front door answers with batches, steps and counts, all of them of known types."""
    batch = queue.create("batch-17", requests=["pr-1", "pr-2"], attributes={"branch": "main"})
    assert_type(batch, Batch)
    step = queue.advance("batch-17", "testing", source="queued", by="ci-3")
    assert_type(step, Step)
    assert_type(step.batch, Batch)
    assert_type(queue.transition(step.batch, "merging", update={"ci": "green"}, why="all green"), Batch)
    assert_type(queue.get("batch-17"), Batch)
    assert_type(queue.list_by_states(["merging"], complete=True), list[Batch])
    assert_type(queue.iter_by_states(["merging"]), Iterator[Batch])
    found = queue.find_by_request_id("pr-1")
    assert_type(found, Found)
    assert_type(found.batches, tuple[Batch, ...])
    assert_type(found.stale, int)
    assert_type(queue.reconcile(), Reconciled)
    assert_type(queue.purge(older_than="15d"), Purged)
    assert_type(queue.name, str)
    assert_type(queue.lifecycle, Lifecycle)


def test_outcome_of_a_step_is_one_of_three_words(queue: BatchQueue) -> None:
    """A type checker knows all outcomes of a step, so that a match over them can be exhaustive."""
    queue.create("batch-17", requests=["pr-1"])

    step = queue.advance("batch-17", "testing", source="queued")

    assert_type(step.outcome, Literal["moved", "already", "stale"])


def test_batch_has_no_loose_ends(queue: BatchQueue) -> None:
    """Each attribute of a batch has one type, and its history reads as moves."""
    batch = queue.create("batch-17", requests=["pr-1"])
    assert_type(batch.id, str)
    assert_type(batch.queue, str)
    assert_type(batch.state, str)
    assert_type(batch.version, int)
    assert_type(batch.entered, int)
    assert_type(batch.request_ids, tuple[str, ...])
    assert_type(batch.attributes, dict[str, Any])
    assert_type(batch.history, History)
    assert_type(batch.history[0], Move)
    assert_type(batch.history[0].source, str | None)
    assert_type(batch.created_at, int)
    assert_type(batch.updated_at, int)
    assert_type(batch.retired_at, int | None)


def test_functions_take_any_storage() -> None:
    """The functions of the protocol take the protocol, and answer as the front door does."""
    with open_storage("memory://", queue="merges") as store:
        assert_type(store, Storage)
        batch = create_batch(store, Batch("batch-17", "merges", "queued", request_ids=("pr-1",)))
        assert_type(batch, Batch)
        assert_type(advance(store, "batch-17", "testing", entered=1), Step)
        many = transition_many(store, [batch], "testing")
        assert_type(many, list[Batch | BatchStateError])
        batch = transition(store, store_row(store, "batch-17"), "merging", lifecycle=FLOW)
        ensure_record(store, batch)
        assert_type(list_by_states(store, ["merging"]), list[Batch])
        assert_type(iter_by_states(store, ["merging"], page=10), Iterator[Batch])
        assert_type(find_by_request_id(store, "pr-1"), Found)


def store_row(store: Storage, batch_id: str) -> Batch:
    """Load one row, as an embedder would: what cannot be read is told apart by its type."""
    row = store.get_batches([batch_id])[batch_id]
    if isinstance(row, BatchStateError):
        raise row
    assert_type(row, Batch)
    return row


def test_capabilities_are_found_by_isinstance() -> None:
    """A capability is told by `isinstance`, which then knows its method."""
    with open_storage("memory://", queue="merges") as store:
        if isinstance(store, SnapshotListing):
            assert_type(store.list_records_of(["queued"]), "list[batchstate.MembershipRecord] | None")
        if isinstance(store, AtomicMoves):
            assert_type(store.move_batches([]), "list[BatchStateError | None]")
        if isinstance(store, AtomicCreates):
            assert_type(store.create_whole([]), "list[BatchStateError | None]")
        assert_type(store.list_records("queued"), Page[batchstate.MembershipRecord])


def test_lost_race_tells_what_is_known() -> None:
    """The errors carry what is known of the store, typed."""
    error = VersionMismatchError("lost", batch_id="batch-17", expected=3)
    assert_type(error.current, Batch | None)
    assert_type(error.applied, bool | None)
    assert_type(error.actual, int | None)
    assert_type(error.expected, int)
    assert_type(error.retryable, bool)


if TYPE_CHECKING:

    def memory_is_a_storage(store: MemoryStorage) -> Sequence[Storage | AtomicMoves | AtomicCreates | SnapshotListing]:
        """Accept the memory adapter for the protocol and each of its capabilities."""
        storage: Storage = store
        moves: AtomicMoves = store
        creates: AtomicCreates = store
        listing: SnapshotListing = store
        return [storage, moves, creates, listing]

    def sqlite_is_a_storage(store: SQLiteStorage) -> Sequence[Storage | AtomicMoves | AtomicCreates | SnapshotListing]:
        """Accept the SQLite adapter for the protocol and each of its capabilities."""
        storage: Storage = store
        moves: AtomicMoves = store
        creates: AtomicCreates = store
        listing: SnapshotListing = store
        return [storage, moves, creates, listing]
