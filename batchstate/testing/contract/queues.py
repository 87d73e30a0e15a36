"""Queues: that none reaches into another, and what a store says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.advance import advance
from batchstate.creation import create_batch, create_many
from batchstate.entities import Association, Batch
from batchstate.errors import NotFoundError, QueueMismatchError
from batchstate.listing import find_by_request_id, iter_by_states, list_by_states
from batchstate.storage import AtomicCreates, AtomicMoves
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import (
    LINE,
    associated,
    crowd,
    everything,
    filed,
    lag,
    made,
    marked,
    new,
    paged,
    plant,
    row,
    swap,
    walked,
)
from batchstate.testing.contract.given import record as membership
from batchstate.testing.faults import record
from batchstate.testing.soundness import leaves
from batchstate.tidying import purge, reconcile, retire
from batchstate.transition import ensure_record, transition, transition_many

if TYPE_CHECKING:
    from batchstate.storage import Kind, Storage
    from batchstate.testing.harness import Harness

__all__ = ["Queues", "Scanning"]


class Queues(Contract):
    """That a storage is bound to its queue."""

    def test_two_queues_hold_the_same_names_apart(self, opened: Opener) -> None:
        """Batches, records and associations of the same names in two queues are each its own queue's."""
        one, two = opened("one"), opened("two")
        ours, theirs = made(one, n=1), made(two, "b", "testing", ["r-1", "x"], n=2)

        assert (row(one), row(two)) == (ours, theirs)
        assert list_by_states(one, ["queued", "testing"]) == [ours]
        assert list(iter_by_states(two, ["queued", "testing"])) == [theirs]
        assert find_by_request_id(one, "r-1") == ((ours,), 0)
        assert find_by_request_id(two, "r-1") == ((theirs,), 0)
        assert find_by_request_id(one, "x") == ((), 0)
        assert (filed(one), filed(two)) == ({"queued": 1}, {"testing": 1})

    @leaves("stale record", "unfiled batch")
    def test_what_is_done_in_one_leaves_the_other_as_it_is(self, opened: Opener, harness: Harness) -> None:
        """Moves, repairs, tidying and purges in one queue change nothing in another with the same names."""
        one, two = opened("one"), opened("two")
        lag(two, "queued", "testing")
        retire(two, walked(two, "queued", "failed", batch_id="ended"), clock=harness.clock)
        before = everything(two)

        advance(one, made(one).id, "testing", entered=1)
        retire(one, transition(one, row(one), "failed"), clock=harness.clock)
        retire(one, walked(one, "queued", "failed", batch_id="ended"), clock=harness.clock)
        reconcile(one, LINE.states)
        assert [batch.queue for batch in one.list_retired().items if isinstance(batch, Batch)] == ["one", "one"]
        assert purge(one, LINE.states, older_than=0, clock=harness.clock).batches == 2

        assert everything(two) == before
        assert everything(one) == {"batches": [], "records": [], "associations": []}

    def test_a_batch_that_only_another_queue_has_is_absent(self, opened: Opener) -> None:
        """A batch of another queue is not found, not loaded and not met by a creation."""
        one, two = opened("one"), opened("two")
        made(two)

        assert one.get_batches(["b"]) == {}
        with pytest.raises(NotFoundError):
            advance(one, "b", "testing", entered=1)
        assert create_batch(one, new(queue="one", n=1)).attributes == {"n": 1}

    def test_an_entity_of_another_queue_is_refused_before_any_write(self, opened: Opener) -> None:
        """No function takes a batch of another queue, and nothing is written in either."""
        one, two = opened("one"), opened("two")
        ended = made(two, "ended", "failed")
        batch = made(two)
        before = everything(two)

        for call in (
            lambda: create_batch(one, new("c", queue="two")),
            lambda: transition(one, batch, "testing"),
            lambda: ensure_record(one, batch),
            lambda: retire(one, ended),
        ):
            with pytest.raises(QueueMismatchError):
                call()
        [created], [moved] = create_many(one, [new("c", queue="two")]), transition_many(one, [batch], "testing")

        assert isinstance(created, QueueMismatchError)
        assert isinstance(moved, QueueMismatchError)
        assert everything(one) == {"batches": [], "records": [], "associations": []}
        assert everything(two) == before

    @leaves("stale record")
    def test_every_writing_method_refuses_another_queues_items(self, plain: Storage) -> None:
        """Each writing method answers an item of another queue so, in its place, and does the others."""
        made(plain)
        alien = marked(new("b", queue="other"))
        answers = {
            "check_batches": plain.check_batches([alien]),
            "create_batches": plain.create_batches([alien]),
            "update_batches": plain.update_batches([swap(alien, "testing")]),
            "put_records": plain.put_records([membership("testing", 1, "b", "other"), membership("merging", 1)])[:1],
            "delete_records": plain.delete_records([membership("queued", 9, "b", "other")]),
            "put_associations": plain.put_associations([Association("other", "x", "b"), Association("q", "y", "b")])[
                :1
            ],
        }
        if isinstance(plain, AtomicMoves):
            answers["move_batches"] = plain.move_batches([swap(alien, "testing")])
        if isinstance(plain, AtomicCreates):
            answers["create_whole"] = plain.create_whole([alien])

        assert {name: [type(answer) for answer in several] for name, several in answers.items()} == {
            name: [QueueMismatchError] for name in answers
        }
        assert filed(plain) == {"queued": 1, "merging": 1}
        assert (associated(plain, "x"), associated(plain, "y")) == ([], ["b"])

    def test_another_queues_retired_batch_is_not_deleted(self, opened_plain: Opener, harness: Harness) -> None:
        """A deletion of another queue's batch is refused, and the batch of that name here stays."""
        one, two = opened_plain("one"), opened_plain("two")
        alien = retire(two, walked(two, "queued", "failed"), clock=harness.clock)
        ours = retire(one, walked(one, "queued", "failed"), clock=harness.clock)

        [outcome] = one.delete_batches([alien], LINE.states)

        assert isinstance(outcome, QueueMismatchError)
        assert (row(one), row(two)) == (ours, alien)

    def test_queues_with_rows_are_listed(self, opened: Opener) -> None:
        """Every storage lists all queues of its store that have batches, sorted; one without is not listed."""
        store = opened("b")
        opened("empty")
        assert store.list_queues() == []

        for queue in ("b", "a", "B", "é"):
            made(opened(queue))

        assert store.list_queues() == opened("empty").list_queues() == ["B", "a", "b", "é"]

    @leaves("broken history", "missing association", "unfiled batch")
    def test_a_queue_is_known_as_soon_as_its_first_row(self, opened_steps: Opener) -> None:
        """A queue is listed from its first row on, and each later creation changes nothing of that."""
        store = opened_steps()
        assert store.create_batches([marked(new())]) == [None]
        assert store.list_queues() == ["q"]

        made(store, "c")
        assert store.list_queues() == ["q"]

    def test_a_queue_with_retired_batches_alone_is_listed(self, store: Storage) -> None:
        """A queue whose batches are all retired has rows still."""
        retire(store, walked(store, "queued", "failed"))

        assert store.list_queues() == ["q"]

    def test_no_call_names_another_queue(self, opened: Opener) -> None:
        """A whole life in one queue asks the store for that queue's things alone."""
        notes = record()
        batch = made(opened("one", notes))
        store = opened("one", notes)
        ensure_record(store, transition(store, batch, "testing"))

        assert {entity.queue for call in notes.calls for entity in _entities(call.args)} == {"one"}


