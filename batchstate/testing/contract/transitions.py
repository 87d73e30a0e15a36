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
    StorageUnavailableError,
    TransitionIncompleteError,
    VersionMismatchError,
)
from batchstate.lifecycle import RESERVED_STATES
from batchstate.listing import list_by_states
from batchstate.storage import AtomicMoves, Storage
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import LINE, LOOP, everything, filed, made, moved, new, row, walked, wrong
from batchstate.testing.contract.given import record as membership
from batchstate.testing.faults import Crash, Fault, crash_after, drop_reply, record, resend
from batchstate.tidying import retire
from batchstate.transition import ensure_record, transition

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.entities import Batch
    from batchstate.testing.forwarding import Call
    from batchstate.testing.harness import Harness

__all__ = ["Repair", "Transitions", "UnfinishedTransitions"]


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


class UnfinishedTransitions(Contract):
    """What a transition leaves that does not come to its end."""

    def test_died_between_swap_and_put(self, store: Storage, opened_steps: Opener) -> None:
        """After a crash between swap and put, the row decides wherever the old record is read, until it is repaired."""
        batch = made(store)
        with pytest.raises(Crash):
            transition(opened_steps("q", crash_after(1)), batch, "testing")

        [found] = list_by_states(store, ["queued", "testing"])
        assert (found.state, found.version) == ("testing", 2)
        assert list_by_states(store, ["queued"]) == []
        assert filed(store) == {"queued": 1}

        ensure_record(store, row(store))
        assert list_by_states(store, ["testing"]) == [found]
        before = everything(store)
        ensure_record(store, row(store))
        assert everything(store) == before

    def test_died_between_put_and_delete(self, store: Storage, opened_steps: Opener) -> None:
        """After a crash between put and delete the row decides: listed once, under its own state alone."""
        batch = made(store)
        with pytest.raises(Crash):
            transition(opened_steps("q", crash_after(2)), batch, "testing")

        assert filed(store) == {"queued": 1, "testing": 2}
        assert [found.state for found in list_by_states(store, ["queued", "testing"])] == ["testing"]
        assert list_by_states(store, ["queued"]) == []
        assert [found.id for found in list_by_states(store, ["testing"])] == ["b"]

    def test_a_leftover_is_removed_when_the_batch_leaves_that_state_again(
        self, store: Storage, opened_steps: Opener
    ) -> None:
        """A record that a crash left goes when the batch comes back into its state and leaves it."""
        batch = made(store, state="running")
        with pytest.raises(Crash):
            transition(opened_steps("q", crash_after(2)), batch, "waiting")
        assert filed(store) == {"running": 1, "waiting": 2}

        transition(store, transition(store, row(store), "running"), "done")

        assert filed(store) == {"done": 4}

    def test_a_store_that_fails_after_the_swap(self, store: Storage, opened_steps: Opener) -> None:
        """A failure after the swap is told with the batch as it is stored, and can be repaired."""
        for number in (2, 3):
            batch = made(store, f"b-{number}")

            with pytest.raises(TransitionIncompleteError) as caught:
                transition(opened_steps("q", unavailable(number)), batch, "testing")

            assert caught.value.retryable
            assert isinstance(caught.value.__cause__, StorageUnavailableError)
            assert caught.value.batch == row(store, batch.id)
            assert (caught.value.batch.state, caught.value.batch.version) == ("testing", 2)
            assert batch.version == 1
            ensure_record(store, caught.value.batch)
            assert filed(store, batch.id)["testing"] == 2

    def test_any_failure_after_the_swap_is_told_as_such(self, store: Storage, opened_steps: Opener) -> None:
        """Whatever goes wrong after the swap, also a fault of the client, the caller is told that the row has moved."""

        def fail(call: Call) -> None:
            if call.method == "put_records":
                raise OSError(call.method)

        with pytest.raises(TransitionIncompleteError) as caught:
            transition(opened_steps("q", Fault(before=fail)), made(store), "testing")

        assert isinstance(caught.value.__cause__, OSError)
        assert row(store).state == "testing"

    def test_a_store_that_cannot_be_reached_for_the_swap(self, opened: Opener) -> None:
        """Where the swap itself fails, the error is `StorageUnavailableError`, retryable, and nothing was written."""
        store = opened()
        batch = made(store)

        with pytest.raises(StorageUnavailableError) as caught:
            transition(opened("q", unavailable(1)), batch, "testing")

        assert caught.value.retryable
        assert row(store) == batch
        assert filed(store) == {"queued": 1}

    def test_a_swap_whose_reply_was_lost_is_done(self, opened: Opener) -> None:
        """After a lost reply the row has moved once; another try from the old copy is refused; repair is possible."""
        store = opened()
        batch = made(store)
        with pytest.raises(StorageUnavailableError):
            transition(opened("q", drop_reply(1)), batch, "testing")

        assert (row(store).state, row(store).version) == ("testing", 2)
        with pytest.raises(VersionMismatchError):
            transition(store, batch, "testing")
        ensure_record(store, row(store))
        assert [found.version for found in list_by_states(store, ["testing"])] == [2]

    def test_a_late_worker_takes_no_record_that_another_put(self, store: Storage, opened_steps: Opener) -> None:
        """On a cycle a worker that stalls between its steps neither loses the batch nor brings back its old place."""
        for stalled in (1, 2):
            batch = made(store, f"b-{stalled}", "running")
            with pytest.raises(Crash):
                transition(opened_steps("q", crash_after(stalled)), batch, "waiting")
            back = transition(store, row(store, batch.id), "running")

            # The stalled worker wakes and does what it had left to do, with the versions it knows.
            store.put_records([membership("waiting", 2, batch.id)])
            store.delete_records([membership("running", 1, batch.id)])

            assert filed(store, batch.id)["running"] == 3
            assert [found.id for found in list_by_states(store, ["running"]) if found.id == batch.id] == [batch.id]
            assert row(store, batch.id) == back


