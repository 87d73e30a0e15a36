"""The compare-and-swap of rows, alone and as a whole move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import attrs
import pytest

from batchstate.errors import (
    InvalidTransitionError,
    InvalidValueError,
    NotFoundError,
    QueueMismatchError,
    VersionMismatchError,
)
from batchstate.storage import AtomicMoves, Outcome, Storage, Swap
from batchstate.testing.contract.base import Contract
from batchstate.testing.contract.given import filed, made, marked, moved, new, record, row, swap, walked
from batchstate.testing.soundness import leaves

__all__ = ["Marks", "Swaps", "WholeMoves"]

Write: TypeAlias = Callable[[Sequence[Swap]], list[Outcome]]


class _EitherWrite(Contract):
    @pytest.fixture(params=["update_batches", "move_batches"])
    def write(self, request: pytest.FixtureRequest, plain: Storage) -> Write:
        """Give the method that swaps rows, and then the one that moves batches as a whole."""
        if request.param == "move_batches" and not isinstance(plain, AtomicMoves):
            pytest.skip("it moves in three steps")
        return cast("Write", getattr(plain, request.param))


class Swaps(_EitherWrite):
    """What `update_batches`, and the row's part of `move_batches`, do."""

    @leaves("stale record", "unfiled batch")
    def test_a_swap_at_the_rows_version_is_applied(self, write: Write, plain: Storage) -> None:
        """A swap whose `before` is the row's version writes `after`, all of it."""
        batch = made(plain, size=3, old=True)
        step = swap(batch, "testing", attributes={"size": 4}, updated_at=9)

        assert write([step]) == [None]

        stored = row(plain)
        assert stored == step.after
        assert (stored.version, stored.entered, stored.attributes, stored.updated_at) == (2, 2, {"size": 4}, 9)
        assert stored.marks == step.after.marks
        assert stored.history == step.after.history

    @leaves("stale record", "unfiled batch")
    def test_a_swap_at_another_version_is_refused(self, write: Write, plain: Storage) -> None:
        """A swap from a version that the row has left is refused with the row that was met, which stays."""
        batch = made(plain)
        current = moved(plain, batch, "testing", "merging")

        [outcome] = write([swap(batch, "testing")])

        assert isinstance(outcome, VersionMismatchError)
        assert (outcome.batch_id, outcome.expected, outcome.actual) == ("b", 1, 3)
        assert outcome.current == current
        assert outcome.retryable
        assert row(plain) == current

    def test_a_swap_from_a_version_to_come_is_refused(self, write: Write, plain: Storage) -> None:
        """A swap from a version that the row has not reached is refused, and surely was not applied."""
        batch = made(plain)

        [outcome] = write([swap(attrs.evolve(batch, version=5), "testing")])

        assert isinstance(outcome, VersionMismatchError)
        assert (outcome.expected, outcome.actual, outcome.applied) == (5, 1, False)
        assert row(plain) == batch

    def test_a_swap_of_an_absent_row_is_not_found(self, write: Write, plain: Storage) -> None:
        """A swap of a row that is not there is answered with `NotFoundError`, and makes none."""
        [outcome] = write([swap(marked(new()), "testing")])

        assert isinstance(outcome, NotFoundError)
        assert not outcome.retryable
        assert plain.get_batches(["b"]) == {}
        assert filed(plain) == {}

    @leaves("stale record", "unfiled batch")
    def test_of_two_swaps_from_one_version_one_is_applied(self, write: Write, plain: Storage) -> None:
        """Of two swaps from one version the first is applied; the second is refused, retryably, and changes nothing."""
        batch = moved(plain, made(plain), "testing", "merging")
        ours, theirs = swap(batch, "merged", attributes={"by": 1}), swap(batch, "failed", attributes={"by": 2})

        assert write([ours]) == [None]
        [outcome] = write([theirs])

        assert isinstance(outcome, VersionMismatchError)
        assert outcome.retryable
        assert outcome.applied is False
        assert (row(plain).version, row(plain).attributes) == (4, {"by": 1})

    @leaves("stale record", "unfiled batch")
    def test_what_the_winner_removed_stays_removed(self, write: Write, plain: Storage) -> None:
        """A loser that still holds what the winner removed does not bring it back."""
        batch = made(plain, x=1, y=2)
        write([swap(batch, "testing", attributes={"y": 2})])

        [outcome] = write([swap(batch, "testing", attributes={"x": 1, "y": 3})])

        assert isinstance(outcome, VersionMismatchError)
        assert row(plain).attributes == {"y": 2}

    @leaves("stale record", "unfiled batch")
    def test_the_requests_stay_as_they_are_stored(self, write: Write, plain: Storage) -> None:
        """A swap with other requests or another date of creation writes all the rest."""
        batch = made(plain)

        assert write([swap(batch, "testing", request_ids=("x",), created_at=5, attributes={"n": 1})]) == [None]

        stored = row(plain)
        assert stored.request_ids == batch.request_ids
        assert stored.created_at == batch.created_at
        assert (stored.version, stored.attributes) == (2, {"n": 1})

    @leaves("stale record", "unfiled batch")
    def test_a_swap_leads_to_the_next_version_only(self, plain: Storage) -> None:
        """No swap can be made that lowers a version, skips one, or changes the batch's name."""
        batch = moved(plain, made(plain), "testing", "merging")

        for fields in ({"version": 2}, {"version": 3}, {"version": 5}, {"id": "c"}, {"queue": "other"}):
            with pytest.raises(InvalidValueError):
                swap(batch, "merged", **fields)

    @leaves("record of a retired batch")
    def test_a_retired_row_accepts_no_swap(self, write: Write, plain: Storage) -> None:
        """A swap of a retired row is refused, also from its very version and mark."""
        batch = made(plain)
        retiring = swap(batch, "queued", retired_at=7)
        assert write([retiring]) == [None]

        [outcome] = write([swap(attrs.evolve(retiring.after, retired_at=None), "testing")])

        assert isinstance(outcome, InvalidTransitionError)
        assert row(plain) == retiring.after

    @leaves("record of a retired batch")
    def test_a_swap_that_retires_files_the_row_among_the_retired(self, write: Write, plain: Storage) -> None:
        """As soon as a swap that retires is seen, the row is among the retired."""
        batch = made(plain)
        assert list(plain.list_retired().items) == []

        write([swap(batch, "queued", retired_at=7)])

        assert list(plain.list_retired().items) == [row(plain)]

    @leaves("stale record", "unfiled batch")
    def test_swaps_of_one_call_are_applied_in_the_order_given(self, write: Write, plain: Storage) -> None:
        """Swaps of one row in one call are applied one after the other: all of a chain, of rivals the first."""
        batch = made(plain)
        first = swap(batch, "testing")
        second = swap(first.after, "merging")
        third = swap(second.after, "merged")
        rival = swap(second.after, "failed")

        outcomes = write([first, second, third, rival])

        assert outcomes[:3] == [None, None, None]
        assert isinstance(outcomes[3], VersionMismatchError)
        assert row(plain) == third.after

    @leaves("stale record", "unfiled batch")
    def test_each_swap_has_its_own_outcome(self, write: Write, plain: Storage) -> None:
        """Of many swaps each is answered in its place, and one that is refused costs the others nothing."""
        good, late, bad, far = (made(plain, name) for name in ("good", "late", "bad", "far"))
        current = moved(plain, late, "testing")

        outcomes = write(
            [
                swap(marked(new("absent")), "testing"),
                swap(late, "testing"),
                swap(bad, "testing", attributes={"n": float("inf")}),
                swap(marked(new("q2", queue="other")), "testing"),
                swap(far, "testing", state="a\nb"),
                swap(good, "testing"),
            ]
        )

        assert [type(outcome) for outcome in outcomes[:3]] == [NotFoundError, VersionMismatchError, InvalidValueError]
        assert isinstance(outcomes[3], QueueMismatchError)
        assert isinstance(outcomes[4], InvalidValueError)
        assert outcomes[5] is None
        assert [row(plain, name).version for name in ("good", "late", "bad", "far")] == [2, 2, 1, 1]
        assert row(plain, "late") == current

    def test_a_swap_without_a_mark_is_refused(self, write: Write, plain: Storage) -> None:
        """A swap whose `after` carries no mark of its version is refused: the row could not tell its re-send."""
        batch = made(plain)

        [outcome] = write([swap(batch, "testing", memory=batch.memory)])

        assert isinstance(outcome, InvalidValueError)
        assert row(plain) == batch

    def test_no_swaps_are_answered_with_nothing(self, write: Write) -> None:
        """Swapping none answers none."""
        assert write([]) == []


