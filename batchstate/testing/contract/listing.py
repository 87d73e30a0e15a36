"""Listing batches by state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from batchstate.creation import create_many
from batchstate.entities import Batch
from batchstate.errors import (
    CorruptRowError,
    DanglingRecordError,
    InvalidLifecycleError,
    InvalidValueError,
    UnsupportedFormatError,
)
from batchstate.listing import iter_by_states, list_by_states
from batchstate.storage import SnapshotListing
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import LINE, LOOP, crowd, filed, lag, made, new, plant, row, swap, walked
from batchstate.testing.contract.given import record as membership
from batchstate.testing.faults import Fault, record
from batchstate.testing.soundness import leaves
from batchstate.tidying import purge, retire
from batchstate.transition import transition

if TYPE_CHECKING:
    from batchstate.errors import BatchStateError
    from batchstate.storage import Storage
    from batchstate.testing.forwarding import Call
    from batchstate.testing.harness import Harness

__all__ = ["Listing", "ListingProblems", "ListingWhileBatchesMove"]


class Listing(Contract):
    """What `list_by_states` answers."""

    def test_batches_are_listed_whose_state_was_asked_for(self, store: Storage) -> None:
        """The batches in the states asked for are listed, each once, and no others."""
        queued, testing = made(store, "a"), walked(store, "queued", "testing", batch_id="b")
        made(store, "c", "merging")

        assert list_by_states(store, ["queued"]) == [queued]
        assert list_by_states(store, ["queued", "testing"]) == [queued, testing]
        assert list_by_states(store, ["failed"]) == []
        assert list_by_states(store, []) == []

    @leaves("stale record")
    def test_the_row_decides_and_never_the_bucket(self, store: Storage) -> None:
        """A batch is listed under its own state alone, whatever states it is filed under."""
        batch = made(store)
        store.put_records([membership(state, 9) for state in ("testing", "merging", "failed")])

        assert list_by_states(store, ["queued", "testing", "merging"]) == [batch]
        assert list_by_states(store, ["testing", "merging"]) == []
        assert list_by_states(store, ["failed"]) == []

    def test_the_order_of_a_listing(self, store: Storage) -> None:
        """Batches come by state, in the lifecycle's order or else as asked, and by ID within a state."""
        for state, names in {"queued": ["b"], "testing": ["a", "é", "B"], "merged": ["9", "10"]}.items():
            crowd(store, names, state)
        asked = ["merged", "testing", "queued"]

        assert [batch.id for batch in list_by_states(store, asked, lifecycle=LINE)] == ["b", "B", "a", "é", "10", "9"]
        assert [batch.id for batch in list_by_states(store, asked)] == ["10", "9", "B", "a", "é", "b"]

    def test_the_order_is_the_same_each_time(self, store: Storage, harness: Harness) -> None:
        """Batches created in one instant come in the same order as often as one asks."""
        create_many(store, [new(name) for name in ("c", "a", "d", "b")], clock=harness.clock)

        for _ in range(20):
            assert [batch.id for batch in list_by_states(store, ["queued"])] == ["a", "b", "c", "d"]

    def test_a_state_asked_for_twice_is_read_once(self, opened: Opener) -> None:
        """Asking for a state twice reads its bucket once and lists its batches once."""
        notes = record()
        store = opened("q", notes)
        batch = made(store)

        assert list_by_states(store, ["queued", "queued"]) == [batch]
        reads = [call.args[0] for call in notes.calls if call.method in ("list_records", "list_records_of")]
        assert reads in (["queued"], [("queued",)], [["queued"]])

    @leaves("stale record")
    def test_each_candidate_is_loaded_once(self, opened: Opener) -> None:
        """A batch that is filed under several of the states is loaded by one key in one call."""
        notes = record()
        store = opened("q", notes)
        for name in ("a", "b"):
            made(store, name)
        store.put_records([membership(state, 2, name) for state in ("testing", "merging") for name in ("a", "b")])

        listed = list_by_states(store, ["queued", "testing", "merging"])

        loaded = [batch_id for call in notes.calls if call.method == "get_batches" for batch_id in call.args[0]]
        assert [batch.id for batch in listed] == ["a", "b"]
        for call in notes.calls:
            if call.method == "get_batches":
                assert len(call.args[0]) == len(set(call.args[0]))
        assert set(loaded) == {"a", "b"}

    def test_what_was_acknowledged_is_listed_at_once(self, opened: Opener) -> None:
        """A move that one storage has acknowledged is listed at once by every other."""
        first, second = opened(), opened()
        batch = made(first)
        for state in ("testing", "merging", "testing", "failed"):
            batch = transition(first, batch, state)
            assert list_by_states(second, [state]) == [batch]

    @leaves("record of a retired batch")
    def test_retired_batches_are_not_listed(self, store: Storage, plain: Storage) -> None:
        """A retired batch is not listed, not even while the record of its last state is there."""
        assert plain.update_batches([swap(made(store), "failed", retired_at=7)]) == [None]
        assert plain.update_batches([swap(made(store, "same", "failed"), "failed", retired_at=7)]) == [None]
        assert (filed(store), filed(store, "same")) == ({"queued": 1}, {"failed": 1})

        assert list_by_states(store, LINE.states, lifecycle=LINE) == []
        assert list(iter_by_states(store, LINE.states, lifecycle=LINE)) == []

    @pytest.mark.parametrize(
        ("states", "fields", "error"),
        [
            (["nowhere"], {"lifecycle": LINE}, InvalidValueError),
            ("queued", {}, InvalidValueError),
            (["queued"], {"complete": True}, InvalidLifecycleError),
        ],
        ids=["unknown state", "a text", "complete without lifecycle"],
    )
    def test_a_question_that_makes_no_sense_is_refused_before_any_call(
        self, opened: Opener, states: list[str], fields: dict[str, Any], error: type[Exception]
    ) -> None:
        """A listing of unknown states, or one that needs a lifecycle and has none, is refused at the call."""
        notes = record()
        store = opened("q", notes)

        with pytest.raises(error):
            list_by_states(store, states, **fields)
        with pytest.raises(error):
            iter_by_states(store, states, **fields)
        assert notes.methods == []

    def test_a_large_listing_is_whole(self, store: Storage, harness: Harness) -> None:
        """However many batches a state has, all are listed, in order, past any page or limit."""
        ids = [f"b-{number:06}" for number in range(harness.scale)]
        crowd(store, ids[::-1])

        assert [batch.id for batch in list_by_states(store, ["queued"])] == ids
        assert sorted(batch.id for batch in iter_by_states(store, ["queued"])) == ids

    def test_many_rows_are_loaded_in_one_call(self, plain: Storage, harness: Harness) -> None:
        """However many IDs are asked for in one call, with duplicates and absent ones among them, all rows come."""
        ids = [f"b-{number:06}" for number in range(harness.scale)]
        crowd(plain, ids)

        loaded = plain.get_batches([*ids, *ids[:10], *[f"absent-{number}" for number in range(harness.scale)]])

        assert sorted(loaded) == ids
        assert all(isinstance(batch, Batch) and batch.id == name for name, batch in loaded.items())


