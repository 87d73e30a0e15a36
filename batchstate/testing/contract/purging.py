"""Deleting what was retired long ago."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import pytest

from batchstate.creation import create_batch
from batchstate.errors import (
    CorruptRowError,
    InvalidTransitionError,
    InvalidValueError,
    StorageUnavailableError,
    VersionMismatchError,
)
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import (
    LINE,
    associated,
    crowd,
    everything,
    filed,
    made,
    new,
    plant,
    row,
    swap,
    walked,
)
from batchstate.testing.contract.given import record as membership
from batchstate.testing.faults import Fault, record, resend
from batchstate.testing.soundness import leaves
from batchstate.tidying import purge, retire
from batchstate.transition import transition

if TYPE_CHECKING:
    from batchstate.entities import Batch
    from batchstate.errors import BatchStateError
    from batchstate.storage import Storage
    from batchstate.testing.forwarding import Call
    from batchstate.testing.harness import Harness

__all__ = ["Deleting", "Purging"]

NOTHING: dict[str, object] = {"batches": [], "records": [], "associations": []}


class Purging(Contract):
    """What `purge` does."""

    def test_nothing_is_left_of_a_purged_batch(self, store: Storage, harness: Harness) -> None:
        """Row, records and associations of a batch retired long enough ago are gone."""
        retired_at_once(store, harness, "b")
        harness.clock.advance("15d")

        assert purge(store, LINE.states, clock=harness.clock) == (1, False)

        assert everything(store) == NOTHING
        assert find_by_request_id(store, "r-1") == ((), 0)
        assert list(store.list_retired().items) == []

    def test_what_was_retired_lately_stays(self, store: Storage, harness: Harness) -> None:
        """A batch goes when `older_than` has passed since its retirement, to the millisecond, and not before."""
        retired = retired_at_once(store, harness, "b")
        harness.clock.advance("14d")
        assert purge(store, LINE.states, clock=harness.clock) == (0, False)
        harness.clock.advance(86_400 - 0.001)
        assert purge(store, LINE.states, older_than="15d", clock=harness.clock) == (0, False)
        assert row(store) == retired

        harness.clock.advance("1ms")
        assert purge(store, LINE.states, clock=harness.clock) == (1, False)

    def test_what_is_not_retired_stays(self, store: Storage, harness: Harness) -> None:
        """A batch that is not retired is never purged, however old it is."""
        made(store, "ended", "failed"), made(store, "waits", "queued")
        before = everything(store)
        harness.clock.advance("4000d")

        assert purge(store, LINE.states, older_than=0, clock=harness.clock) == (0, False)
        assert everything(store) == before

    def test_associations_with_other_batches_stay(self, store: Storage, harness: Harness) -> None:
        """A purge takes its own batch's associations, and leaves those of the same requests with other batches."""
        kept = made(store, "kept", requests=("r-1", "r-2"))
        retired_at_once(store, harness, "gone")

        purge(store, LINE.states, older_than=0, clock=harness.clock)

        assert associated(store, "r-1") == associated(store, "r-2") == ["kept"]
        assert find_by_request_id(store, "r-1") == ((kept,), 0)
        assert list_by_states(store, ["queued"]) == [kept]

    def test_records_under_every_state_go(self, store: Storage, plain: Storage, harness: Harness) -> None:
        """Records that crashes and late workers left go with the row, whatever state they are under."""
        batch = walked(plain, "queued", "testing", "failed")
        plain.put_records([membership(state, version) for version, state in enumerate(["merging", "queued"], start=1)])
        retiring = swap(batch, "failed", retired_at=harness.clock())
        assert plain.update_batches([retiring]) == [None]
        assert filed(store) == {"merging": 1, "queued": 2, "failed": 3}

        purge(store, LINE.states, older_than=0, clock=harness.clock)

        assert everything(store) == NOTHING

    def test_a_limit_is_kept(self, store: Storage, harness: Harness) -> None:
        """With a limit that many go, those retired longest ago first, and the answer says whether more are due."""
        for name in ("d", "b", "c", "a"):
            retired_at_once(store, harness, name)
            harness.clock.advance("1s")

        assert purge(store, LINE.states, older_than=0, limit=3, clock=harness.clock) == (3, True)
        assert sorted(store.get_batches("abcd")) == ["a"]
        assert purge(store, LINE.states, older_than=0, limit=1, clock=harness.clock) == (1, False)
        assert everything(store) == NOTHING

    def test_purging_again_does_nothing(self, store: Storage, harness: Harness) -> None:
        """A second purge finds nothing to do."""
        retired_at_once(store, harness, "b")

        assert purge(store, LINE.states, older_than=0, clock=harness.clock).batches == 1
        assert purge(store, LINE.states, older_than=0, clock=harness.clock) == (0, False)

    def test_a_purge_sent_twice_does_no_harm(self, opened: Opener, harness: Harness) -> None:
        """Where the client sends each deletion twice, the same is gone."""
        store = opened()
        kept = made(store, "kept")
        retired_at_once(store, harness, "gone")

        assert purge(opened("q", resend()), LINE.states, older_than=0, clock=harness.clock) == (1, False)
        assert list_by_states(store, ["queued"]) == [kept]
        assert sorted(store.get_batches(["kept", "gone"])) == ["kept"]

    @leaves("unreadable row")
    def test_a_row_that_cannot_be_read_stays(self, store: Storage, harness: Harness) -> None:
        """A retired row that cannot be read ends the purge, or is told to who asks for it; the others go."""
        plant(harness, retired_at_once(store, harness, "broken"), moves="x", attributes="?")
        retired_at_once(store, harness, "good")

        with pytest.raises(CorruptRowError) as caught:
            purge(store, LINE.states, older_than=0, clock=harness.clock)
        assert caught.value.key == "broken"
        problems: list[BatchStateError] = []
        purge(store, LINE.states, older_than=0, on_problem=problems.append, clock=harness.clock)

        assert [type(problem) for problem in problems] == [CorruptRowError]
        assert list(store.get_batches(["broken", "good"])) == ["broken"]

    @pytest.mark.parametrize(
        "fields",
        [
            {"older_than": -1},
            {"older_than": float("nan")},
            {"older_than": "soon"},
            {"limit": 0},
            {"limit": -1},
            {"limit": 1.5},
        ],
    )
    def test_a_purge_that_makes_no_sense_is_refused_before_any_call(
        self, opened: Opener, harness: Harness, fields: dict[str, Any]
    ) -> None:
        """A negative or unreadable retention, or a limit that is none, is refused, and nothing is deleted."""
        notes = record()

        with pytest.raises(InvalidValueError):
            purge(opened("q", notes), LINE.states, clock=harness.clock, **fields)

        assert notes.methods == []

    def test_a_store_that_fails_is_purged_by_the_next_call(self, opened: Opener, harness: Harness) -> None:
        """What a failing purge leaves is found again by the next one."""
        store = opened()
        for name in ("a", "b"):
            retired_at_once(store, harness, name)

        def fail(call: Call) -> None:
            if call.method == "delete_batches":
                raise StorageUnavailableError(call.method)

        with pytest.raises(StorageUnavailableError):
            purge(opened("q", Fault(before=fail)), LINE.states, older_than=0, clock=harness.clock)

        assert purge(store, LINE.states, older_than=0, clock=harness.clock) == (2, False)
        assert everything(store) == NOTHING

    def test_many_batches_are_purged_in_one_go(self, plain: Storage, harness: Harness) -> None:
        """However many batches are due, one purge deletes them all."""
        names = [f"b-{number:06}" for number in range(min(harness.scale, 1_200))]
        for batch in crowd(plain, names, "failed", ["r"]):
            retire(plain, batch, clock=harness.clock)
        kept = made(plain, "kept")

        assert purge(plain, LINE.states, older_than=0, clock=harness.clock) == (len(names), False)

        assert plain.get_batches(names) == {}
        assert associated(plain, "r") == []
        assert row(plain, "kept") == kept


