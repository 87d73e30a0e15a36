"""What queues, states, batches and requests may be called."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from batchstate.creation import create_batch, create_many
from batchstate.entities import Association, Batch, MembershipRecord
from batchstate.errors import InvalidNameError
from batchstate.listing import find_by_request_id, iter_by_states, list_by_states
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import everything, filed, made, marked, new, row, wrong
from batchstate.testing.faults import record
from batchstate.tidying import purge, reconcile, retire
from batchstate.transition import ensure_record, transition, transition_many

if TYPE_CHECKING:
    from batchstate.storage import Storage
    from batchstate.testing.harness import Harness

__all__ = ["LEGAL", "Names", "RefusedNames"]

# One per line would be a page of single signs.
# fmt: off
LEGAL = (
    # The shortest and the longest.
    "x", "0", "n" * 255, "é" * 127 + "x", "語" * 85, "🙂" * 63 + "abc",
    # Compared exactly: case, spaces, accents composed and decomposed, letters that fold together.
    "Bot-A", "bot-a", "bot-a ", " bot-a", "  ", " ", "\u00e9", "e\u0301", "stra\u00dfe", "strasse", "\u0130",
    "i\u0307", "I", "i", "\ufb01", "fi", "\uff21", "A", "\u00a0", "\u200b", "\ufeff", "\u202e",
    # What separates, quotes, escapes and matches elsewhere.
    ":", "::", "|", "/", "//", "\\", "#", "##", "%", "%%", "%3A", "%25", "{", "}", "{}", "{q}", "}{", "*", "?",
    "[a]", "[", "a:b", "a|b", "a/b", "a#b", "a%b", "a b", "a+b", "a_b", "a-b", "a.b", "..", ".", "a,b", "a;b",
    "'", '"', "''", "`", "--", "a' OR '1'='1", "$", "&", "<", ">", "=", "@", "!", "~", "^", "(", ")", "\\x00",
    "\\u0000", "\\n", "_", "__", "-",
    # What a program of ours may call its own things, and what other programs take for something else.
    "active", "wait", "waiting", "delayed", "dead", "lease", "limit", "return:x", "batch", "batches", "record",
    "records", "retired", "row", "queue", "queues", "state", "requests", "association", "meta", "index", "pk",
    "sk", "version", "schema", "None", "null", "nil", "true", "false", "undefined", "NaN", "-1", "00", "01",
    "1", "1.0", "1e3", "0x1", "q", "b", "r-1",
)
# fmt: on
"""Names that every adapter takes, all different."""

ILLEGAL = (
    ("empty", ""),
    ("256 bytes", "x" * 256),
    ("256 bytes in 128 characters", "é" * 128),
    ("line break", "a\nb"),
    ("tab", "\t"),
    ("NUL", "a\x00"),
    ("escape", "\x1b[0m"),
    ("DEL", "a\x7f"),
    ("C1 control", "a\x85b"),
    ("lone surrogate", "a\ud800"),
    ("None", None),
    ("bytes", b"a"),
    ("int", 1),
)


class Names(Contract):
    """The names that are taken, and that each of them is its own."""

    def test_every_name_names_a_batch(self, plain: Storage) -> None:
        """Each name is a batch of its own, is loaded as it was written, and found in its state and by its request."""
        outcomes = create_many(plain, [new(name, requests=["r"], n=place) for place, name in enumerate(LEGAL)])

        assert [batch for batch in outcomes if not isinstance(batch, Batch)] == []
        loaded = plain.get_batches(LEGAL)
        assert {name: wanted.attributes["n"] for name, wanted in loaded.items() if isinstance(wanted, Batch)} == {
            name: place for place, name in enumerate(LEGAL)
        }
        assert [batch.id for batch in list_by_states(plain, ["queued"])] == sorted(LEGAL)
        assert [batch.id for batch in find_by_request_id(plain, "r").batches] == sorted(LEGAL)

    def test_every_name_names_a_state(self, plain: Storage) -> None:
        """Each name is a state of its own, whose listing has its own batches and no other's."""
        create_many(plain, [new(f"b-{place}", name, requests=()) for place, name in enumerate(LEGAL)])

        for place, name in enumerate(LEGAL):
            page = plain.list_records(name)
            assert (list(page.items), page.cursor) == ([MembershipRecord("q", name, f"b-{place}", 1)], None)
        listed = list_by_states(plain, LEGAL)
        assert [(batch.id, batch.state) for batch in listed] == [
            (f"b-{place}", name) for place, name in enumerate(LEGAL)
        ]

    def test_every_name_names_a_request(self, plain: Storage) -> None:
        """Each name is a request of its own, which finds its own batches and no other's."""
        create_many(plain, [new(f"b-{place}", requests=[name]) for place, name in enumerate(LEGAL)])

        for place, name in enumerate(LEGAL):
            assert plain.list_associations(name) == [Association("q", name, f"b-{place}")]
        assert row(plain, "b-3").request_ids == (LEGAL[3],)

    def test_every_name_names_a_queue(self, opened_plain: Opener) -> None:
        """Each name is a queue of its own, which holds its own batches and no other's."""
        for name in LEGAL:
            made(opened_plain(name), requests=["r"], queue_name=name)

        for name in LEGAL:
            store = opened_plain(name)
            assert row(store).queue == name
            assert row(store).attributes == {"queue_name": name}
            assert [batch.queue for batch in list_by_states(store, ["queued"])] == [name]
        assert opened_plain().list_queues() == sorted(LEGAL)

    def test_a_name_that_begins_like_another_is_another(self, plain: Storage) -> None:
        """A state, batch or request whose name begins with another's is found by its whole name alone."""
        for name in ("r", "r1", "r10", "r-", "r "):
            made(plain, name, f"s{name}", [name])

        for name in ("r", "r1", "r10", "r-", "r "):
            assert [batch.id for batch in find_by_request_id(plain, name).batches] == [name]
            assert [batch.id for batch in list_by_states(plain, [f"s{name}"])] == [name]

    @pytest.mark.parametrize(
        "sign", [":", "|", "/", "#", "%", "{", "}", " ", ",", ".", "-", "_", "\\", "::", "%3A", "\u00a0"]
    )
    def test_separators_never_collide(self, opened_plain: Opener, sign: str) -> None:
        """Two pairs of names that read alike when joined by a sign are two."""
        plain, other = opened_plain(f"q{sign}a"), opened_plain("q")
        made(plain, f"b{sign}c", "a", [f"s{sign}t"], n=1)
        made(plain, "c", f"a{sign}b", ["s"], n=2)
        made(plain, f"t{sign}c", f"a{sign}b", ["s"], n=3)
        made(other, f"a{sign}c", f"a{sign}a", ["s"], n=4)

        assert [batch.attributes["n"] for batch in list_by_states(plain, ["a"])] == [1]
        assert [batch.attributes["n"] for batch in list_by_states(plain, [f"a{sign}b"])] == [2, 3]
        assert [batch.attributes["n"] for batch in find_by_request_id(plain, f"s{sign}t").batches] == [1]
        assert [batch.attributes["n"] for batch in find_by_request_id(plain, "s").batches] == [2, 3]
        assert filed(plain, "c", [f"a{sign}b", "a"]) == {f"a{sign}b": 1}
        assert [batch.attributes["n"] for batch in list_by_states(other, [f"a{sign}a", "a"])] == [4]

    def test_names_of_all_kinds_go_through_a_whole_life(self, store: Storage, harness: Harness) -> None:
        """A batch with signs in every name is created, moved, retired and purged, and its likes are left alone."""
        for name in ("a:b|{c}/%d#", "a:b|{c}/%d", "a:b|{c}"):
            made(store, name, f"{name}>", [name])
        kept = everything(store)
        made(store, "{a}", "{a}>", ["a:b|{c}"])

        batch = transition(store, row(store, "{a}"), "a:b|{c}>")
        retire(store, batch, clock=harness.clock)
        purge(store, ["{a}>", "a:b|{c}>"], older_than=0, clock=harness.clock)

        assert everything(store) == kept