class Scanning(Contract):
    """What `scan` goes through."""

    def test_every_row_of_a_kind_is_shown(self, store: Storage) -> None:
        """A scan shows all batches, retired ones too, all records and all associations of the queue, and no other's."""
        queued = made(store, "a", requests=["r", "s"])
        ended = retire(store, walked(store, "queued", "failed", batch_id="b"))
        store.put_associations([Association("q", "t", "never", "dead")])

        assert scanned(store, "batches") == {queued, ended}
        assert scanned(store, "records") == {membership("queued", 1, "a")}
        assert scanned(store, "associations") == {
            Association("q", "r", "a"), Association("q", "s", "a"), Association("q", "r-1", "b"),
            Association("q", "r-2", "b"), Association("q", "t", "never", "dead"),
        }  # fmt: skip

    def test_another_queues_rows_are_not_shown(self, opened: Opener) -> None:
        """A scan shows its own queue's rows alone."""
        made(opened("other"))
        made(opened("q:other"))

        assert everything(opened()) == {"batches": [], "records": [], "associations": []}

    @pytest.mark.parametrize("limit", [1, 3, 100])
    def test_pages_show_every_row(self, store: Storage, limit: int) -> None:
        """Whatever the size of a page, all pages together show every row."""
        names = {f"b-{number}" for number in range(10)}
        crowd(store, names, requests=["r"])

        assert {batch.id for batch in scanned(store, "batches", limit) if isinstance(batch, Batch)} == names
        assert {getattr(found, "batch_id", "") for found in scanned(store, "records", limit)} == names
        assert {getattr(found, "batch_id", "") for found in scanned(store, "associations", limit)} == names

    def test_a_row_there_throughout_is_shown(self, store: Storage) -> None:
        """While others come and move between the pages, no row is missed that was there all the time."""
        names = {f"b-{number:02}" for number in range(12)}
        crowd(store, names)
        seen = set()
        for number, page in enumerate(paged(lambda cursor: store.scan("batches", cursor, limit=3))):
            seen |= {batch.id for batch in page if isinstance(batch, Batch)}
            made(store, f"new-{number}"), made(store, f"a-{number}")

        assert names <= seen

    @leaves("unreadable row")
    def test_a_row_that_cannot_be_read_is_shown_as_such(self, store: Storage, harness: Harness) -> None:
        """In place of a row that cannot be read stands the error that names it, and the others are shown."""
        good = made(store, "good")
        plant(harness, made(store, "broken"), requests="?")

        found = [item for page in paged(lambda cursor: store.scan("batches", cursor)) for item in page]

        assert good in found
        assert [getattr(item, "key", "") for item in found if item != good] == ["broken"]


def scanned(store: Storage, kind: Kind, limit: int = 500) -> set[object]:
    """Answer what a scan shows, each once."""
    return {item for page in paged(lambda cursor: store.scan(kind, cursor, limit=limit)) for item in page}


def _entities(value: object) -> list[Batch]:
    if hasattr(value, "queue"):
        return [value]  # type: ignore[list-item]  # whatever belongs to a queue
    if isinstance(value, list | tuple):
        return [entity for item in value for entity in _entities(item)]
    return [
        entity for part in ("before", "after") if hasattr(value, part) for entity in _entities(getattr(value, part))
    ]
