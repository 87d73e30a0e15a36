"""Creation: the associations, then the row, then the record.

In this order no state ever points to a batch without a row, and a crash leaves at most associations that lead nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from batchstate.entities import Association, Batch, History, RowMemory
from batchstate.errors import (
    AlreadyExistsError,
    BatchStateError,
    InvalidValueError,
    StorageUnavailableError,
)
from batchstate.marks import new_mark, remember
from batchstate.moves import Move, append_move
from batchstate.names import check_name
from batchstate.storage import AtomicCreates, Outcome, Storage
from batchstate.times import Clock, wall_clock
from batchstate.transition import check_not_reserved, put_records_of
from batchstate.wire import requests_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["associations_of", "create_batch", "create_many"]


def create_batch(store: Storage, batch: Batch, *, by: str = "", why: str = "", clock: Clock = wall_clock) -> Batch:
    """Create `batch`; called again for the same requests it answers the stored batch, repaired.

    Until this returns, the batch may be reachable by its request IDs only. A redelivered creation
    completes the record and the associations from the *stored* row, whatever state that is in by
    now.

    Args:
        store: the storage of the batch's queue.
        batch: its ID, queue, first state, request IDs and attributes; at version 1, as a `Batch` is
            by default.
        by: who creates it, for the history.
        why: the reason, for the history.
        clock: answers the time of creation, in milliseconds since the epoch.

    Returns:
        The batch as it is stored, which after a redelivery may be further on.

    Raises:
        AlreadyExistsError: the ID is taken by a batch of other requests, which `current` has; that
            one was neither changed nor repaired. Batch IDs are never reused.
        InvalidValueError: the batch cannot be stored. Nothing was written.
        StorageUnavailableError: the store could not be reached; how far the creation came is
            unknown. Redeliver.
    """
    [outcome] = create_many(store, [batch], by=by, why=why, clock=clock)
    if isinstance(outcome, BatchStateError):
        raise outcome
    return outcome


def create_many(
    store: Storage,
    batches: Sequence[Batch],
    *,
    by: str = "",
    why: str = "",
    clock: Clock = wall_clock,
) -> list[Batch | BatchStateError]:
    """Create many batches, each for itself, in as few round trips as one takes; arguments as for `create_batch`.

    Returns:
        For each batch, in the order given, what `create_batch` would have returned or raised for
        it.
    """
    at = clock()
    answers: list[Batch | BatchStateError] = []
    places: list[int] = []
    for place, batch in enumerate(batches):
        try:
            answers.append(_stamped(batch, Move(None, batch.state, 1, at, by, why)))
            places.append(place)
        except BatchStateError as error:
            answers.append(error)
    stamped = [answer for answer in answers if isinstance(answer, Batch)]
    try:
        created = _create(store, stamped)
    except StorageUnavailableError as error:
        created = [error] * len(stamped)
    for place, answer in zip(places, created, strict=True):
        answers[place] = answer
    return answers


def associations_of(batch: Batch) -> list[Association]:
    """Answer the associations of all requests of `batch`, each once."""
    return [Association(batch.queue, request_id, batch.id) for request_id in dict.fromkeys(batch.request_ids)]


def _stamped(batch: Batch, move: Move) -> Batch:
    if (batch.version, batch.entered, batch.retired_at) != (1, 1, None) or batch.history:
        msg = f"batch {batch.id!r} is not new: create it at version 1, without history; use transition to change one"
        raise InvalidValueError(msg)
    check_name("state", batch.state)
    check_not_reserved(batch.state)
    return attrs.evolve(
        batch,
        history=History(append_move("", move), batch.id),
        created_at=move.at,
        updated_at=move.at,
        memory=RowMemory(
            remember("", 1, new_mark()),
            batch.request_ids,
            requests_text(attrs.evolve(batch, memory=None)),
        ),
    )


def _create(store: Storage, batches: Sequence[Batch]) -> list[Batch | BatchStateError]:
    """Create them and repair those that are there already; every answer is the stored batch or why there is none."""
    if not batches:
        return []
    whole = isinstance(store, AtomicCreates)
    outcomes = store.create_whole(batches) if isinstance(store, AtomicCreates) else _write_rows(store, batches)
    answers = [_stored(batch, outcome) for batch, outcome in zip(batches, outcomes, strict=True)]
    live = [
        place
        for place, (answer, outcome) in enumerate(zip(answers, outcomes, strict=True))
        if isinstance(answer, Batch) and answer.retired_at is None and not (whole and outcome is None)
    ]
    repairs = [answer for place in live if isinstance(answer := answers[place], Batch)]
    repaired = _file(store, repairs) if whole else put_records_of(store, repairs)
    for place, outcome in zip(live, repaired, strict=True):
        if outcome is not None:
            answers[place] = outcome
    return answers


def _write_rows(store: Storage, batches: Sequence[Batch]) -> list[Outcome]:
    """Write the associations, then the rows, of those batches that the store can hold."""
    outcomes = store.check_batches(batches)
    _fill(outcomes, batches, lambda sound: _put_associations(store, sound))
    _fill(outcomes, batches, store.create_batches)
    return outcomes


def _file(store: Storage, batches: Sequence[Batch]) -> list[Outcome]:
    """Complete the associations, then the records, of stored batches."""
    outcomes: list[Outcome] = [None] * len(batches)
    _fill(outcomes, batches, lambda stored: _put_associations(store, stored))
    _fill(outcomes, batches, lambda stored: put_records_of(store, stored))
    return outcomes


def _fill(
    outcomes: list[Outcome],
    batches: Sequence[Batch],
    write: Callable[[Sequence[Batch]], list[Outcome]],
) -> None:
    """Do `write` for the batches that nothing was refused for so far, and note what it answers."""
    places = [place for place, outcome in enumerate(outcomes) if outcome is None]
    if places:
        for place, outcome in zip(places, write([batches[place] for place in places]), strict=True):
            outcomes[place] = outcome


def _put_associations(store: Storage, batches: Sequence[Batch]) -> list[Outcome]:
    """Put the associations of all these batches in one call; a batch is refused with the first of its that is."""
    per_batch = [associations_of(batch) for batch in batches]
    outcomes = iter(store.put_associations([association for several in per_batch for association in several]))
    return [next(filter(None, [next(outcomes) for _ in several]), None) for several in per_batch]


def _stored(batch: Batch, outcome: Outcome) -> Batch | BatchStateError:
    """Answer the stored batch: the one just created, or the one that a redelivered creation met."""
    if outcome is None:
        return batch
    stored = outcome.current if isinstance(outcome, AlreadyExistsError) else None
    if stored is not None and set(stored.request_ids) == set(batch.request_ids):
        return stored
    return outcome