class Repair(Contract):
    """What `ensure_record` does."""

    def test_the_record_of_the_present_state_is_filed(self, store: Storage, plain: Storage) -> None:
        """A record that is missing is put, at the version of the batch."""
        current = moved(plain, made(store), "testing")

        ensure_record(store, current)

        assert filed(store)["testing"] == 2

    def test_a_record_that_is_there_stays(self, store: Storage) -> None:
        """Repairing what is right changes nothing, however often and by whom."""
        batch = walked(store, "queued", "testing")
        before = everything(store)

        for _ in range(3):
            ensure_record(store, batch)

        assert everything(store) == before

    def test_a_repair_from_an_old_copy_lowers_nothing(self, store: Storage) -> None:
        """A repair with a copy of long ago lowers no record; what it files of a state left, listings do not believe."""
        old = made(store)
        current = transition(store, transition(store, old, "testing"), "queued")

        ensure_record(store, old)

        assert filed(store) == {"queued": 3}
        assert list_by_states(store, ["queued"]) == [current]

    def test_a_retired_batch_gets_no_record(self, store: Storage) -> None:
        """Repairing a retired batch files nothing."""
        retired = retire(store, walked(store, "queued", "failed"))

        ensure_record(store, retired)

        assert filed(store) == {}

    def test_a_version_that_is_none_is_refused(self, store: Storage) -> None:
        """A repair with a batch whose version is no positive int is refused, and files nothing."""
        batch = made(store)

        for version in (0, None, True, "1"):
            with pytest.raises(InvalidValueError):
                ensure_record(store, wrong(batch, version=version, state="testing"))

        assert filed(store) == {"queued": 1}


def unavailable(number: int) -> Fault:
    """Fail before the write of this number, once."""
    seen: list[str] = []

    def fail(call: Call) -> None:
        if call.method in ("update_batches", "put_records", "delete_records", "move_batches"):
            seen.append(call.method)
            if len(seen) == number:
                raise StorageUnavailableError(f"no connection for {call.method}")

    return Fault(before=fail)
