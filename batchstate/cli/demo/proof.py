"""The proof: what the store itself says at the end."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from attrs import define, field

from batchstate.transition import record_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate import Batch, BatchQueue
    from batchstate.cli.demo.changes import Gathered
    from batchstate.cli.demo.messages import Message

__all__ = ["Proof", "Wounds", "prove"]


@define
class Wounds:
    """What killed workers left behind, looked at in the store right after each kill."""

    queue: BatchQueue
    without_record: set[str] = field(factory=set)
    """Batches whose row had moved, or was made, and whose record was not there yet."""
    with_leftover: set[str] = field(factory=set)
    """Batches that were still filed under a state they had left, too."""

    def look(self, message: Message) -> None:
        """Look at the batch that a killed worker had in hand."""
        batch = self.queue.store.get_batches([message.batch_id]).get(message.batch_id)
        if batch is None or isinstance(batch, Exception):
            return
        filed = self.queue.store.get_records([(state, batch.id) for state in self.queue.lifecycle.states])
        if all(record.state != batch.state for record in filed):
            self.without_record.add(batch.id)
        elif len(filed) > 1:
            self.with_leftover.add(batch.id)


@define
class Proof:
    """What the store says.

    Attributes:
        changes: how many changes there are.
        found: how many of them are found by their ID, in exactly one batch that contains them.
        batches: how many batches there are.
        by_state: how many of them each state's listing has.
        unfiled: batches whose record is not under their state.
        wrong_histories: batches whose history has a move twice, or one left out.
        leftovers: how many records under states that were left `reconcile` removed at last.
    """

    changes: int
    found: int
    batches: int
    by_state: dict[str, int]
    unfiled: int
    wrong_histories: int
    leftovers: int

    @property
    def holds(self) -> bool:
        """Whether nothing was lost and nothing was done twice."""
        ended = sum(self.by_state.values())
        return (
            self.changes == self.found
            and self.batches == ended
            and self.by_state["queued"] == self.by_state["testing"] == self.by_state["merging"] == 0
            and self.unfiled == 0
            and self.wrong_histories == 0
        )


def prove(queue: BatchQueue, made: Sequence[Gathered]) -> Proof:
    """Ask the store about every change and every batch."""
    found = 0
    for gathered in made:
        for request_id in gathered.requests:
            batches, _ = queue.find_by_request_id(request_id)
            found += [batch.id for batch in batches] == [gathered.id]
    listed = queue.list_by_states(queue.lifecycle.states)
    records = queue.store.get_records([(batch.state, batch.id) for batch in listed])
    by_state = dict.fromkeys(queue.lifecycle.states, 0)
    for batch in listed:
        by_state[batch.state] += 1
    reconciled = queue.reconcile()
    return Proof(
        changes=sum(len(gathered.requests) for gathered in made),
        found=found,
        batches=len(made),
        by_state=by_state,
        unfiled=len({record_of(batch) for batch in listed} - set(records)),
        wrong_histories=sum(not _is_straight(batch) for batch in listed),
        leftovers=reconciled.removed,
    )


def _is_straight(batch: Batch) -> bool:
    """Answer whether each move of the history begins where the one before ended, one version on."""
    moves = list(batch.history)
    return (
        moves[0].source is None
        and all(late.source == early.to for early, late in pairwise(moves))
        and [move.version for move in moves] == list(range(1, batch.version + 1))
        and moves[-1].to == batch.state
    )