class ListingProblems(Contract):
    """What a listing does with records and rows that are wrong."""

    @leaves("dangling record")
    def test_a_record_without_a_row_is_an_error(self, store: Storage, harness: Harness) -> None:
        """A record that names a batch without a row is told of by both names: rows were lost."""
        made(store, "good")
        made(store, "lost")
        harness.lose("q", "lost")

        for look in (list_by_states, lambda *args: list(iter_by_states(*args))):
            with pytest.raises(DanglingRecordError) as caught:
                look(store, ["queued"])
            assert (caught.value.state, caught.value.batch_id) == ("queued", "lost")
            assert not caught.value.retryable

    @leaves("unreadable row")
    def test_a_row_that_cannot_be_read_is_an_error(self, store: Storage, harness: Harness) -> None:
        """A row that is not what batchstate writes is told of by its ID, and never skipped silently."""
        made(store, "good")
        broken = made(store, "broken")
        for name, fields in CORRUPT.items():
            plant(harness, broken, **fields)

            for look in (list_by_states, lambda *args: list(iter_by_states(*args))):
                with pytest.raises(CorruptRowError) as caught:
                    look(store, ["queued"])
                assert caught.value.key == "broken", name
            found = store.get_batches(["good", "broken"])
            assert isinstance(found["broken"], CorruptRowError), name
            assert isinstance(found["good"], Batch)

    @leaves("unreadable row")
    def test_a_row_of_a_newer_format_is_an_error(self, store: Storage, harness: Harness) -> None:
        """A row that a newer program wrote is told of as such, and says to upgrade."""
        plant(harness, made(store), format=2)

        with pytest.raises(UnsupportedFormatError, match=r"'b'.*format 2.*upgrade"):
            list_by_states(store, ["queued"])
        assert isinstance(store.get_batches(["b"])["b"], UnsupportedFormatError)

    @leaves("unreadable row")
    def test_no_write_touches_what_cannot_be_read(self, store: Storage, harness: Harness) -> None:
        """A row that cannot be read is neither swapped nor created over; it is left as it is."""
        broken, newer = made(store, "broken"), made(store, "newer")
        plant(harness, broken, attributes="{", version=5)
        plant(harness, newer, format=2, version=5)

        for batch, error in ((broken, CorruptRowError), (newer, UnsupportedFormatError)):
            with pytest.raises(error):
                transition(store, batch, "testing")
            [outcome] = create_many(store, [new(batch.id)])
            assert isinstance(outcome, error)
            assert isinstance(store.get_batches([batch.id])[batch.id], error)

    @leaves("dangling record", "unreadable row")
    def test_an_inspector_sees_the_good_ones_and_is_told_of_the_others(self, store: Storage, harness: Harness) -> None:
        """With `on_problem` the good batches are listed, and each problem is told of once for each look."""
        good = [made(store, "a"), made(store, "z")]
        for name in ("broken", "lost", "newer"):
            made(store, name)
        plant(harness, row(store, "broken"), attributes="[]")
        plant(harness, row(store, "newer"), format=9)
        harness.lose("q", "lost")

        for look in (list_by_states, iter_by_states):
            problems: list[BatchStateError] = []
            found = look(store, ["queued"], on_problem=problems.append)
            assert sorted(found, key=lambda batch: batch.id) == good
            assert sorted(type(problem).__name__ for problem in problems) == [
                "CorruptRowError", "DanglingRecordError", "UnsupportedFormatError",
            ]  # fmt: skip

    def test_a_batch_purged_while_it_is_listed_is_no_problem(self, opened: Opener, harness: Harness) -> None:
        """A batch that is purged between the reading of its record and of its row is left out, without an alarm."""
        for method in ("get_batches", "get_records"):
            store = opened()
            kept = made(store, "kept", "failed")
            batch = made(store, "gone", "failed")
            done: list[str] = []

            def purging(call: Call, method: str = method, done: list[str] = done, batch: Batch = batch) -> None:
                if call.method == method and not done:
                    done.append(method)
                    retire(opened(), batch, clock=harness.clock)
                    purge(opened(), LINE.states, older_than=0, clock=harness.clock)

            for look in (list_by_states, lambda *args: list(iter_by_states(*args))):
                listed = look(opened("q", Fault(before=purging)), ["failed"])
                assert [found.id for found in listed if found.id != "gone"] == [kept.id]