class Marks(_EitherWrite):
    """How a re-sent write is told from a lost race, and one history from another."""

    @leaves("stale record", "unfiled batch")
    def test_a_swap_sent_twice_is_applied_once(self, write: Write, plain: Storage) -> None:
        """A swap that comes again is answered as done and changes nothing."""
        step = swap(made(plain), "testing")

        assert write([step]) == [None]
        assert write([step]) == [None]
        assert write([step, step]) == [None, None]

        assert row(plain) == step.after

    @leaves("stale record", "unfiled batch")
    def test_a_swap_sent_again_after_others_moved_on_is_still_known(self, write: Write, plain: Storage) -> None:
        """A row remembers its last eight writes, and answers each of them as done when it comes again."""
        step = swap(made(plain), "testing")
        assert write([step]) == [None]
        current = step.after
        for following in range(7):
            current = moved(plain, current, "merging" if following % 2 else "testing")

            assert write([step]) == [None]
            assert row(plain) == current

    @leaves("stale record", "unfiled batch")
    def test_a_swap_sent_again_too_late_is_no_more_known(self, write: Write, plain: Storage) -> None:
        """After eight writes more, a re-send is refused with `applied` unknown, and changes nothing."""
        step = swap(made(plain), "testing")
        assert write([step]) == [None]
        current = moved(plain, step.after, *["testing"] * 8)

        [outcome] = write([step])

        assert isinstance(outcome, VersionMismatchError)
        assert outcome.applied is None
        assert outcome.actual == 10
        assert row(plain) == current

    @leaves("stale record", "unfiled batch")
    def test_a_lost_race_is_known_for_one_as_long_as_the_row_remembers(self, write: Write, plain: Storage) -> None:
        """`applied` is `False` while the row remembers another's write at the version we wanted, then `None`."""
        batch = made(plain)
        current = moved(plain, batch, "testing")
        known = []
        for _ in range(9):
            [outcome] = write([swap(batch, "failed")])
            assert isinstance(outcome, VersionMismatchError)
            known.append(outcome.applied)
            current = moved(plain, current, "testing")

        assert known == [False] * 8 + [None]

    @leaves("stale record", "unfiled batch")
    def test_a_row_remembers_eight_writes(self, write: Write, plain: Storage) -> None:
        """The row keeps the versions and marks of its last eight writes, each mark another."""
        current = made(plain)
        for _ in range(12):
            step = swap(current, "testing")
            assert write([step]) == [None]
            current = row(plain)

        kept = [item.split(":") for item in current.marks.split(" ")]
        assert [int(version) for version, _ in kept] == [6, 7, 8, 9, 10, 11, 12, 13]
        assert len({mark for _, mark in kept}) == 8

    @leaves("stale record", "unfiled batch")
    def test_another_history_at_the_same_version_is_refused(self, write: Write, plain: Storage) -> None:
        """A row at the expected version by another mark is another's: a failover lost acknowledged writes."""
        batch = made(plain)
        lost = swap(batch, "testing").after  # was acknowledged, and is no more
        current = moved(plain, batch, "testing")
        assert lost.version == current.version

        [outcome] = write([swap(lost, "merging")])

        assert isinstance(outcome, VersionMismatchError)
        assert outcome.applied is False
        assert outcome.current == current
        assert outcome.actual is None
        assert row(plain) == current

    @leaves("stale record", "unfiled batch")
    def test_without_a_mark_the_version_alone_decides(self, write: Write, plain: Storage) -> None:
        """A `before` that was not read from a store knows no mark, and is compared by version."""
        made(plain)

        assert write([swap(new(), "testing")]) == [None]
        assert row(plain).version == 2

    @leaves("stale record", "unfiled batch")
    def test_a_refusal_never_contradicts_itself(self, write: Write, plain: Storage) -> None:
        """The version that a refusal names is the one the compare met, and never the one that was expected."""
        batch = made(plain)
        current = batch
        for _ in range(10):
            current = moved(plain, current, "testing")
            [outcome] = write([swap(batch, "testing")])

            assert isinstance(outcome, VersionMismatchError)
            assert outcome.actual == current.version != outcome.expected


