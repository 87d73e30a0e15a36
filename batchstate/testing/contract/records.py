"""Membership records: what put and delete keep, and what paging shows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchstate.entities import MembershipRecord
from batchstate.errors import InvalidNameError, InvalidValueError, QueueMismatchError
from batchstate.storage import SnapshotListing, Storage
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import crowd, filed, made, paged, record, walked
from batchstate.testing.soundness import leaves
from batchstate.tidying import retire

if TYPE_CHECKING:
    from batchstate.testing.harness import Harness

__all__ = ["Paging", "Records"]


class Records(Contract):
    """What `put_records`, `delete_records` and `get_records` do."""

    @leaves("stale record")
    def test_a_record_is_filed_and_read(self, plain: Storage) -> None:
        """A record that was put is read as it was put, by its state and batch, and in its state's listing."""
        made(plain)

        assert plain.put_records([record("testing", 7)]) == [None]

        assert plain.get_records([("testing", "b")]) == [record("testing", 7)]
        assert list(plain.list_records("testing").items) == [record("testing", 7)]

    @leaves("stale record")
    def test_put_keeps_the_higher_version(self, plain: Storage) -> None:
        """A put over a record of a higher or the same version changes nothing; over a lower one it raises it."""
        made(plain)
        seen = []
        for version in (3, 2, 3, 1, 9, 10, 4):
            assert plain.put_records([record("testing", version)]) == [None]
            seen.append(filed(plain)["testing"])

        assert seen == [3, 3, 3, 3, 9, 10, 10]

    def test_delete_removes_up_to_the_version(self, plain: Storage) -> None:
        """A delete removes a record of the given version or a lower one, and leaves a higher one."""
        made(plain)
        plain.put_records([record("testing", 5)])

        assert plain.delete_records([record("testing", 4)]) == [None]
        assert filed(plain)["testing"] == 5
        assert plain.delete_records([record("testing", 5)]) == [None]
        assert "testing" not in filed(plain)

        plain.put_records([record("testing", 5)])
        assert plain.delete_records([record("testing", 10)]) == [None]
        assert "testing" not in filed(plain)

    def test_deleting_an_absent_record_is_no_error(self, plain: Storage) -> None:
        """A delete of what is not there does nothing, successfully."""
        assert plain.delete_records([record("testing"), record("testing")]) == [None, None]

    @leaves("stale record")
    def test_versions_are_compared_as_numbers(self, plain: Storage) -> None:
        """Ten is more than nine, and a version beyond 2**32 is more than both."""
        made(plain)
        plain.put_records([record("testing", 9)])
        plain.put_records([record("testing", 10)])
        assert filed(plain)["testing"] == 10

        plain.put_records([record("testing", 2**32 + 1)])
        plain.delete_records([record("testing", 2**32)])
        assert filed(plain)["testing"] == 2**32 + 1

    def test_items_of_one_call_are_applied_in_the_order_given(self, plain: Storage) -> None:
        """Puts and deletes of one record in one call end as they would one by one."""
        made(plain)

        assert plain.put_records([record("testing", version) for version in (1, 3, 2)]) == [None] * 3
        assert filed(plain)["testing"] == 3

        assert plain.delete_records([record("testing", version) for version in (2, 3, 1)]) == [None] * 3
        assert "testing" not in filed(plain)

    def test_each_record_has_its_own_outcome(self, plain: Storage) -> None:
        """A record that cannot be filed is refused in its place, and the others are filed."""
        made(plain)
        batch = [
            record("testing", 2),
            MembershipRecord("other", "testing", "b", 2),
            record("", 2),
            record("testing", 2, ""),
            record("testing", 0),
            record("testing", True),  # noqa: FBT003 - a bool is no version
            record("testing", "2"),  # type: ignore[arg-type]  # on purpose
            record("merging", 2),
        ]
        refused = [QueueMismatchError, InvalidNameError, InvalidNameError, *[InvalidValueError] * 3]

        puts = plain.put_records(batch)
        assert [type(outcome) for outcome in puts[1:-1]] == refused
        assert (puts[0], puts[-1]) == (None, None)
        assert filed(plain) == {"queued": 1, "testing": 2, "merging": 2}

        deletes = plain.delete_records(batch)
        assert [type(outcome) for outcome in deletes[1:-1]] == refused
        assert filed(plain) == {"queued": 1}

    @leaves("stale record")
    def test_records_of_different_batches_and_states_are_apart(self, plain: Storage) -> None:
        """A put or delete touches the record of its own state and batch alone."""
        for batch_id in ("b", "c"):
            made(plain, batch_id)
        plain.put_records([record(state, 2, batch_id) for state in ("testing", "merging") for batch_id in ("b", "c")])

        plain.delete_records([record("testing", 2, "b")])

        assert filed(plain, "b") == {"queued": 1, "merging": 2}
        assert filed(plain, "c") == {"queued": 1, "testing": 2, "merging": 2}

    def test_absent_records_are_absent_from_the_answer(self, plain: Storage) -> None:
        """Of the records asked for, those that are there are answered; asking for one twice is fine."""
        made(plain)
        keys = [("queued", "b"), ("testing", "b"), ("queued", "c"), ("queued", "b")]

        assert set(plain.get_records(keys)) == {record("queued", 1)}
        assert plain.get_records([]) == []

    def test_a_put_for_an_absent_batch(self, plain: Storage, harness: Harness) -> None:
        """A put for a batch without a row does nothing, successfully, where the step can see the row."""
        assert plain.put_records([record("testing", 2)]) == [None]

        assert filed(plain) == ({} if harness.sees_rows else {"testing": 2})

    def test_a_put_for_a_retired_batch(self, plain: Storage, harness: Harness) -> None:
        """A put for a retired batch does nothing, successfully, where the step can see the row."""
        retire(plain, walked(plain, "queued", "failed"))

        assert plain.put_records([record("testing", 9)]) == [None]

        assert filed(plain) == ({} if harness.sees_rows else {"testing": 9})

    @leaves("stale record")
    def test_any_order_of_puts_and_deletes_keeps_the_fence(self, opened_plain: Opener, harness: Harness) -> None:
        """Whatever is put and deleted in whatever order, what is there is what the two rules say."""
        versions = st.integers(1, 6)
        calls = st.lists(st.tuples(st.booleans(), st.lists(versions, min_size=1, max_size=3)), max_size=8)
        numbers = iter(range(1_000_000))

        @settings(
            max_examples=harness.examples,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(calls)
        def check(steps: list[tuple[bool, list[int]]]) -> None:
            batch_id = f"b-{next(numbers)}"
            store = opened_plain()
            made(store, batch_id)
            expected: int | None = None
            for puts, chosen in steps:
                write = store.put_records if puts else store.delete_records
                assert write([record("testing", version, batch_id) for version in chosen]) == [None] * len(chosen)
                for version in chosen:
                    if puts:
                        expected = max(version, expected or 0)
                    elif expected is not None and expected <= version:
                        expected = None
                assert filed(store, batch_id).get("testing") == expected

        check()


class Paging(Contract):
    """What `list_records` and `list_records_of` show."""

    def test_an_empty_state_has_an_empty_page(self, plain: Storage) -> None:
        """A state that nothing is filed under gives no items and no cursor."""
        page = plain.list_records("testing")

        assert (list(page.items), page.cursor) == ([], None)

    @pytest.mark.parametrize("limit", [1, 3, 10, 11])
    def test_pages_show_every_record(self, plain: Storage, limit: int) -> None:
        """Whatever the size of a page, all pages together show every record of the state and no other's."""
        for number in range(10):
            made(plain, f"b-{number}", "queued" if number else "testing")
        made(plain, "elsewhere", "merging")

        pages = list(paged(lambda cursor: plain.list_records("queued", cursor, limit=limit)))

        assert {found.batch_id for page in pages for found in page} == {f"b-{number}" for number in range(1, 10)}
        assert {(found.queue, found.state, found.version) for page in pages for found in page} == {("q", "queued", 1)}

    def test_a_page_is_about_its_limit(self, plain: Storage, harness: Harness) -> None:
        """A page of a long listing holds about as many as was asked for, far from all."""
        # A backend may hand out in one piece what is small: Redis does so up to 128 members.
        count = min(400, harness.scale)
        crowd(plain, [f"b-{number}" for number in range(count)])

        pages = list(paged(lambda cursor: plain.list_records("queued", cursor, limit=30)))

        assert max(len(page) for page in pages) <= count * 3 // 8

    def test_cursors_survive_in_another_storage(self, opened_plain: Opener) -> None:
        """A listing begun by one storage may be gone on with by another."""
        first, second = opened_plain(), opened_plain()
        for number in range(9):
            made(first, f"b-{number}")
        page = first.list_records("queued", limit=3)
        seen = {found.batch_id for found in page.items}
        while page.cursor is not None:
            page = second.list_records("queued", page.cursor, limit=3)
            seen |= {found.batch_id for found in page.items}

        assert seen == {f"b-{number}" for number in range(9)}

    @leaves("unfiled batch")
    @pytest.mark.parametrize("seed", range(5))
    def test_a_record_present_throughout_the_paging_is_returned(self, plain: Storage, seed: int) -> None:
        """While others are put and deleted between the pages, no record is missed that was there all the time."""
        chance = random.Random(seed)  # noqa: S311 - reproducible randomness is wanted here
        kept = {f"b-{number:02}-kept" for number in range(20)}
        others = [f"b-{number:02}-other" for number in range(40)]
        crowd(plain, [*kept, *others])
        plain.delete_records([record("queued", 1, batch_id) for batch_id in others[::2]])
        seen = set()
        for page in paged(lambda cursor: plain.list_records("queued", cursor, limit=4)):
            seen |= {found.batch_id for found in page}
            plain.put_records([record("queued", 2, batch_id) for batch_id in chance.sample(others, 5)])
            plain.delete_records([record("queued", 2, batch_id) for batch_id in chance.sample(others, 5)])

        assert kept <= seen, f"seed {seed}"

    def test_a_record_that_is_raised_meanwhile_is_returned(self, plain: Storage) -> None:
        """A record whose version rises during the paging is there throughout, and is returned."""
        ids = [f"b-{number}" for number in range(12)]
        crowd(plain, ids)
        seen = set()
        for version, page in enumerate(paged(lambda cursor: plain.list_records("queued", cursor, limit=3)), start=2):
            seen |= {found.batch_id for found in page}
            plain.put_records([record("queued", version, batch_id) for batch_id in ids])

        assert seen == set(ids)

    def test_a_snapshot_shows_what_the_pages_show(self, plain: Storage) -> None:
        """A snapshot of several states has their records, in the order of the states."""
        if not isinstance(plain, SnapshotListing):
            pytest.skip("it has no snapshots")
        for number, state in enumerate(["merging", "queued", "queued", "testing"]):
            made(plain, f"b-{number}", state)

        found = plain.list_records_of(["queued", "failed", "merging"])

        assert found is not None
        assert [item.state for item in found] == ["queued", "queued", "merging"]
        assert {item.batch_id for item in found} == {"b-0", "b-1", "b-2"}
        assert plain.list_records_of([]) == []
        assert plain.list_records_of(["failed"]) == []

    def test_a_snapshot_is_whole_or_none(self, plain: Storage, harness: Harness) -> None:
        """A snapshot of many records has all of them, or is refused with `None`."""
        if not isinstance(plain, SnapshotListing):
            pytest.skip("it has no snapshots")
        ids = {f"b-{number}" for number in range(min(harness.scale, 1_000))}
        crowd(plain, ids)

        found = plain.list_records_of(["queued"])

        assert found is None or {item.batch_id for item in found} == ids