CORRUPT: dict[str, dict[str, object]] = {
    "attributes that are no JSON": {"attributes": "{'a': 1"},
    "attributes that are no object": {"attributes": "[1]"},
    "no attributes": {"attributes": ""},
    "requests that are no JSON": {"requests": "r-1"},
    "requests that are no list": {"requests": '{"r": 1}'},
    "requests that are no names": {"requests": "[1, null]"},
    "version 0": {"version": 0},
    "a negative version": {"version": -3},
    "entered 0": {"entered": 0},
    "no state": {"state": ""},
    "no marks": {"marks": ""},
    "format 0": {"format": 0},
}
"""Rows that nobody of ours writes."""


class ListingWhileBatchesMove(Contract):
    """What a listing never misses."""

    @leaves("stale record", "unfiled batch")
    def test_complete_finds_a_batch_whose_record_is_behind(self, store: Storage, plain: Storage) -> None:
        """Between swap and put a batch is filed under an earlier state; `complete` reads that bucket too."""
        behind = lag(plain, "queued", "testing", "merging")

        assert list_by_states(store, ["merging"], lifecycle=LINE) == []
        assert list_by_states(store, ["merging"], lifecycle=LINE, complete=True) == [behind]
        assert list(iter_by_states(store, ["merging"], lifecycle=LINE, complete=True)) == [behind]

    def test_complete_lists_no_other_states(self, store: Storage) -> None:
        """With `complete` more buckets are read, and the same states listed."""
        made(store, "a"), made(store, "b", "testing")
        merging = made(store, "c", "merging")

        assert list_by_states(store, ["merging"], lifecycle=LINE, complete=True) == [merging]
        assert list(iter_by_states(store, ["merging"], lifecycle=LINE, complete=True)) == [merging]

    def test_complete_reads_what_can_precede_and_nothing_else(self, opened: Opener) -> None:
        """The buckets read are those of the states asked for and of all that lead to them, old before new."""
        notes = record()

        list_by_states(opened("q", notes), ["merging"], lifecycle=LINE, complete=True)

        read = [
            state
            for call in notes.calls
            for state in (call.args[0] if call.method == "list_records_of" else [call.args[0]])
        ]
        assert read == ["queued", "testing", "merging"]

    @pytest.mark.parametrize("fused", [True, False], ids=["moved as a whole", "moved in three steps"])
    def test_a_batch_that_moves_forward_is_never_missed(
        self, opened: Opener, opened_plain: Opener, steps: Storage, *, fused: bool
    ) -> None:
        """Whenever during a listing of all it can pass a batch moves on, it is listed once, in one of its states."""
        mover = opened_plain() if fused else steps
        journey = ["testing", "merging", "merged"]
        for start in range(1, 9):
            for pace in (1, 2, 3):
                name = f"b-{start}-{pace}"
                made(mover, name)
                reads: list[str] = []
                behind = list(journey)

                def move(
                    call: Call,
                    name: str = name,
                    start: int = start,
                    pace: int = pace,
                    reads: list[str] = reads,
                    behind: list[str] = behind,
                ) -> None:
                    reads.append(call.method)
                    if len(reads) >= start:
                        for _ in range(min(pace, len(behind))):
                            transition(mover, row(mover, name), behind.pop(0))

                for look in (list_by_states, iter_by_states):
                    asked = opened("q", Fault(before=move))
                    listed = [found.id for found in look(asked, LINE.states, lifecycle=LINE)]
                    assert set(listed) >= {name}, (start, pace)
                    assert look is iter_by_states or listed.count(name) == 1

    def test_a_batch_on_a_cycle_is_not_missed_for_one_move(self, opened: Opener, opened_plain: Opener) -> None:
        """Where the states read lie on a cycle, a batch is not missed if at most one move falls within the listing."""
        mover = opened_plain()
        for start in range(1, 9):
            for source, to in (("running", "waiting"), ("waiting", "running")):
                name = f"b-{start}-{source}"
                made(mover, name, source)
                reads: list[str] = []

                def move(
                    call: Call, name: str = name, to: str = to, start: int = start, reads: list[str] = reads
                ) -> None:
                    reads.append(call.method)
                    if len(reads) == start:
                        transition(mover, row(mover, name), to)

                for look in (list_by_states, iter_by_states):
                    reads.clear()
                    if row(mover, name).state == to:
                        transition(mover, row(mover, name), source)
                    listed = look(opened("q", Fault(before=move)), ["running", "waiting"], lifecycle=LOOP)
                    assert name in [found.id for found in listed], (start, source)

    def test_a_snapshot_misses_no_batch_however_it_moves(self, opened_plain: Opener) -> None:
        """Where the storage reads all buckets in one snapshot, a batch is not missed however often it goes round."""
        mover = opened_plain()
        if not isinstance(mover, SnapshotListing):
            pytest.skip("it has no snapshots")
        for start in ("running", "waiting"):
            made(mover, start, start)

        def move(_call: Call) -> None:
            for name in ("running", "waiting"):
                batch = row(mover, name)
                transition(mover, batch, "running" if batch.state == "waiting" else "waiting")

        for _ in range(4):
            listed = list_by_states(opened_plain("q", Fault(before=move)), ["running", "waiting"], lifecycle=LOOP)
            assert sorted(batch.id for batch in listed) == ["running", "waiting"]

    def test_what_is_listed_of_a_moving_batch_is_one_of_its_rows(self, opened: Opener, opened_plain: Opener) -> None:
        """A batch that moves during a listing is listed as one of its versions, in one of the states asked for."""
        mover = opened_plain()
        versions = [made(mover)]

        def move(call: Call) -> None:
            if len(versions) < 3 and call.method in ("list_records", "list_records_of", "get_batches"):
                versions.append(transition(mover, versions[-1], LINE.states[len(versions)]))

        listed = list_by_states(opened("q", Fault(before=move)), LINE.states, lifecycle=LINE)

        assert len(listed) == 1
        assert listed[0] in versions
        assert filed(mover) == {versions[-1].state: versions[-1].version}
