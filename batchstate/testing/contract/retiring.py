"""Taking ended batches out of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from batchstate.creation import create_batch
from batchstate.entities import Batch
from batchstate.errors import (
    InvalidTransitionError,
    InvalidValueError,
    NotFoundError,
    StorageUnavailableError,
    TransitionIncompleteError,
    VersionMismatchError,
)
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import LINE, crowd, filed, made, marked, new, paged, plant, row, walked, wrong
from batchstate.testing.contract.given import record as membership
from batchstate.testing.faults import Crash, Fault, crash_after, drop_reply, record, resend
from batchstate.testing.soundness import leaves
from batchstate.tidying import purge, retire
from batchstate.transition import ensure_record, transition

if TYPE_CHECKING:
    from batchstate.storage import Storage
    from batchstate.testing.forwarding import Call
    from batchstate.testing.harness import Harness

__all__ = ["Retired", "Retiring"]


class Retiring(Contract):
    """What `retire` does."""

    def test_a_retired_batch_is_out_of_the_queue(self, store: Storage, harness: Harness) -> None:
        """A retired batch has a date of retirement, one version more and no record; all else is as before."""
        batch = walked(store, "queued", "testing", "failed")
        now = harness.clock.advance("1h")

        retired = retire(store, batch, lifecycle=LINE, by="tidier", clock=harness.clock)

        assert row(store) == retired
        assert (retired.retired_at, retired.updated_at) == (now, now)
        assert (retired.state, retired.version, retired.entered) == ("failed", 4, 3)
        assert (retired.request_ids, retired.attributes) == (batch.request_ids, batch.attributes)
        assert filed(store) == {}
        assert list_by_states(store, LINE.states, lifecycle=LINE) == []
        assert batch.retired_at is None

    def test_a_retired_batch_is_still_found_by_id_and_request(self, store: Storage) -> None:
        """Until it is purged, a retired batch is loaded by its ID and found by its requests."""
        retired = retire(store, walked(store, "queued", "failed"))

        assert row(store) == retired
        assert find_by_request_id(store, "r-1") == ((retired,), 0)

    def test_only_an_ended_batch_is_retired(self, opened: Opener) -> None:
        """A batch in a state that the lifecycle does not end in is refused before the store is asked."""
        store = opened()
        notes = record()

        for state in ("queued", "testing", "merging"):
            with pytest.raises(InvalidTransitionError):
                retire(opened("q", notes), made(store, state, state), lifecycle=LINE)

        assert notes.methods == []

    def test_swap_comes_before_the_records_removal(self, opened: Opener) -> None:
        """The row is retired, and acknowledged, before its records go."""
        batch = walked(opened(), "queued", "failed")
        notes = record()

        retire(opened("q", notes), batch, lifecycle=LINE)

        assert notes.writes == ["update_batches", "delete_records"]

    def test_all_records_of_the_batch_go(self, store: Storage) -> None:
        """With a lifecycle the records under every state go, not only that of the last one."""
        batch = walked(store, "queued", "testing", "failed")
        store.put_records([membership("queued", 1), membership("testing", 2)])

        retire(store, batch, lifecycle=LINE)

        assert filed(store) == {}

    def test_a_lost_race_touches_nothing(self, store: Storage) -> None:
        """A retirement from a version that the row has left is refused; row and record are as they were."""
        batch = made(store, state="failed")
        current = transition(store, batch, "queued")

        with pytest.raises(VersionMismatchError):
            retire(store, batch)

        assert row(store) == current
        assert filed(store) == {"queued": 2}
        assert list(store.list_retired().items) == []

    def test_an_absent_batch_is_not_found(self, store: Storage) -> None:
        """A retirement of a batch without a row is answered so."""
        with pytest.raises(NotFoundError):
            retire(store, new(state="failed"))

    def test_a_version_that_is_none_is_refused(self, store: Storage) -> None:
        """A retirement from what is no version is refused, and nothing is written."""
        batch = made(store, state="failed")

        for version in (0, None, "1", True):
            with pytest.raises(InvalidValueError):
                retire(store, wrong(batch, version=version))

        assert row(store) == batch

    def test_retiring_again_completes_what_a_crash_left(self, store: Storage, opened_steps: Opener) -> None:
        """After a crash behind the swap another retirement, from the row or the old copy, removes the record."""
        for number, again in enumerate(["new row", "old copy"]):
            batch = walked(store, "queued", "failed", batch_id=f"b-{number}")
            with pytest.raises(Crash):
                retire(opened_steps("q", crash_after(1)), batch)
            assert filed(store, batch.id) == {"failed": 2}

            retired = retire(store, row(store, batch.id) if again == "new row" else batch)

            assert filed(store, batch.id) == {}
            assert retired == row(store, batch.id)
            assert retired.version == 3

    def test_a_failure_behind_the_swap_is_told_as_such(self, store: Storage, opened_steps: Opener) -> None:
        """Where the record cannot be removed, the error carries the retired batch, and another try completes it."""

        def fail(call: Call) -> None:
            if call.method == "delete_records":
                raise StorageUnavailableError(call.method)

        with pytest.raises(TransitionIncompleteError) as caught:
            retire(opened_steps("q", Fault(before=fail)), walked(store, "queued", "failed"))

        assert caught.value.batch == row(store)
        assert isinstance(caught.value.batch, Batch)
        retire(store, caught.value.batch)
        assert filed(store) == {}

    def test_a_retirement_whose_reply_was_lost_is_done(self, opened: Opener) -> None:
        """After a lost reply another retirement from the same copy completes it, and nothing is done twice."""
        store = opened()
        batch = walked(store, "queued", "failed")
        with pytest.raises(StorageUnavailableError):
            retire(opened("q", drop_reply(1)), batch)

        assert retire(store, batch).version == 3
        assert filed(store) == {}
        assert len(store.list_retired().items) == 1

    def test_a_retirement_sent_twice_applies_once(self, opened: Opener) -> None:
        """Where the client sends each write twice, the batch is retired once."""
        retired = retire(opened("q", resend()), walked(opened(), "queued", "failed"))

        store = opened()
        assert row(store) == retired
        assert (retired.version, list(store.list_retired().items)) == (3, [retired])

    def test_a_retired_batch_never_comes_back(self, store: Storage) -> None:
        """Neither repair nor creation nor any write from an older copy brings a retired batch into a listing."""
        first = made(store)
        second = transition(store, first, "failed")
        retired = retire(store, second)

        ensure_record(store, retired)
        create_batch(store, new())
        for stale in (first, second):
            ensure_record(store, stale)
            with pytest.raises(VersionMismatchError):
                transition(store, stale, "queued")

        assert row(store) == retired
        assert list_by_states(store, ["queued", "failed"]) == []


class Retired(Contract):
    """What `list_retired` shows."""

    def test_those_retired_longest_ago_come_first(self, store: Storage, harness: Harness) -> None:
        """Retired rows come in the order of their retirement, whatever their names and dates of creation."""
        batches = crowd(store, ["c", "a", "e", "b", "d"], "failed")
        retired = []
        for batch in batches:
            harness.clock.advance(1)
            retired.append(retire(store, batch, clock=harness.clock))

        assert list(store.list_retired().items) == retired
        assert [
            batch for page in paged(lambda cursor: store.list_retired(cursor, limit=2)) for batch in page
        ] == retired

    @leaves("broken history")
    def test_dates_are_compared_as_numbers(self, plain: Storage) -> None:
        """A date of fewer digits is earlier."""
        for name, at in (("a", 1_000), ("b", 999), ("c", 1_700_000_000_000), ("d", 0)):
            assert plain.create_batches([marked(attrs.evolve(new(name), retired_at=at))]) == [None]

        assert [batch.retired_at for batch in plain.list_retired().items if isinstance(batch, Batch)] == [
            0, 999, 1_000, 1_700_000_000_000,
        ]  # fmt: skip

    @pytest.mark.parametrize("limit", [1, 2, 5, 6])
    def test_pages_show_each_retired_row_once(self, store: Storage, harness: Harness, limit: int) -> None:
        """Whatever the size of a page, rows retired in one instant come each once too."""
        for batch in crowd(store, ["a", "b", "c", "d", "e"], "failed"):
            retire(store, batch, clock=harness.clock)
        crowd(store, ["live", "alive"], "failed")

        found = [batch for page in paged(lambda cursor: store.list_retired(cursor, limit=limit)) for batch in page]

        assert sorted(batch.id for batch in found if isinstance(batch, Batch)) == ["a", "b", "c", "d", "e"]

    def test_none_retired_is_an_empty_page(self, store: Storage) -> None:
        """Where nothing is retired, there is one page without items."""
        made(store)

        page = store.list_retired()
        assert (list(page.items), page.cursor) == ([], None)

    @leaves("unreadable row")
    def test_a_retired_row_that_cannot_be_read_is_named(self, store: Storage, harness: Harness) -> None:
        """In place of a retired row that cannot be read stands the error that names it."""
        plant(harness, retire(store, made(store, "broken", "failed"), clock=harness.clock), attributes="{")
        good = retire(store, made(store, "good", "failed"), clock=harness.clock)

        first, second = sorted(store.list_retired().items, key=lambda item: isinstance(item, Batch))
        assert getattr(first, "key", "") == "broken"
        assert second == good

    def test_a_purged_row_is_no_more_among_them(self, store: Storage, harness: Harness) -> None:
        """What was purged is no more listed, and the others are."""
        for name in ("a", "b"):
            retire(store, made(store, name, "failed"), clock=harness.clock)
            harness.clock.advance("1d")

        purge(store, LINE.states, older_than="36h", clock=harness.clock)

        assert [batch.id for batch in store.list_retired().items if isinstance(batch, Batch)] == ["b"]