class RefusedNames(Contract):
    """The names that are refused, by each method alike and before anything is written."""

    @pytest.fixture(params=[name for _, name in ILLEGAL], ids=[what for what, _ in ILLEGAL])
    def illegal(self, request: pytest.FixtureRequest) -> str:
        """Give what is no name."""
        return cast("str", request.param)

    def test_a_batch_with_such_a_name_is_not_created(self, store: Storage, illegal: str) -> None:
        """No batch is created whose ID, state or request is no name, and nothing of it is written."""
        for batch in (new(illegal), wrong(state=illegal), wrong(request_ids=("r", illegal))):
            with pytest.raises(InvalidNameError):
                create_batch(store, batch)
        [outcome] = store.create_batches([marked(new(illegal))])

        assert isinstance(outcome, InvalidNameError)
        assert everything(store) == {"batches": [], "records": [], "associations": []}

    def test_a_batch_is_not_moved_by_or_to_such_a_name(self, store: Storage, illegal: str) -> None:
        """No batch is moved, retired or repaired whose ID or state is no name."""
        batch = made(store)
        before = everything(store)

        for call in (
            lambda: transition(store, batch, illegal),
            lambda: transition(store, wrong(batch, id=illegal), "testing"),
            lambda: retire(store, wrong(batch, id=illegal)),
            lambda: ensure_record(store, wrong(batch, id=illegal)),
            lambda: ensure_record(store, wrong(batch, state=illegal)),
        ):
            with pytest.raises(InvalidNameError):
                call()
        [answer] = transition_many(store, [wrong(batch, id=illegal)], "testing")

        assert isinstance(answer, InvalidNameError)
        assert everything(store) == before

    def test_records_and_associations_of_such_a_name_are_not_filed(self, plain: Storage, illegal: str) -> None:
        """No record and no association is filed or deleted with what is no name; it is refused in its place."""
        made(plain)
        before = everything(plain)
        records = [MembershipRecord("q", illegal, "b", 1), MembershipRecord("q", "testing", illegal, 1)]
        associations = [Association("q", illegal, "b"), Association("q", "r", illegal)]

        outcomes = [
            *plain.put_records(records),
            *plain.delete_records(records),
            *plain.put_associations(associations),
        ]

        assert [type(outcome) for outcome in outcomes] == [InvalidNameError] * 6
        assert everything(plain) == before

    def test_nothing_is_looked_for_by_such_a_name(self, opened: Opener, illegal: str) -> None:
        """A listing or search by what is no name is refused before the store is asked."""
        notes = record()
        store = opened("q", notes)

        for call in (
            lambda: list_by_states(store, [illegal]),
            lambda: iter_by_states(store, [illegal]),
            lambda: find_by_request_id(store, illegal),
            lambda: reconcile(store, ["queued", illegal]),
            lambda: purge(store, ["queued", illegal]),
        ):
            with pytest.raises(InvalidNameError):
                call()

        assert notes.methods == []

    def test_no_storage_is_opened_for_such_a_queue(self, opened_plain: Opener, illegal: str) -> None:
        """No storage can be bound to a queue whose name is none."""
        with pytest.raises(InvalidNameError):
            opened_plain(illegal)
