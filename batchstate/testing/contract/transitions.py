"""Moving a batch."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from batchstate.advance import advance
from batchstate.errors import (
    InvalidNameError,
    InvalidTransitionError,
    InvalidValueError,
    NotFoundError,
    VersionMismatchError,
)
from batchstate.lifecycle import RESERVED_STATES
from batchstate.listing import list_by_states
from batchstate.storage import AtomicMoves, Storage
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import LINE, LOOP, everything, filed, made, new, row, walked, wrong
from batchstate.testing.faults import Fault, record, resend
from batchstate.tidying import retire
from batchstate.transition import transition

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.entities import Batch
    from batchstate.testing.forwarding import Call
    from batchstate.testing.harness import Harness

__all__ = ["Transitions"]


class Transitions(Contract):
    """What `transition` does."""

    def test_a_transition_moves_row_and_record(self, store: Storage) -> None:
        """A batch that was moved is found under its new state, and there alone."""
        moved_on = transition(store, made(store), "testing")

        assert row(store) == moved_on
        assert (moved_on.state, moved_on.version, moved_on.entered) == ("testing", 2, 2)
        assert filed(store) == {"testing": 2}
        assert list_by_states(store, ["testing"]) == [moved_on]
        assert list_by_states(store, ["queued"]) == []

    def test_a_moved_batch_can_be_moved_on_as_it_was_returned(self, store: Storage) -> None:
        """What a transition returns is what the next one takes."""
        batch = walked(store, *["queued", "testing"] * 5)

        assert (batch.version, batch.entered) == (10, 10)
        assert filed(store) == {"testing": 10}

    def test_the_time_of_a_move(self, store: Storage, harness: Harness) -> None:
        """A move is dated by the clock; the date of creation stays."""
        batch = made(store)
        now = harness.clock.advance("2d")

        assert transition(store, batch, "testing", clock=harness.clock).updated_at == now
        assert (row(store).updated_at, row(store).created_at) == (now, batch.created_at)

    def test_a_move_into_the_present_state_keeps_entered(self, store: Storage) -> None:
        """A move into the present state changes the version, keeps `entered`, and files the record anew."""
        batch = transition(store, made(store), "testing")

        for version in (3, 4):
            batch = transition(store, batch, "testing", lifecycle=LINE)
            assert (batch.version, batch.entered) == (version, 2)
            assert row(store) == batch
            assert filed(store) == {"testing": version}

    def test_coming_back_into_a_state_enters_it_anew(self, store: Storage) -> None:
        """`entered` is the version at which the batch came into its present state the last time."""
        batch = walked(store, "started", "running", "waiting", "running")

        assert (batch.entered, row(store).entered) == (4, 4)

    def test_the_callers_batch_is_never_changed(self, store: Storage) -> None:
        """A transition leaves the batch it was given as it was."""
        batch = made(store, nested={"list": [1]})
        before = copy.deepcopy(batch)

        transition(store, batch, "testing", update={"n": 1})

        assert batch == before
        assert batch.marks == before.marks

    def test_an_update_is_merged_over_the_attributes(self, store: Storage) -> None:
        """`update` sets some attributes in the same swap and keeps the others; it does not merge deeply."""
        batch = made(store, a=1, b={"x": 1}, c=3)

        transition(store, batch, "testing", update={"b": {"y": 2}, "d": None})

        assert row(store).attributes == {"a": 1, "b": {"y": 2}, "c": 3, "d": None}

    def test_attributes_are_written_as_the_caller_has_them(self, store: Storage) -> None:
        """The whole row is written as given: what the caller changed or took away is changed and gone."""
        batch = made(store, a=1, b=2)

        transition(store, attrs.evolve(batch, attributes={"b": 3}), "testing")

        assert row(store).attributes == {"b": 3}

    def test_a_lost_race_touches_nothing(self, store: Storage) -> None:
        """A transition from a version that the row has left is refused; row and records are the winner's."""
        batch = made(store)
        winner = transition(store, batch, "testing", update={"by": "winner"})

        with pytest.raises(VersionMismatchError) as caught:
            transition(store, batch, "failed", update={"by": "loser"})

        assert caught.value.retryable
        assert caught.value.applied is False
        assert (caught.value.expected, caught.value.actual) == (1, 2)
        assert caught.value.current in (winner, None)
        assert row(store) == winner
        assert filed(store) == {"testing": 2}

    def test_a_stale_copy_pushes_no_batch_backwards(self, store: Storage) -> None:
        """A step replayed from a copy taken long ago is refused and leaves row and record where they are."""
        stale = walked(store, "queued", "testing")
        current = transition(store, transition(store, transition(store, stale, "testing"), "testing"), "merging")

        with pytest.raises(VersionMismatchError):
            transition(store, stale, "testing")

        assert row(store) == current
        assert filed(store) == {"merging": 5}

    def test_a_batch_made_from_its_id_alone_overwrites_nothing(self, store: Storage) -> None:
        """A write that did not read the row is refused: it knows no version, or the wrong one."""
        current = walked(store, "queued", "testing", "merging")

        with pytest.raises(VersionMismatchError):
            transition(store, new(), "testing")
        for version in (None, 0, -1, "3", 3.0, True):
            with pytest.raises(InvalidValueError):
                transition(store, wrong(current, version=version), "testing")

        assert row(store) == current

    def test_every_write_of_a_row_makes_older_copies_stale(self, store: Storage) -> None:
        """Whatever call has written a row, a move from a copy of before is refused."""
        writes: list[Callable[[Batch], Batch]] = [
            lambda batch: transition(store, batch, "testing"),
            lambda batch: transition(store, batch, batch.state),
            lambda batch: advance(store, batch.id, "testing", entered=1).batch,
            lambda batch: retire(store, batch),
        ]
        for number, write in enumerate(writes):
            held = made(store, f"b-{number}")
            current = write(held)

            with pytest.raises(VersionMismatchError):
                transition(store, held, "failed")
            assert row(store, held.id) == current

    def test_an_absent_batch_is_not_found(self, store: Storage) -> None:
        """A transition of a batch without a row is answered with `NotFoundError` and leaves nothing behind."""
        with pytest.raises(NotFoundError):
            transition(store, new(), "testing")

        assert everything(store) == {"batches": [], "records": [], "associations": []}

    def test_a_move_that_the_lifecycle_forbids_is_refused_before_any_call(self, opened: Opener) -> None:
        """A move that the lifecycle does not have is refused, and the store is not even asked."""
        notes = record()
        store = opened("q", notes)
        batch = made(opened())

        for state in ("merging", "merged", "failed"):
            with pytest.raises(InvalidTransitionError):
                transition(store, batch, state, lifecycle=LINE)
        for state in ("testign", "running"):
            with pytest.raises(InvalidValueError):
                transition(store, batch, state, lifecycle=LINE)

        assert notes.methods == []

    def test_a_move_that_the_lifecycle_allows_is_done(self, store: Storage) -> None:
        """A move of the lifecycle is done, a round of a cycle as often as it is asked for."""
        batch = made(store, state="started")
        for state in ("running", "waiting", "running", "waiting", "running", "done"):
            batch = transition(store, batch, state, lifecycle=LOOP)

        assert filed(store) == {"done": 7}

    def test_without_a_lifecycle_any_move_is_allowed(self, store: Storage) -> None:
        """Without a lifecycle a batch may go from any state to any other."""
        assert walked(store, "merged", "queued", "anything").state == "anything"

    def test_the_states_of_claims_are_theirs(self, store: Storage) -> None:
        """No batch is created in or moved into a state that only claims move their batches into."""
        batch = made(store)

        for state in RESERVED_STATES:
            for lifecycle in (None, LINE):
                with pytest.raises(InvalidTransitionError):
                    transition(store, batch, state, lifecycle=lifecycle)
            with pytest.raises(InvalidTransitionError):
                made(store, "other", state)

        assert row(store) == batch
        assert store.get_batches(["other"]) == {}

    def test_a_retired_batch_accepts_no_move(self, store: Storage) -> None:
        """A retired batch is not moved, neither by who knows it to be retired nor by who does not."""
        before = walked(store, "queued", "failed")
        retired = retire(store, before)

        with pytest.raises(InvalidTransitionError):
            transition(store, retired, "queued")
        with pytest.raises(InvalidTransitionError):
            transition(store, attrs.evolve(retired, retired_at=None), "queued")
        with pytest.raises(VersionMismatchError):
            transition(store, before, "queued")

        assert row(store) == retired
        assert filed(store) == {}

    def test_changed_requests_are_refused(self, store: Storage) -> None:
        """A batch whose requests were changed is not moved, since they never change."""
        batch = made(store)

        with pytest.raises(InvalidValueError):
            transition(store, attrs.evolve(batch, request_ids=("r-1",)), "testing")

        assert row(store) == batch

    @pytest.mark.parametrize(
        "fields",
        [
            {"update": {"n": float("nan")}},
            {"update": {"n": {1}}},
            {"by": 1},
            {"why": b"bytes"},
            {"by": "\ud800"},
        ],
        ids=["NaN", "set", "by an int", "why bytes", "surrogate"],
    )
    def test_what_cannot_be_stored_is_refused_before_the_first_write(
        self, store: Storage, fields: dict[str, Any]
    ) -> None:
        """A move with what no store can hold is refused, and nothing was written."""
        batch = made(store)

        with pytest.raises(InvalidValueError):
            transition(store, batch, "testing", **fields)

        assert row(store) == batch
        assert filed(store) == {"queued": 1}

    def test_a_state_that_is_no_name_is_refused_before_any_call(self, opened: Opener) -> None:
        """A move into a state that has no proper name is refused, and the store is not even asked."""
        notes = record()
        store = opened("q", notes)
        batch = made(opened())

        for state in ("", "x" * 256, "a\nb", "\ud800", None):
            with pytest.raises(InvalidNameError):
                transition(store, batch, state)  # type: ignore[arg-type]  # None is none

        assert notes.methods == []

    def test_swap_then_put_then_delete_each_acknowledged_before_the_next(self, opened_steps: Opener) -> None:
        """In three steps a move swaps the row, then puts the new record, then deletes the old one."""
        batch = made(opened_steps())
        notes = record()
        stored: list[tuple[int, dict[str, int]]] = []
        outside = opened_steps()

        def look(call: Call) -> None:
            if call.method in ("update_batches", "put_records", "delete_records"):
                stored.append((row(outside).version, filed(outside)))

        transition(opened_steps("q", notes, Fault(before=look)), batch, "testing")

        assert notes.writes == ["update_batches", "put_records", "delete_records"]
        assert stored == [(1, {"queued": 1}), (2, {"queued": 1}), (2, {"queued": 1, "testing": 2})]

    def test_the_present_states_record_is_put_and_none_deleted(self, opened_steps: Opener) -> None:
        """In three steps a move into the present state has no record to delete."""
        batch = made(opened_steps())
        notes = record()

        transition(opened_steps("q", notes), batch, "queued")

        assert notes.writes == ["update_batches", "put_records"]

    def test_a_storage_that_can_moves_in_one_step(self, opened_plain: Opener) -> None:
        """A storage that moves as a whole is asked once."""
        notes = record()
        store = opened_plain("q", notes)
        if not isinstance(store, AtomicMoves):
            pytest.skip("it moves in three steps")
        batch = made(opened_plain())

        transition(store, batch, "testing")

        assert notes.methods == ["move_batches"]

    def test_every_write_sent_twice_applies_once(self, opened: Opener) -> None:
        """Where the client sends each write twice, versions, records and history are as if it had not."""
        batch = walked(opened("q", resend()), "started", "running", "waiting", "running", "done")
        store = opened()

        assert row(store) == batch
        assert (batch.version, batch.entered, len(batch.history)) == (5, 5, 5)
        assert filed(store) == {"done": 5}
