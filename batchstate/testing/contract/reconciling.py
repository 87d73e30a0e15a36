"""Making records agree with their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.errors import CorruptRowError, DanglingRecordError, StorageUnavailableError
from batchstate.listing import list_by_states
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import LINE, LOOP, crowd, everything, filed, lag, made, moved, plant, row, walked
from batchstate.testing.contract.given import record as membership
from batchstate.testing.faults import Crash, Fault, crash_after, record
from batchstate.testing.soundness import leaves
from batchstate.tidying import reconcile, retire
from batchstate.transition import transition

if TYPE_CHECKING:
    from batchstate.errors import BatchStateError
    from batchstate.storage import Storage
    from batchstate.testing.forwarding import Call
    from batchstate.testing.harness import Harness

__all__ = ["Reconciling"]


class Reconciling(Contract):
    """What `reconcile` does."""

    def test_a_record_of_a_state_left_is_replaced(self, store: Storage, plain: Storage) -> None:
        """A batch that a crash left under its old state is filed under its own, and there alone."""
        lag(plain, "queued", "testing")

        done = reconcile(store, LINE.states)

        assert filed(store) == {"testing": 2}
        assert (done.put, done.removed) == (1, 1)

    def test_a_leftover_record_is_removed(self, store: Storage) -> None:
        """A record beside the right one goes, and the right one stays."""
        batch = walked(store, "queued", "testing")
        store.put_records([membership("queued", 1), membership("merging", 2)])

        reconcile(store, LINE.states)

        assert filed(store) == {"testing": 2}
        assert list_by_states(store, ["testing"]) == [batch]

    def test_what_is_right_is_left_alone(self, store: Storage) -> None:
        """Where records and rows agree nothing is written, the first time and the second."""
        for state in ("queued", "testing", "merging"):
            crowd(store, [f"{state}-{number}" for number in range(3)], state)
        before = everything(store)

        assert reconcile(store, LINE.states) == (9, 0, 0)
        assert reconcile(store, LINE.states) == (9, 0, 0)
        assert everything(store) == before

    def test_a_record_of_an_earlier_stay_is_raised(self, store: Storage, plain: Storage) -> None:
        """On a cycle a record of an earlier stay in the present state is raised, so that no late step takes it away."""
        batch = made(plain, state="running")
        moved(plain, batch, "waiting", "running")
        assert filed(store) == {"running": 1}

        reconcile(store, LOOP.states)
        store.delete_records([membership("running", 1)])  # the late step of the first move

        assert filed(store) == {"running": 3}

    def test_put_comes_before_delete(self, opened: Opener, plain: Storage) -> None:
        """The right record is put and acknowledged before the wrong one goes: there is no moment without one."""
        lag(plain, "queued", "testing")
        notes = record()

        reconcile(opened("q", notes), LINE.states)

        assert notes.writes == ["put_records", "delete_records"]

    def test_a_crash_leaves_no_batch_without_a_record(self, store: Storage, opened_steps: Opener) -> None:
        """Wherever a reconciler dies, the batch has a record, and the next one completes it."""
        for number in (1, 2):
            name = f"b-{number}"
            lag(store, "queued", "testing", batch_id=name)
            with pytest.raises(Crash):
                reconcile(opened_steps("q", crash_after(number)), LINE.states)
            assert "testing" in filed(store, name)

            reconcile(store, LINE.states)
            assert filed(store, name) == {"testing": 2}

    def test_a_move_under_way_loses_nothing(self, opened: Opener, store: Storage) -> None:
        """Whatever moves while the reconciler stands between its steps, the batch keeps its record."""
        for method in ("get_batches", "put_records", "delete_records"):
            name = f"b-{method}"
            lag(store, "running", "waiting", batch_id=name)

            def move(call: Call, method: str = method, name: str = name) -> None:
                if call.method == method:
                    batch = row(store, name)
                    transition(store, batch, "running" if batch.state == "waiting" else "waiting")

            reconcile(opened("q", Fault(before=move)), LOOP.states)

            batch = row(store, name)
            assert filed(store, name)[batch.state] == batch.version
            assert batch in list_by_states(store, [batch.state])

    def test_records_of_retired_batches_are_removed(self, store: Storage, opened_steps: Opener) -> None:
        """A record that is left of a retired batch goes, and none is put."""
        batch = made(store, state="failed")
        with pytest.raises(Crash):
            retire(opened_steps("q", crash_after(1)), batch)
        assert filed(store) == {"failed": 1}

        assert reconcile(store, LINE.states) == (1, 0, 1)
        assert filed(store) == {}

    @leaves("dangling record")
    def test_a_dangling_record_is_an_error_and_stays(self, store: Storage, harness: Harness) -> None:
        """A record without a row ends the walk, or is told to who asks for it; it is not removed."""
        made(store)
        harness.lose("q", "b")

        with pytest.raises(DanglingRecordError):
            reconcile(store, LINE.states)
        problems: list[BatchStateError] = []
        assert reconcile(store, LINE.states, on_problem=problems.append) == (1, 0, 0)

        assert [type(problem) for problem in problems] == [DanglingRecordError]
        assert filed(store) == {"queued": 1}

    @leaves("unreadable row")
    def test_a_row_that_cannot_be_read_is_an_error_and_stays(self, store: Storage, harness: Harness) -> None:
        """A row that cannot be read ends the walk, or is told to who asks for it; the others are mended."""
        plant(harness, made(store, "broken"), requests="[")
        lag(store, "queued", "testing")

        with pytest.raises(CorruptRowError) as caught:
            reconcile(store, LINE.states)
        assert caught.value.key == "broken"
        problems: list[BatchStateError] = []
        reconcile(store, LINE.states, on_problem=problems.append)

        assert [type(problem) for problem in problems] == [CorruptRowError]
        assert filed(store, "broken") == {"queued": 1}
        assert filed(store) == {"testing": 2}

    def test_a_store_that_cannot_be_reached_leaves_what_was_mended(self, opened: Opener, plain: Storage) -> None:
        """A failure is raised, and another call mends the rest."""
        lag(plain, "queued", "testing")

        def fail(call: Call) -> None:
            if call.method == "delete_records":
                raise StorageUnavailableError(call.method)

        with pytest.raises(StorageUnavailableError):
            reconcile(opened("q", Fault(before=fail)), LINE.states)
        assert "testing" in filed(plain)

        reconcile(opened(), LINE.states)
        assert filed(plain) == {"testing": 2}

    @leaves("stale record", "unfiled batch")
    def test_only_the_states_given_are_walked(self, store: Storage, plain: Storage) -> None:
        """The records of other states are not looked at."""
        lag(plain, "queued", "testing")

        assert reconcile(store, ["merging"]).looked == 0
        assert filed(store) == {"queued": 1}

    def test_many_records_are_mended_in_one_go(self, store: Storage, harness: Harness) -> None:
        """However many batches a crash left behind, one call mends them all."""
        count = min(harness.scale, 1_200)
        crowd(store, [f"b-{number:06}" for number in range(count)])
        wrong = [membership("testing", 1, f"b-{number:06}") for number in range(count)]
        store.put_records(wrong)
        store.delete_records([membership("queued", 1, f"b-{number:06}") for number in range(count)])

        done = reconcile(store, LINE.states)

        assert (done.put, done.removed) == (count, count)
        assert len(list_by_states(store, ["queued"])) == count