class Deleting(Contract):
    """What `delete_batches` itself does."""

    def test_only_a_retired_row_is_deleted(self, plain: Storage) -> None:
        """A row that is not retired is refused, and nothing of it is deleted."""
        batch = made(plain, state="failed")
        before = everything(plain)

        [outcome] = plain.delete_batches([batch], LINE.states)

        assert isinstance(outcome, InvalidTransitionError)
        assert everything(plain) == before

    def test_only_a_row_at_that_version_is_deleted(self, plain: Storage, harness: Harness) -> None:
        """A retired row at another version is refused, and nothing of it is deleted."""
        retired = retired_at_once(plain, harness, "b")
        before = everything(plain)

        [outcome] = plain.delete_batches([attrs.evolve(retired, version=9)], LINE.states)

        assert isinstance(outcome, VersionMismatchError)
        assert (outcome.batch_id, outcome.expected, outcome.applied) == ("b", 9, False)
        assert everything(plain) == before

    def test_an_absent_row_is_gone_already(self, plain: Storage, harness: Harness) -> None:
        """Deleting what is gone is success, and so is one batch twice in a call."""
        retired = retired_at_once(plain, harness, "b")

        assert plain.delete_batches([retired, retired], LINE.states) == [None, None]
        assert plain.delete_batches([retired], LINE.states) == [None]
        assert plain.delete_batches([], LINE.states) == []
        assert everything(plain) == NOTHING

    def test_each_deletion_has_its_own_outcome(self, plain: Storage, harness: Harness) -> None:
        """Of many deletions each is answered in its place, and one that is refused costs the others nothing."""
        first, last = retired_at_once(plain, harness, "first"), retired_at_once(plain, harness, "last")
        live = made(plain, "live", "failed")

        outcomes = plain.delete_batches([first, live, last], LINE.states)

        assert [type(outcome) for outcome in outcomes] == [type(None), InvalidTransitionError, type(None)]
        assert sorted(plain.get_batches(["first", "live", "last"])) == ["live"]
        assert filed(plain, "live") == {"failed": 1}

    def test_a_batch_with_a_request_twice(self, plain: Storage, harness: Harness) -> None:
        """A batch that holds a request twice is deleted like any other."""
        batch = create_batch(plain, new(state="failed", requests=("r", "s", "r")))

        assert plain.delete_batches([retire(plain, batch, clock=harness.clock)], LINE.states) == [None]
        assert everything(plain) == NOTHING

    def test_what_was_deleted_may_be_created_by_another_name(self, plain: Storage, harness: Harness) -> None:
        """After a purge its requests begin anew in another batch, and nothing of the old one is met."""
        retired_at_once(plain, harness, "old")
        purge(plain, LINE.states, older_than=0, clock=harness.clock)

        fresh = made(plain, "new")

        assert find_by_request_id(plain, "r-1") == ((fresh,), 0)
        assert transition(plain, fresh, "testing").version == 2


def retired_at_once(store: Storage, harness: Harness, batch_id: str) -> Batch:
    """Create a batch, move it to an end, and retire it at the harness's time."""
    return retire(store, walked(store, "queued", "failed", batch_id=batch_id), clock=harness.clock)
