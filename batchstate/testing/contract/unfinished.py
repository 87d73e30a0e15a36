"""What a move leaves that does not come to its end, and its repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.errors import (
    InvalidValueError,
    StorageUnavailableError,
    TransitionIncompleteError,
    VersionMismatchError,
)
from batchstate.listing import list_by_states
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import everything, filed, made, moved, row, walked, wrong
from batchstate.testing.contract.given import record as membership
from batchstate.testing.faults import Crash, Fault, crash_after, drop_reply, record
from batchstate.testing.soundness import leaves
from batchstate.tidying import retire
from batchstate.transition import ensure_record, transition

if TYPE_CHECKING:
    from batchstate.storage import Storage
    from batchstate.testing.forwarding import Call

__all__ = ["Repair", "UnfinishedTransitions"]


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

    @leaves("stale record")
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

    def test_a_retired_batch_gets_no_record(self, opened: Opener) -> None:
        """Repairing a retired batch files nothing, and does not even try."""
        retired = retire(opened(), walked(opened(), "queued", "failed"))
        notes = record()

        ensure_record(opened("q", notes), retired)

        assert notes.writes == []
        assert filed(opened()) == {}

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
