"""Moving many batches at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from batchstate.entities import Batch
from batchstate.errors import StorageUnavailableError, TransitionIncompleteError, VersionMismatchError
from batchstate.listing import list_by_states
from batchstate.moves import Move
from batchstate.storage import AtomicMoves, Storage
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import LINE, crowd, everything, filed, made, new, row, swap, walked
from batchstate.testing.faults import Fault, record
from batchstate.tidying import retire
from batchstate.transition import ensure_record, transition, transition_many

if TYPE_CHECKING:
    from batchstate.testing.forwarding import Call
    from batchstate.testing.harness import Harness

__all__ = ["ManyTransitions"]


class ManyTransitions(Contract):
    """What `transition_many` does."""

    def test_many_batches_are_moved_each_as_one_would_be(self, store: Storage, harness: Harness) -> None:
        """Moving many answers each batch as it is stored now, in the order given."""
        batches = [made(store, name, n=name) for name in ("c", "a", "b")]
        harness.clock.advance("1h")

        answers = transition_many(
            store, batches, "testing", lifecycle=LINE, update={"x": 1}, by="ci", why="w", clock=harness.clock
        )

        assert answers == [row(store, name) for name in ("c", "a", "b")]
        for batch in answers:
            assert isinstance(batch, Batch)
            assert (batch.state, batch.version, batch.entered, batch.updated_at) == ("testing", 2, 2, harness.clock())
            assert batch.attributes == {"n": batch.id, "x": 1}
            assert batch.history[-1] == Move("queued", "testing", 2, harness.clock(), "ci", "w")
            assert filed(store, batch.id) == {"testing": 2}

    def test_each_has_its_own_outcome(self, store: Storage) -> None:
        """A batch that is refused is answered in its place, and costs the others nothing."""
        good, late, last = made(store, "good"), made(store, "late"), made(store, "last")
        bad, ended = made(store, "bad"), walked(store, "queued", "testing", "merging", "merged", batch_id="ended")
        gone = retire(store, walked(store, "queued", "failed", batch_id="gone"))
        current = transition(store, late, "testing", update={"winner": True})

        answers = transition_many(
            store,
            [
                good,
                new("absent"),
                late,
                ended,
                gone,
                attrs.evolve(bad, attributes={"n": {1}}),
                new("q2", queue="o"),
                last,
            ],
            "testing",
            lifecycle=LINE,
        )

        assert [type(answer).__name__ for answer in answers] == [
            "Batch", "NotFoundError", "VersionMismatchError", "InvalidTransitionError", "InvalidTransitionError",
            "InvalidValueError", "QueueMismatchError", "Batch",
        ]  # fmt: skip
        assert [batch.id for batch in list_by_states(store, ["testing"])] == ["good", "last", "late"]
        assert row(store, "late") == current
        assert (row(store, "bad"), row(store, "ended"), row(store, "gone")) == (bad, ended, gone)
        assert filed(store, "bad") == {"queued": 1}

    def test_of_one_batch_given_twice_the_first_wins(self, store: Storage) -> None:
        """A batch that is given twice is moved once; the second is answered as a lost race."""
        batch = made(store)

        first, second = transition_many(store, [batch, batch], "testing")

        assert first == row(store)
        assert isinstance(second, VersionMismatchError)
        assert (row(store).version, filed(store)) == (2, {"testing": 2})

    def test_many_take_as_many_calls_as_one(self, opened: Opener) -> None:
        """However many batches are moved, the store is called as often as for one."""
        store = opened()
        some = crowd(store, [f"b-{number}" for number in range(30)])
        counts = []
        for batches in (some[:1], some[1:]):
            notes = record()
            asked = opened("q", notes)
            transition_many(asked, batches, "testing")
            counts.append(notes.methods)

        assert counts[0] == counts[1]
        assert len(counts[0]) in (1, 3)

    def test_none_are_no_work(self, opened: Opener) -> None:
        """Moving none, or none that may be moved, asks nothing of the store."""
        notes = record()
        store = opened("q", notes)
        ended = made(opened(), state="merged")

        assert transition_many(store, [], "testing") == []
        [refused] = transition_many(store, [ended], "testing", lifecycle=LINE)

        assert not isinstance(refused, Batch)
        assert notes.methods == []

    def test_a_store_that_cannot_be_reached_is_each_ones_outcome(self, opened: Opener) -> None:
        """Where the swap cannot be sent, each batch is answered with just that."""
        store = opened()
        batches = [made(store, "a"), made(store, "b")]

        def fail(call: Call) -> None:
            raise StorageUnavailableError(call.method)

        answers = transition_many(opened("q", Fault(before=fail)), batches, "testing")

        assert [type(answer) for answer in answers] == [StorageUnavailableError] * 2
        assert [batch.id for batch in list_by_states(store, ["queued"])] == ["a", "b"]

    def test_what_fails_after_the_swaps_is_told_of_those_that_moved(self, store: Storage, opened_steps: Opener) -> None:
        """Where the records cannot be written, those that moved are told so, and the others keep their outcome."""
        good, late = made(store, "good"), made(store, "late")
        transition(store, late, "merging")

        def fail(call: Call) -> None:
            if call.method == "put_records":
                raise StorageUnavailableError(call.method)

        answers = transition_many(opened_steps("q", Fault(before=fail)), [late, good], "testing")

        assert isinstance(answers[0], VersionMismatchError)
        assert isinstance(answers[1], TransitionIncompleteError)
        assert answers[1].batch == row(store, "good")
        ensure_record(store, row(store, "good"))
        assert filed(store, "good")["testing"] == 2

    def test_all_new_records_are_filed_before_any_old_one_goes(self, opened_steps: Opener) -> None:
        """In three steps all swaps come first, then all puts, and only then the deletes."""
        batches = crowd(opened_steps(), ["a", "b", "c"])
        notes = record()

        transition_many(opened_steps("q", notes), batches, "testing")

        assert notes.writes == ["update_batches", "put_records", "delete_records"]

    def test_a_call_for_many_that_is_sent_twice_applies_once(self, plain: Storage) -> None:
        """Where a storage moves as a whole, the same call again is answered as done for each."""
        if not isinstance(plain, AtomicMoves):
            pytest.skip("it moves in three steps")
        swaps = [swap(batch, "testing") for batch in crowd(plain, ["a", "b", "c"])]
        assert plain.move_batches(swaps) == [None] * 3
        before = everything(plain)

        assert plain.move_batches(swaps) == [None] * 3
        assert everything(plain) == before
