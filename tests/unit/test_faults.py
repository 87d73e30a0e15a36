"""The fault store: what goes wrong, where, and what the store looks like afterwards."""

from __future__ import annotations

from itertools import product
from threading import Thread

import pytest

from batchstate.creation import create_batch
from batchstate.entities import Batch
from batchstate.errors import StorageUnavailableError, TransitionIncompleteError
from batchstate.storage import AtomicCreates, AtomicMoves, SnapshotListing, Storage
from batchstate.testing import (
    Crash,
    Fault,
    FaultStore,
    crash_after,
    crash_before,
    drop_reply,
    record,
    resend,
    stop_before,
)
from batchstate.three_steps import ThreeSteps
from batchstate.transition import transition
from batchstate_memory import MemoryStorage

CAPABILITIES = (AtomicMoves, AtomicCreates, SnapshotListing)
METHODS = ("move_batches", "create_whole", "list_records_of")


@pytest.fixture
def memory() -> MemoryStorage:
    """Give a storage that has batch `b` in state A."""
    store = MemoryStorage("q")
    create_batch(store, Batch("b", "q", "A", request_ids=("r",)))
    return store


def filed(store: Storage) -> list[tuple[str, int]]:
    """Answer the records as `(state, version)`."""
    return [(item.state, item.version) for state in "AB" for item in store.list_records(state).items]


def stored(store: Storage) -> Batch:
    """Answer the row."""
    row = store.get_batches(["b"])["b"]
    assert isinstance(row, Batch)
    return row


@pytest.mark.parametrize("able", list(product((False, True), repeat=3)))
def test_it_has_exactly_the_capabilities_of_the_storage_inside(able: tuple[bool, ...], memory: MemoryStorage) -> None:
    """`isinstance` answers for the fault store as it does for the storage that it wraps."""
    methods = {name: getattr(MemoryStorage, name) for name, has in zip(METHODS, able, strict=True) if has}
    inside = type("Some", (ThreeSteps,), methods)(memory)

    around = FaultStore(inside)

    assert isinstance(around, FaultStore)
    assert isinstance(around, Storage)
    assert tuple(isinstance(around, capability) for capability in CAPABILITIES) == able
    assert tuple(isinstance(FaultStore(around), capability) for capability in CAPABILITIES) == able


@pytest.mark.parametrize(
    ("fault", "row", "records"),
    [
        (crash_before(1), ("A", 1), [("A", 1)]),
        (crash_after(1), ("B", 2), [("A", 1)]),
        (crash_before(2), ("B", 2), [("A", 1)]),
        (crash_after(2), ("B", 2), [("A", 1), ("B", 2)]),
        (crash_before(3), ("B", 2), [("A", 1), ("B", 2)]),
        (crash_after(3), ("B", 2), [("B", 2)]),
    ],
)
def test_a_crash_before_a_write_leaves_it_undone_and_one_after_it_done(
    fault: Fault, row: tuple[str, int], records: list[tuple[str, int]], memory: MemoryStorage
) -> None:
    """The three writes of a transition, with a crash in each of the six places, and nothing handles the crash."""
    with pytest.raises(Crash):
        transition(FaultStore(ThreeSteps(memory), fault), stored(memory), "B")

    assert (stored(memory).state, stored(memory).version) == row
    assert filed(memory) == records


def test_a_crash_may_be_set_on_a_read(memory: MemoryStorage) -> None:
    """`on=` names the methods that count, and others neither crash nor count."""
    store = FaultStore(memory, crash_before(2, on=["get_batches"]))

    store.put_records([])
    store.get_batches(["b"])
    with pytest.raises(Crash, match="before call 2, get_batches"):
        store.get_batches(["b"])
    store.get_batches(["b"])


def test_a_dropped_reply_is_an_applied_write_that_fails(memory: MemoryStorage) -> None:
    """The caller is told that the store could not be reached, and the row has moved."""
    with pytest.raises(StorageUnavailableError, match="lost"):
        transition(FaultStore(ThreeSteps(memory), drop_reply(1)), stored(memory), "B")
    assert stored(memory).state == "B"

    with pytest.raises(TransitionIncompleteError):
        transition(FaultStore(ThreeSteps(memory), drop_reply(2)), stored(memory), "A")
    assert filed(memory) == [("A", 3)]


def test_a_resent_call_is_answered_with_its_second_answer(memory: MemoryStorage) -> None:
    """Both sends are told to the others, with the same arguments, and a move sent twice is made once."""
    notes = record()

    transition(FaultStore(ThreeSteps(memory), resend(), notes), stored(memory), "B")

    assert notes.writes == ["update_batches"] * 2 + ["put_records"] * 2 + ["delete_records"] * 2
    assert notes.calls[0] == notes.calls[1]
    assert notes.answers[1] == [None]
    assert stored(memory).version == 2


def test_one_call_alone_can_be_sent_again(memory: MemoryStorage) -> None:
    """`resend(n)` repeats the n-th write, and an argument that can be gone through once only is kept for it."""
    notes = record()
    store = FaultStore(ThreeSteps(memory), resend(2), resend(1, on=["get_batches"]), notes)

    transition(store, stored(memory), "B")
    assert notes.writes == ["update_batches", "put_records", "put_records", "delete_records"]

    assert list(store.get_batches(name for name in ["b"])) == ["b"]


def test_a_fused_move_is_one_call(memory: MemoryStorage) -> None:
    """The storage's own single step is passed on as that, and so are its fused creation and its snapshot."""
    notes = record()
    store = FaultStore(memory, notes)

    transition(store, stored(memory), "B")
    create_batch(store, Batch("c", "q", "A", request_ids=("r",)))
    assert isinstance(store, SnapshotListing)
    store.list_records_of(["A"])

    assert notes.methods == ["move_batches", "create_whole", "list_records_of"]


def test_a_stopped_thread_waits_until_it_is_released(memory: MemoryStorage) -> None:
    """While one stands before its put, another sees the batch moved and its record not yet."""
    stop = stop_before(2)
    thread = Thread(target=transition, args=(FaultStore(ThreeSteps(memory), stop), stored(memory), "B"))
    thread.start()
    stop.wait()
    assert stored(memory).state == "B"
    assert filed(memory) == [("A", 1)]

    stop.release()
    thread.join()
    assert filed(memory) == [("B", 2)]


def test_a_stop_that_nobody_comes_to_is_told(memory: MemoryStorage) -> None:
    """Waiting for a call that never comes ends with an error, not with a test that hangs."""
    stop = stop_before(1)
    FaultStore(memory, stop).get_batches(["b"])
    with pytest.raises(TimeoutError, match="no thread came"):
        stop.wait(0.0)


def test_calls_are_counted_from_one() -> None:
    """There is no call number 0."""
    with pytest.raises(ValueError, match="from 1"):
        crash_before(0)


def test_closing_it_leaves_the_storage_open(memory: MemoryStorage) -> None:
    """A test wraps a storage for one call, and goes on with the storage."""
    with FaultStore(memory) as store:
        assert store.queue == "q"
        assert store.inner is memory
    assert stored(memory).state == "A"
