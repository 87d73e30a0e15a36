"""What the tests of the suite begin with, and how they look at what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from batchstate.creation import create_batch, create_many
from batchstate.entities import Batch, MembershipRecord, RowMemory
from batchstate.errors import BatchStateError
from batchstate.lifecycle import Lifecycle
from batchstate.marks import new_mark, remember
from batchstate.moves import Move
from batchstate.testing.clock import START
from batchstate.transition import swap_to, transition
from batchstate.wire import encode_batch, requests_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from batchstate.storage import Page, Storage, Swap
    from batchstate.testing.harness import Harness

__all__ = [
    "LINE",
    "LOOP",
    "associated",
    "crowd",
    "everything",
    "filed",
    "lag",
    "made",
    "marked",
    "moved",
    "new",
    "paged",
    "plant",
    "record",
    "row",
    "swap",
    "walked",
    "wrong",
]

LINE = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")
"""A lifecycle without a cycle."""

LOOP = Lifecycle.parse("started > running > waiting > running > done")
"""A lifecycle with one."""

STATES = (*LINE.states, *LOOP.states)

T = TypeVar("T")


def new(
    batch_id: str = "b",
    state: str = "queued",
    requests: Iterable[str] = ("r-1", "r-2"),
    queue: str = "q",
    **attributes: Any,  # noqa: ANN401 - any JSON value
) -> Batch:
    """Answer a batch that is not stored yet."""
    return Batch(batch_id, queue, state, request_ids=tuple(requests), attributes=attributes)


def wrong(batch: Batch | None = None, **fields: Any) -> Batch:  # noqa: ANN401 - whatever it is that is wrong
    """Answer a batch with fields of any type."""
    return attrs.evolve(batch or new(), **fields)


def made(
    store: Storage,
    batch_id: str = "b",
    state: str = "queued",
    requests: Iterable[str] = ("r-1", "r-2"),
    **attributes: Any,  # noqa: ANN401 - any JSON value
) -> Batch:
    """Create a batch and answer it."""
    return create_batch(store, new(batch_id, state, requests, store.queue, **attributes), clock=lambda: START)


def crowd(store: Storage, ids: Iterable[str], state: str = "queued", requests: Iterable[str] = ()) -> list[Batch]:
    """Create many batches and answer them."""
    requests = tuple(requests)
    outcomes = create_many(
        store, [new(batch_id, state, requests, store.queue) for batch_id in ids], clock=lambda: START
    )
    return [batch for batch in outcomes if isinstance(batch, Batch)]


def walked(store: Storage, *states: str, batch_id: str = "b") -> Batch:
    """Create a batch in the first of these states and move it through the others."""
    batch = made(store, batch_id, states[0])
    for state in states[1:]:
        batch = transition(store, batch, state, clock=lambda: START)
    return batch


def marked(batch: Batch) -> Batch:
    """Answer `batch` with a mark of its version, as a row that was read has one."""
    memory = RowMemory(remember("", batch.version, new_mark()), batch.request_ids, requests_text(batch))
    return attrs.evolve(batch, memory=memory)


def row(store: Storage, batch_id: str = "b") -> Batch:
    """Load a batch that must be there."""
    found = store.get_batches([batch_id])[batch_id]
    assert isinstance(found, Batch)
    return found


def filed(store: Storage, batch_id: str = "b", states: Iterable[str] = STATES) -> dict[str, int]:
    """Answer the records of a batch: state to version."""
    return {found.state: found.version for found in store.get_records([(state, batch_id) for state in states])}


def associated(store: Storage, request_id: str) -> list[str]:
    """Answer the batches that a request is associated with, sorted."""
    return sorted(association.batch_id for association in store.list_associations(request_id))


def record(state: str, version: int = 1, batch_id: str = "b", queue: str = "q") -> MembershipRecord:
    """Answer a membership record."""
    return MembershipRecord(queue, state, batch_id, version)


def swap(batch: Batch, to: str, **changes: Any) -> Swap:  # noqa: ANN401 - any field of a batch
    """Answer the swap that moves `batch`, as the core makes it, with some fields of the written row changed."""
    made = swap_to(batch, Move(batch.state, to, batch.version + 1, START))
    return attrs.evolve(made, after=attrs.evolve(made.after, **changes))


def moved(store: Storage, batch: Batch, *states: str) -> Batch:
    """Swap the row of `batch` through these states, and touch no record."""
    for state in states:
        step = swap(batch, state)
        assert store.update_batches([step]) == [None]
        batch = step.after
    return batch


def lag(store: Storage, *states: str, batch_id: str = "b") -> Batch:
    """Leave a batch in the last of these states and its record in the first, as a crash does between swap and put."""
    return moved(store, made(store, batch_id, states[0]), *states[1:])


def plant(harness: Harness, batch: Batch, **fields: object) -> None:
    """Write the row of `batch` with some fields of the stored form changed, past all checks."""
    stored = encode_batch(batch, batch.queue)._replace(**fields)  # type: ignore[arg-type]  # nonsense is the purpose
    harness.plant(batch.queue, batch.id, tuple(stored))


def paged(read: Callable[[str | None], Page[T]]) -> Iterator[list[T]]:
    """Go through the pages of a listing."""
    page = read(None)
    yield list(page.items)
    while page.cursor is not None:
        page = read(page.cursor)
        yield list(page.items)


def everything(store: Storage) -> dict[str, object]:
    """Answer all that the queue holds, in a form that can be compared; unreadable rows by their message."""
    kinds = ("batches", "records", "associations")
    return {
        kind: sorted(
            {
                str(item) if isinstance(item, BatchStateError) else f"{item!r} {_unshown(item)}"
                for page in paged(lambda cursor, kind=kind: store.scan(kind, cursor))  # type: ignore[misc]  # its own kind
                for item in page
            }
        )
        for kind in kinds
    }


def _unshown(item: object) -> str:
    return f"{item.marks} {item.history.text}" if isinstance(item, Batch) else ""
