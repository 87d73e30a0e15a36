"""Associations, and finding every attempt at a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.creation import create_batch
from batchstate.entities import Association
from batchstate.errors import (
    AlreadyExistsError,
    CorruptRowError,
    InvalidNameError,
    QueueMismatchError,
    UnsupportedFormatError,
)
from batchstate.listing import find_by_request_id
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import associated, crowd, made, new, plant, walked
from batchstate.testing.faults import record
from batchstate.testing.soundness import leaves
from batchstate.tidying import retire

if TYPE_CHECKING:
    from batchstate.errors import BatchStateError
    from batchstate.storage import Storage
    from batchstate.testing.harness import Harness

__all__ = ["Associations", "Finding"]


class Associations(Contract):
    """What `put_associations` and `list_associations` do."""

    def test_an_association_is_filed_and_read(self, plain: Storage) -> None:
        """An association is read as it was put, whether or not its batch is there."""
        assert plain.put_associations([Association("q", "r", "b"), Association("q", "r", "c", "done")]) == [None, None]

        assert set(plain.list_associations("r")) == {Association("q", "r", "b"), Association("q", "r", "c", "done")}
        assert plain.list_associations("other") == []

    def test_one_that_is_there_stays_with_its_outcome(self, plain: Storage) -> None:
        """A second put of the same association changes nothing, neither its outcome nor how often it is listed."""
        plain.put_associations([Association("q", "r", "b", "done"), Association("q", "r", "c")])

        assert plain.put_associations([Association("q", "r", "b"), Association("q", "r", "c", "late")]) == [None, None]

        assert sorted(plain.list_associations("r"), key=lambda found: found.batch_id) == [
            Association("q", "r", "b", "done"),
            Association("q", "r", "c"),
        ]

    def test_of_one_association_twice_in_a_call_the_first_stays(self, plain: Storage) -> None:
        """Puts of one association in one call end as they would one by one."""
        assert (
            plain.put_associations([Association("q", "r", "b", "one"), Association("q", "r", "b", "two")]) == [None] * 2
        )

        assert plain.list_associations("r") == [Association("q", "r", "b", "one")]

    def test_each_association_has_its_own_outcome(self, plain: Storage) -> None:
        """One that cannot be filed is refused in its place, and the others are filed."""
        outcomes = plain.put_associations(
            [
                Association("q", "r", "a"),
                Association("other", "r", "b"),
                Association("q", "", "c"),
                Association("q", "r", "d\n"),
                Association("q", "r", "e"),
            ]
        )

        assert [type(outcome) for outcome in outcomes] == [
            type(None), QueueMismatchError, InvalidNameError, InvalidNameError, type(None),
        ]  # fmt: skip
        assert associated(plain, "r") == ["a", "e"]

    def test_requests_are_apart(self, plain: Storage) -> None:
        """The associations of one request are not another's."""
        plain.put_associations([Association("q", request, batch) for request in ("r", "s") for batch in ("a", request)])

        assert associated(plain, "r") == ["a", "r"]
        assert associated(plain, "s") == ["a", "s"]

    def test_all_are_listed_past_any_page(self, plain: Storage, harness: Harness) -> None:
        """However many associations a request has, all of them are listed."""
        ids = [f"b-{number:06}" for number in range(harness.scale)]

        assert plain.put_associations([Association("q", "r", batch_id) for batch_id in ids]) == [None] * len(ids)

        assert associated(plain, "r") == ids


class Finding(Contract):
    """What `find_by_request_id` answers."""

    def test_every_attempt_is_found(self, store: Storage) -> None:
        """All batches that contain the request are found, whatever became of them, each once, ordered by ID."""
        batches = {
            "b2": walked(store, "queued", "testing", "merging", batch_id="b2"),
            "b10": made(store, "b10", requests=["r-1", "r-1"]),
            "b1": walked(store, "queued", "testing", "failed", batch_id="b1"),
            "B3": retire(store, walked(store, "queued", "merged", batch_id="B3")),
        }
        made(store, "other", requests=["r-10", "r-"])

        assert find_by_request_id(store, "r-1") == (tuple(batches[name] for name in ("B3", "b1", "b10", "b2")), 0)

    def test_the_order_is_the_same_each_time(self, store: Storage, harness: Harness) -> None:
        """Attempts that were made in the same instant come in the order of their IDs, as often as one asks."""
        for name in ("c", "a", "b"):
            create_batch(store, new(name, requests=["r"]), clock=harness.clock)

        for _ in range(20):
            assert [batch.id for batch in find_by_request_id(store, "r").batches] == ["a", "b", "c"]

    def test_a_request_that_nobody_made_finds_nothing(self, store: Storage) -> None:
        """A request without an attempt is answered with none, and is no error."""
        assert find_by_request_id(store, "r") == ((), 0)

    def test_an_association_without_a_row_is_stale(self, store: Storage) -> None:
        """What a creation leaves that never came to its end is skipped and counted."""
        batch = made(store, requests=["r"])
        store.put_associations([Association("q", "r", "never"), Association("q", "r", "nor-this")])

        assert find_by_request_id(store, "r") == ((batch,), 2)

    def test_a_batch_that_does_not_contain_the_request_is_stale(self, store: Storage, steps: Storage) -> None:
        """What a creation leaves that lost against another of the same ID is skipped and counted."""
        made(store, requests=["r"])
        with pytest.raises(AlreadyExistsError):
            create_batch(steps, new(requests=["lost"]))

        assert associated(store, "lost") == ["b"]
        assert find_by_request_id(store, "lost") == ((), 1)
        assert find_by_request_id(store, "r").stale == 0

    def test_every_attempt_is_found_past_any_page(self, store: Storage, harness: Harness) -> None:
        """However many attempts there are, all are found, in order."""
        ids = [f"b-{number:06}" for number in range(harness.scale)]
        crowd(store, ids[::-1], requests=["r"])

        found = find_by_request_id(store, "r")

        assert [batch.id for batch in found.batches] == ids
        assert found.stale == 0

    def test_no_row_is_asked_for_twice_in_a_call(self, opened: Opener) -> None:
        """Rows are loaded by distinct keys, however often the request stands in its batches."""
        notes = record()
        store = opened("q", notes)
        made(store, "a", requests=["r", "r"])
        made(store, "b", requests=["r", "s", "r"])

        find_by_request_id(store, "r")

        for call in notes.calls:
            if call.method == "get_batches":
                assert len(list(call.args[0])) == len(set(call.args[0]))

    @leaves("unreadable row")
    def test_a_row_that_cannot_be_read_is_named(self, store: Storage, harness: Harness) -> None:
        """An attempt whose row cannot be read ends the search, by its ID, or is told to who asks for it."""
        good, broken, newer = (made(store, name, requests=["r"]) for name in ("a", "broken", "newer"))
        plant(harness, broken, attributes="{")
        with pytest.raises(CorruptRowError) as caught:
            find_by_request_id(store, "r")
        assert caught.value.key == "broken"

        plant(harness, newer, format=2)
        problems: list[BatchStateError] = []
        found = find_by_request_id(store, "r", on_problem=problems.append)

        assert found == ((good,), 0)
        assert [type(problem) for problem in problems] == [CorruptRowError, UnsupportedFormatError]

    def test_what_another_wrote_is_found_at_once(self, opened: Opener) -> None:
        """An attempt that one storage has acknowledged is found by every other."""
        first, second = opened(), opened()

        for name in "abcde":
            batch = made(first, name, requests=["r"])
            assert find_by_request_id(second, "r").batches[-1] == batch
