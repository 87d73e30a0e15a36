"""`TransactingDynamoDBStorage`: a move, a creation or a retirement as one transaction.

One round trip instead of three, and nothing left half done by a crash, at twice the write units. It
may work beside the other kind on one queue.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from batchstate.creation import associations_of
from batchstate.entities import Association, MembershipRecord
from batchstate.errors import BatchStateError
from batchstate.storage import Outcome, Swap, judge_creation, judge_swap
from batchstate_dynamodb.errors import CONDITION_FAILED, CancelledError, ConditionFailedError
from batchstate_dynamodb.expressions import (
    delete_record,
    insert_association,
    insert_row,
    put_record,
    row_is_live,
    update_row,
)
from batchstate_dynamodb.job_layout import JobKeys
from batchstate_dynamodb.jobs import DynamoDBJobs
from batchstate_dynamodb.layout import Key, encode_batches, item_key
from batchstate_dynamodb.storage import DynamoDBStorage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.entities import Batch
    from batchstate.wire import BatchRow

__all__ = ["MOST_REQUESTS", "TransactingDynamoDBStorage"]

_ACTIONS: Final = 100
MOST_REQUESTS: Final = _ACTIONS - 2
"""How many requests a batch may have to be created in one transaction: 100 writes, less its row and its record."""

Action = dict[str, Any]


class TransactingDynamoDBStorage(DynamoDBJobs, DynamoDBStorage):
    """As `DynamoDBStorage`, but a move, a creation and a retirement are one transaction each, and it keeps jobs.

    A batch of more than 98 requests is created in the three writes, after a look whether its ID is
    taken: only who loses that race then leaves associations that lead nowhere.
    """

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - those of `DynamoDBStorage`
        super().__init__(*args, **options)
        self._keys = JobKeys(self._layout)

    def delete_batches(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        outcomes = super().delete_batches(batches, states)
        self._forget_holds(batch.id for batch, outcome in zip(batches, outcomes, strict=True) if outcome is None)
        return outcomes

    def move_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        rows = encode_batches([swap.after for swap in swaps], self._queue)
        self._entry.check()
        return self._each(list(zip(swaps, rows, strict=True)), lambda pair: pair[0].before.id, self._move)

    def create_whole(self, batches: Sequence[Batch]) -> list[Outcome]:
        rows = encode_batches(batches, self._queue)
        small = [len(batch.request_ids) <= MOST_REQUESTS for batch in batches]
        if any(not isinstance(row, BatchStateError) for row in rows):
            self._entry.file()
        pairs = list(zip(batches, rows, strict=True))
        outcomes = iter(
            self._each([pair for pair, fits in zip(pairs, small, strict=True) if fits], _id, self._create_small)
        )
        large = iter(self._create_large([batch for batch, fits in zip(batches, small, strict=True) if not fits]))
        return [next(outcomes) if fits else next(large) for fits in small]

    def _move(self, pair: tuple[Swap, BatchRow | BatchStateError]) -> Outcome:
        swap, row = pair
        if isinstance(row, BatchStateError):
            return row
        removals = self._removals(swap)
        home = Key(self._layout.bucket(row.state, self._shards.home(row.id)), row.id)
        filing: list[Action] = [] if row.retired_at is not None else [{"Put": put_record(home, row.version)}]
        outcome, fresh = self._swap_with(swap, row, [*filing, *removals])
        if outcome is None and not fresh:
            # An earlier try swapped the row, perhaps without the records. The batch may have retired since.
            with suppress(ConditionFailedError):
                self._transact({"ConditionCheck": row_is_live(self._layout.row(row.id))}, [*filing, *removals])
                return None
            for removal in removals:
                self._requests.attempt("delete_item", **removal["Delete"])
        return outcome

    def _removals(self, swap: Swap) -> list[Action]:
        before = swap.before
        if before.state == swap.after.state:
            return []
        keys = [Key(self._layout.bucket(before.state, shard), before.id) for shard in self._shards.places(before.id)]
        return [{"Delete": delete_record(key, before.version)} for key in keys]

    def _retire(self, swap: Swap, row: BatchRow) -> Outcome:
        return self._swap_with(swap, row, [])[0]

    def _swap_with(self, swap: Swap, row: BatchRow, others: list[Action]) -> tuple[Outcome, bool]:
        """Swap the row together with the other writes; answer the outcome, and whether it was this that swapped it."""
        if row.retired_at is not None:
            others = [*others, {"Put": {"Item": item_key(self._retired.key(swap.after))}}]
        key = self._layout.row(row.id)
        try:
            self._transact({"Update": update_row(key, swap.before, row)}, others)
        except ConditionFailedError as failed:
            return judge_swap(swap, self._met(key, failed)), False
        return None, True

    def _create_small(self, pair: tuple[Batch, BatchRow | BatchStateError]) -> Outcome:
        batch, row = pair
        if isinstance(row, BatchStateError):
            return row
        key = self._layout.row(row.id)
        record = Key(self._layout.bucket(row.state, self._shards.home(row.id)), row.id)
        others: list[Action] = [
            {"Put": insert_association(Key(self._layout.attempts(each.request_id), each.batch_id))}
            for each in associations_of(batch)
        ]
        if row.retired_at is None:
            others.append({"Put": put_record(record, row.version)})
        else:
            others.append({"Put": {"Item": item_key(self._retired.key(batch))}})
        try:
            self._transact({"Put": insert_row(key, row)}, others)
        except ConditionFailedError as failed:
            return self._judge_creation(batch, key, failed)
        return None

    def _create_large(self, batches: Sequence[Batch]) -> list[Outcome]:
        """Write associations, rows and records one after the other, of those whose IDs are free."""
        if not batches:
            return []
        outcomes = self.check_batches(batches)
        there = self.get_batches(batch.id for batch, outcome in zip(batches, outcomes, strict=True) if outcome is None)
        for place, batch in enumerate(batches):
            if outcomes[place] is None and batch.id in there:
                outcomes[place] = judge_creation(batch, there[batch.id])
        free = [place for place, batch in enumerate(batches) if outcomes[place] is None and batch.id not in there]
        associations: list[Association] = [each for place in free for each in associations_of(batches[place])]
        self.put_associations(associations)
        for place, outcome in zip(free, self.create_batches([batches[place] for place in free]), strict=True):
            outcomes[place] = outcome
        self.put_records(
            [
                MembershipRecord(batch.queue, batch.state, batch.id, batch.version)
                for batch, outcome in zip(batches, outcomes, strict=True)
                if outcome is None and batch.retired_at is None
            ]
        )
        return outcomes

    def _transact(self, first: Action, others: Sequence[Action]) -> None:
        """Write `first`, and in the same step those of the others whose conditions hold; the rest mean nothing to do.

        Raises:
            ConditionFailedError: the condition of `first` did not hold. Nothing was written.
        """
        left = list(others)
        while True:
            try:
                self._requests.transact([first, *left])
            except CancelledError as cancelled:
                failed = [reason.get("Code") == CONDITION_FAILED for reason in cancelled.reasons]
                if failed[0]:
                    raise ConditionFailedError(cancelled.reasons[0].get("Item") or None) from cancelled
                left = [action for action, idle in zip(left, failed[1:], strict=True) if not idle]
            else:
                return


def _id(pair: tuple[Batch, object]) -> str:
    return pair[0].id
