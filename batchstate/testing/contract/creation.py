"""Creating batches."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import attrs
import pytest

from batchstate.creation import create_batch, create_many
from batchstate.entities import Batch, MembershipRecord
from batchstate.errors import AlreadyExistsError, InvalidNameError, InvalidValueError, QueueMismatchError, TooLargeError
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.moves import Move
from batchstate.storage import AtomicCreates, Storage
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import (
    LINE,
    associated,
    everything,
    filed,
    made,
    marked,
    moved,
    new,
    row,
    walked,
    wrong,
)
from batchstate.testing.faults import Crash, crash_after, drop_reply, record
from batchstate.testing.soundness import leaves
from batchstate.tidying import retire
from batchstate.transition import transition

if TYPE_CHECKING:
    from batchstate.testing.harness import Harness

__all__ = ["Creation"]


class Creation(Contract):
    """Creating batches, for the first time and again."""

    def test_a_creation_writes_row_record_and_associations(self, store: Storage) -> None:
        """A created batch is found by its ID, by its state and by each of its requests."""
        batch = create_batch(store, new(size=3))

        assert row(store) == batch
        assert list_by_states(store, ["queued"]) == [batch]
        assert filed(store) == {"queued": 1}
        assert find_by_request_id(store, "r-1") == find_by_request_id(store, "r-2") == ((batch,), 0)

    def test_what_a_created_batch_tells(self, store: Storage, harness: Harness) -> None:
        """A created batch is at version 1, entered at 1, dated by the clock, with its creation as its history."""
        now = harness.clock.advance("1h")
        create_batch(store, new(size=3), by="ci", why="asked for", clock=harness.clock)

        stored = row(store)
        assert (stored.version, stored.entered, stored.state, stored.retired_at) == (1, 1, "queued", None)
        assert (stored.created_at, stored.updated_at) == (now, now)
        assert (stored.request_ids, stored.attributes) == (("r-1", "r-2"), {"size": 3})
        assert list(stored.history) == [Move(None, "queued", 1, now, "ci", "asked for")]
        assert len(stored.mark) == 16

    def test_a_batch_may_have_no_requests(self, store: Storage) -> None:
        """A batch without requests is one like any other."""
        batch = made(store, requests=())

        assert row(store).request_ids == ()
        assert create_batch(store, new(requests=())) == batch

    def test_a_batch_may_have_a_request_twice(self, store: Storage) -> None:
        """A request that a batch holds twice finds the batch once, and the batch keeps both."""
        batch = made(store, requests=("r", "s", "r"))

        assert row(store).request_ids == ("r", "s", "r")
        assert find_by_request_id(store, "r") == ((batch,), 0)

    def test_associations_then_row_then_record(self, opened_steps: Opener) -> None:
        """In three steps a creation files the associations, then inserts the row, then files the record."""
        notes = record()
        made(opened_steps("q", notes))

        assert notes.writes == ["put_associations", "create_batches", "put_records"]

    def test_one_round_trip_where_the_storage_can(self, opened_plain: Opener) -> None:
        """A storage that creates as a whole is asked once, however many batches there are."""
        notes = record()
        store = opened_plain("q", notes)
        if not isinstance(store, AtomicCreates):
            pytest.skip("it creates in three steps")

        create_many(store, [new(f"b-{number}") for number in range(20)])

        assert notes.methods == ["create_whole"]

    def test_a_redelivered_creation_answers_the_stored_batch(self, store: Storage) -> None:
        """A creation that comes again for the same requests answers the stored batch, whatever else it says."""
        first = made(store, size=3)

        again = create_batch(store, new(size=4))

        assert again == first
        assert row(store) == first
        assert filed(store) == {"queued": 1}

    def test_a_redelivered_creation_answers_the_batch_as_it_is_by_now(self, store: Storage) -> None:
        """A creation that comes again when the batch has moved on answers it where it is, and does not move it back."""
        on = walked(store, "queued", "testing")

        assert create_batch(store, new()) == on
        assert filed(store) == {"testing": 2}

    def test_a_redelivered_creation_may_name_its_requests_in_another_order(self, store: Storage) -> None:
        """The requests are compared as a set."""
        first = made(store, requests=("r-1", "r-2"))

        assert create_batch(store, new(requests=("r-2", "r-1"))) == first

    def test_other_requests_under_one_id_are_refused(self, store: Storage) -> None:
        """A creation with other requests under an ID that is taken is refused with the row that was met."""
        first = made(store)

        with pytest.raises(AlreadyExistsError) as caught:
            create_batch(store, new(requests=("r-1", "r-3")))

        assert caught.value.current == first
        assert not caught.value.retryable
        assert row(store) == first
        assert find_by_request_id(store, "r-3").batches == ()

    @leaves("broken history", "missing association", "unfiled batch")
    def test_a_lost_creation_repairs_nothing(self, store: Storage, plain: Storage) -> None:
        """A creation with other requests leaves the stored batch as unrepaired as it was."""
        assert plain.create_batches([marked(new())]) == [None]

        with pytest.raises(AlreadyExistsError):
            create_batch(store, new(requests=("other",)))

        assert filed(store) == {}
        assert associated(store, "r-1") == []

    def test_a_redelivered_creation_completes_what_a_crash_left(self, store: Storage, opened_steps: Opener) -> None:
        """A creation that comes again completes associations and record, wherever the first one died."""
        for number, dies in enumerate(["after the associations", "after the row", "after the record"], start=1):
            batch = new(f"b-{number}", requests=[f"r-{number}"], dies=dies)
            with pytest.raises(Crash):
                create_batch(opened_steps("q", crash_after(number)), batch)

            again = create_batch(store, batch)

            assert filed(store, batch.id) == {"queued": 1}, dies
            assert find_by_request_id(store, f"r-{number}") == ((again,), 0), dies

    def test_a_redelivered_creation_completes_from_the_stored_row(self, store: Storage, plain: Storage) -> None:
        """What is completed is what the stored row says: its state, its version, its requests."""
        assert plain.create_batches([marked(new())]) == [None]
        moved(plain, row(plain), "testing")

        again = create_batch(store, new())

        assert (again.state, again.version) == ("testing", 2)
        assert filed(store) == {"testing": 2}
        assert associated(store, "r-1") == associated(store, "r-2") == ["b"]

    def test_every_moment_of_a_crashed_creation_is_readable(self, store: Storage, opened_steps: Opener) -> None:
        """Wherever a creation dies, its requests find only batches that are there, and nothing is raised."""
        for number in (1, 2, 3):
            with pytest.raises(Crash):
                create_batch(opened_steps("q", crash_after(number)), new(f"b-{number}", requests=["r"]))

        found = find_by_request_id(store, "r")
        assert [batch.id for batch in found.batches] == ["b-2", "b-3"]
        assert found.stale == 1
        assert [batch.id for batch in list_by_states(store, LINE.states, lifecycle=LINE)] == ["b-3"]

    def test_a_creation_whose_reply_was_lost_is_answered_when_it_comes_again(self, opened: Opener) -> None:
        """After any lost reply the same creation answers the batch, which was written once."""
        for number in range(1, 4):
            batch = new(f"b-{number}")
            create_many(opened("q", drop_reply(number)), [batch])
            store = opened()

            again = create_batch(store, batch)

            assert (again.version, len(again.history)) == (1, 1)
            assert filed(store, batch.id) == {"queued": 1}
            assert batch.id in associated(store, "r-1")

    def test_a_retired_batch_gets_no_record_from_its_creation(self, store: Storage) -> None:
        """A creation that comes again for a retired batch answers it and files nothing."""
        retired = retire(store, walked(store, "queued", "failed"))

        assert create_batch(store, new()) == retired
        assert filed(store) == {}

    @pytest.mark.parametrize(
        "batch",
        [
            attrs.evolve(new(), version=2),
            attrs.evolve(new(), version=0),
            attrs.evolve(new(), entered=2),
            attrs.evolve(new(), retired_at=1),
            attrs.evolve(new(), version=True),
            wrong(version="1"),
            wrong(version=None),
            wrong(request_ids=["r-1"]),
            wrong(request_ids="r-1"),
        ],
        ids=[
            "version 2", "version 0", "entered 2", "retired", "version True", "version text", "no version",
            "requests in a list", "requests in a text",
        ],
    )  # fmt: skip
    def test_only_a_new_batch_can_be_created(self, store: Storage, batch: Batch) -> None:
        """A creation of what is no new batch is refused, with nothing written."""
        with pytest.raises(InvalidValueError):
            create_batch(store, batch)

        assert everything(store) == {"batches": [], "records": [], "associations": []}

    def test_a_stored_batch_cannot_be_created_under_another_id(self, store: Storage) -> None:
        """A batch that has a history is not new, whatever ID it is given."""
        stored = made(store)

        with pytest.raises(InvalidValueError):
            create_batch(store, attrs.evolve(stored, id="c"))

        assert store.get_batches(["c"]) == {}

    def test_many_creations_have_each_their_own_outcome(self, store: Storage) -> None:
        """Of many creations each is answered in its place, and one that is refused costs the others nothing."""
        taken, old = made(store, "taken"), made(store, "old")

        outcomes = create_many(
            store, [new("a"), new("taken", requests=["x"]), new(""), new("old"), new("c", n=float("nan")), new("z")]
        )

        assert [type(outcome).__name__ for outcome in outcomes] == [
            "Batch", "AlreadyExistsError", "InvalidNameError", "Batch", "InvalidValueError", "Batch",
        ]  # fmt: skip
        assert outcomes[3] == old
        assert [batch.id for batch in list_by_states(store, ["queued"])] == ["a", "old", "taken", "z"]
        assert row(store, "taken") == taken
        assert associated(store, "r-1") == ["a", "old", "taken", "z"]

    def test_one_id_twice_in_a_call_is_created_once(self, store: Storage) -> None:
        """Of creations of one ID in a call the first wins; the others are answered as if they came after it."""
        same, other, again = create_many(store, [new(n=1), new(requests=["x"]), new(n=2)])

        assert isinstance(other, AlreadyExistsError)
        assert same == again == row(store)
        assert row(store).attributes == {"n": 1}
        assert filed(store) == {"queued": 1}

    def test_no_creations_are_no_work(self, opened: Opener) -> None:
        """Creating none asks nothing of the store."""
        notes = record()

        assert create_many(opened("q", notes), []) == []
        assert notes.methods == []

    def test_a_row_too_large_for_the_backend_is_refused_before_the_first_write(
        self, store: Storage, harness: Harness
    ) -> None:
        """A batch that the backend cannot hold is refused with nothing written, its neighbours are not."""
        if harness.largest is None:
            pytest.skip("it has no limit")
        kept = made(store, "kept")
        large = "x" * harness.largest

        outcomes = create_many(store, [new("large", requests=["r-large"], text=large), new("small")])
        with pytest.raises(TooLargeError):
            transition(store, kept, "testing", update={"text": large})

        assert isinstance(outcomes[0], TooLargeError)
        assert isinstance(outcomes[1], Batch)
        assert list(store.get_batches(["large", "small"])) == ["small"]
        assert associated(store, "r-large") == []
        assert row(store, "kept") == kept

    def test_a_batch_at_the_limit_still_moves(self, store: Storage, harness: Harness) -> None:
        """The largest batch that is accepted moves as often as it likes, with the longest of states and texts."""
        if harness.largest is None:
            pytest.skip("it has no limit")

        def accepted(size: int) -> bool:
            return store.check_batches([marked(new(text="x" * size))]) == [None]

        size = bisect_left(range(harness.largest), True, key=lambda size: not accepted(size)) - 1  # noqa: FBT003 - sought
        batch = made(store, text="x" * size)
        for number in range(22):
            state = f"{number:02}" + '"' * 253
            batch = transition(store, batch, state, by="\x01" * 1000, why="🙂" * 1000)

        assert row(store) == batch
        assert list_by_states(store, [batch.state]) == [batch]

    def test_a_batch_that_was_accepted_is_never_refused_for_its_growth(self, store: Storage) -> None:
        """A batch of 20,000 requests is stored or refused when it is created, and moves as often as it likes then."""
        [outcome] = create_many(store, [new(requests=[f"request-{number}" for number in range(20_000)])])
        if isinstance(outcome, TooLargeError):
            assert everything(store) == {"batches": [], "records": [], "associations": []}
            return
        assert isinstance(outcome, Batch)
        assert associated(store, "request-19999") == ["b"]
        for _ in range(30):
            outcome = transition(store, outcome, "testing", by="x" * 1000, why="y" * 1000)
        assert row(store) == outcome


class PrimitiveCreation(Contract):
    """What `create_batches` and `create_whole` themselves do."""

    @leaves("broken history", "missing association", "unfiled batch")
    def test_a_row_is_inserted_as_it_stands(self, plain: Storage) -> None:
        """An insert takes the batch at its own version, as a copy of a store needs it, and files no record."""
        batch = marked(attrs.evolve(new(state="testing", n=1), version=7, entered=5, created_at=11, updated_at=12))

        assert plain.create_batches([batch]) == [None]

        assert row(plain) == batch
        assert filed(plain) == {}
        assert associated(plain, "r-1") == []

    @leaves("broken history", "missing association", "unfiled batch")
    def test_an_insert_never_overwrites(self, plain: Storage) -> None:
        """An insert of an ID that is there is refused with the row that was met, which stays."""
        first = marked(attrs.evolve(new(n=1), version=3))
        assert plain.create_batches([first]) == [None]

        [outcome] = plain.create_batches([marked(new(n=2))])

        assert isinstance(outcome, AlreadyExistsError)
        assert outcome.current == first
        assert row(plain) == first

    def test_an_insert_sent_twice_is_done_once(self, plain: Storage) -> None:
        """An insert that meets its own mark was sent twice, and is answered as done."""
        batch = made(plain)

        assert plain.create_batches([batch, batch]) == [None, None]
        assert row(plain) == batch

    @leaves("broken history", "missing association", "unfiled batch")
    def test_an_insert_is_refused_for_each_item_alone(self, plain: Storage) -> None:
        """What cannot be stored is answered as `check_batches` answers it, and the rest is stored."""
        batches = [
            marked(batch)
            for batch in [
                new("a"),
                new("b", queue="other"),
                new(""),
                new("c", n={1}),
                attrs.evolve(new("d"), version=0),
            ]
        ]
        batches.append(new("e"))  # carries no mark
        refusals = [type(outcome) for outcome in plain.check_batches(batches)]

        assert [type(outcome) for outcome in plain.create_batches(batches)] == refusals
        assert refusals == [type(None), QueueMismatchError, InvalidNameError, *[InvalidValueError] * 3]
        assert sorted(plain.get_batches(["a", "b", "c", "d", "e"])) == ["a"]

    @leaves("broken history")
    def test_a_whole_creation_is_one_step(self, plain: Storage) -> None:
        """Where the storage can, row, associations and record are written together, and nothing where it is refused."""
        if not isinstance(plain, AtomicCreates):
            pytest.skip("it creates in three steps")
        first = made(plain)

        outcomes = plain.create_whole(
            [marked(batch) for batch in [new("a", requests=["s", "s"]), new("b", requests=["x"]), new("c\n")]]
        )

        assert [type(outcome).__name__ for outcome in outcomes] == [
            "NoneType",
            "AlreadyExistsError",
            "InvalidNameError",
        ]
        assert filed(plain, "a") == {"queued": 1}
        assert associated(plain, "s") == ["a"]
        assert row(plain) == first
        assert associated(plain, "x") == []

    def test_a_whole_creation_keeps_a_record_that_is_higher(self, plain: Storage) -> None:
        """A creation that is sent again when the batch has moved on and come back lowers no record."""
        if not isinstance(plain, AtomicCreates):
            pytest.skip("it creates in three steps")
        batch = made(plain)
        transition(plain, transition(plain, batch, "testing"), "queued")

        assert plain.create_whole([batch]) == [None]

        assert plain.get_records([("queued", "b")]) == [MembershipRecord("q", "queued", "b", 3)]