class WholeMoves(Contract):
    """What `move_batches` does beside the swap, where a storage has it."""

    @pytest.fixture
    def moving(self, plain: Storage) -> AtomicMoves:
        """Give a storage that moves as a whole."""
        if not isinstance(plain, AtomicMoves):
            pytest.skip("it moves in three steps")
        return plain

    def test_records_move_in_the_same_step(self, moving: AtomicMoves, plain: Storage) -> None:
        """A move files the record of the new state and removes the old one."""
        step = swap(made(plain), "testing")

        assert moving.move_batches([step]) == [None]
        assert filed(plain) == {"testing": 2}

    def test_a_move_into_the_present_state_keeps_the_record(self, moving: AtomicMoves, plain: Storage) -> None:
        """A move into the present state files its record anew and removes none."""
        assert moving.move_batches([swap(made(plain), "queued")]) == [None]
        assert filed(plain) == {"queued": 2}

    @leaves("record of a retired batch", "stale record", "unfiled batch")
    def test_a_refused_move_touches_no_record(self, moving: AtomicMoves, plain: Storage) -> None:
        """Where a swap is refused, its records are as they were."""
        batch = made(plain)
        moved(plain, batch, "merging")
        retired = swap(made(plain, "c"), "queued", retired_at=5)
        assert plain.update_batches([retired]) == [None]

        outcomes = moving.move_batches(
            [swap(batch, "testing"), swap(attrs.evolve(retired.after, retired_at=None), "testing")]
        )

        assert [type(outcome) for outcome in outcomes] == [VersionMismatchError, InvalidTransitionError]
        assert filed(plain) == {"queued": 1}
        assert filed(plain, "c") == {"queued": 1}

    def test_a_move_sent_again_completes_the_records(self, moving: AtomicMoves, plain: Storage) -> None:
        """A move whose row is swapped already, by its own first try, files and removes the records."""
        step = swap(made(plain), "testing")
        assert plain.update_batches([step]) == [None]

        assert moving.move_batches([step]) == [None]
        assert filed(plain) == {"testing": 2}

    @leaves("stale record")
    def test_a_move_removes_no_record_above_its_version(self, moving: AtomicMoves, plain: Storage) -> None:
        """A move sent again when the batch is back in the old state leaves the record of that later stay."""
        first = swap(made(plain), "testing")
        assert moving.move_batches([first]) == [None]
        back = swap(first.after, "queued")
        assert moving.move_batches([back]) == [None]

        assert moving.move_batches([first]) == [None]
        assert filed(plain)["queued"] == 3

    def test_a_move_lowers_no_record(self, moving: AtomicMoves, plain: Storage) -> None:
        """A move sent again when the batch has come to the new state anew leaves the higher record."""
        first = swap(made(plain), "testing")
        assert moving.move_batches([first]) == [None]
        current = moved(plain, first.after, "queued", "testing")
        assert plain.put_records([record("testing", current.version)]) == [None]

        assert moving.move_batches([first]) == [None]
        assert filed(plain)["testing"] == 4

    def test_a_chain_of_moves_in_one_call(self, moving: AtomicMoves, plain: Storage) -> None:
        """Moves of one batch in one call are done in the order given, records included."""
        first = swap(made(plain), "testing")
        second = swap(first.after, "merging")
        third = swap(second.after, "testing")

        assert moving.move_batches([first, second, third]) == [None] * 3
        assert filed(plain) == {"testing": 4}

    def test_a_whole_move_and_three_steps_end_alike(self, plain: Storage, steps: Storage) -> None:
        """A batch that is moved as a whole and one that is moved in three steps have the same records."""
        walked(plain, "queued", "testing", "merging", batch_id="whole")
        walked(steps, "queued", "testing", "merging", batch_id="steps")

        assert filed(plain, "whole") == filed(plain, "steps") == {"merging": 3}
