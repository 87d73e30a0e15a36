"""What attributes may hold, and that it comes back as it went in."""

from __future__ import annotations

import copy
import enum
import json
import math
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchstate.creation import create_batch, create_many
from batchstate.entities import Batch
from batchstate.errors import InvalidValueError
from batchstate.listing import find_by_request_id, iter_by_states, list_by_states
from batchstate.testing.contract.base import Contract
from batchstate.testing.contract.given import everything, filed, made, marked, new, row, swap
from batchstate.transition import transition

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.storage import Storage
    from batchstate.testing.harness import Harness

__all__ = ["NothingShared", "RefusedValues", "Values"]


def _nested(depth: int) -> Any:  # noqa: ANN401 - lists in lists
    value: Any = "bottom"
    for level in range(depth):
        value = [value] if level % 2 else {"deeper": value}
    return value


KEPT: dict[str, Any] = {
    "ints": [0, -1, 2**31, 2**53 + 1, 2**63, -(2**64), 10**30, 10**4299, -(10**4299)],
    "floats": [30.4, 1 / 3, 1e-7, 1e300, 5e-324, -1.5, 0.0, 1.0, 1e16, math.pi],
    "booleans and none": [True, False, None, 1, 0, 1.0],
    "empty things": ["", [], {}, [[]], [{}], {"": ""}, {"": {"": []}}],
    "nested as deep as may be": _nested(99),
    "texts": ["é", "e\u0301", "語", "🙂", "\u0000", "\n\r\t", "\u2028", "\ufeff", '"\\/', " padded ", "\ud7ff\ue000"],
    "texts that look like something else": ["1", "1.0", "null", "true", "[]", "{}", "NaN", "\\u00e9", "2020-01-01"],
    "keys": {"a b": 1, "A B": 2, "é": 3, "🙂": 4, "__class__": 5, "$ref": 6, "a.b": 7, "version": 8, "id": 9, "0": 10},
    "order": {"z": 1, "a": 2, "m": 3},
    "a long text": "x" * 20_000,
    "a long list": list(range(5_000)),
}  # fmt: skip

KEPT_CASES = list(KEPT.items())


class _Colour(enum.StrEnum):
    RED = "red"


class _Number(enum.IntEnum):
    ONE = 1


class _Text(str):
    __slots__ = ()


_endless: list[Any] = []
_endless.append({"again": _endless})

REFUSED: dict[str, Any] = {
    "NaN": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "a set": {1, 2},
    "bytes": b"bytes",
    "a bytearray": bytearray(b"x"),
    "a tuple": (1, 2),
    "an object": object(),
    "a function": len,
    "a date": datetime(2025, 1, 1, tzinfo=UTC),
    "a decimal": Decimal("1.5"),
    "a complex number": 1j,
    "an enum of texts": _Colour.RED,
    "an enum of ints": _Number.ONE,
    "a kind of text": _Text("x"),
    "a kind of dict": OrderedDict(a=1),
    "an int as key": {1: "one"},
    "none as key": {None: "none"},
    "a tuple as key": {("a",): 1},
    "an int of 4,301 digits": 10**4300,
    "a negative int of 4,301 digits": -(10**4300),
    "a lone surrogate": "a\ud800",
    "a lone surrogate in a key": {"\udfff": 1},
    "deeper than 100": _nested(100),
    "what contains itself": _endless,
}


class Values(Contract):
    """The values that are kept."""

    @pytest.mark.parametrize("value", [value for _, value in KEPT_CASES], ids=[what for what, _ in KEPT_CASES])
    def test_a_value_comes_back_as_it_went_in(self, store: Storage, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """A value is the same, type for type, after a creation and after a move, and in every way of reading it."""
        made(store, "created", requests=["r"], value=value)
        transition(store, made(store, "moved", requests=["r"]), "queued", update={"value": value})

        rows = [
            row(store, "created"),
            row(store, "moved"),
            *list_by_states(store, ["queued"]),
            *iter_by_states(store, ["queued"]),
            *find_by_request_id(store, "r").batches,
        ]
        assert len(rows) == 8
        for batch in rows:
            assert _typed(batch.attributes["value"]) == _typed(value)

    def test_numbers_keep_their_type(self, store: Storage) -> None:
        """Ints are ints, floats floats and booleans booleans, at any depth; minus zero keeps its sign."""
        made(store, values=[1, 1.0, True, -0.0, {"deep": [2**63, 1e300, False]}])

        values = row(store).attributes["values"]
        assert [type(value) for value in values[:4]] == [int, float, bool, float]
        assert [type(value) for value in values[4]["deep"]] == [int, float, bool]
        assert math.copysign(1, values[3]) == -1
        assert json.loads(json.dumps(row(store).attributes)) == row(store).attributes

    def test_the_batchs_own_numbers_are_ints(self, store: Storage, harness: Harness) -> None:
        """Version, `entered` and times are ints wherever they are read."""
        transition(store, made(store, requests=["r"]), "queued", clock=harness.clock)

        for batch in (row(store), *list_by_states(store, ["queued"]), *find_by_request_id(store, "r").batches):
            numbers = (batch.version, batch.entered, batch.created_at, batch.updated_at, batch.history[-1].at)
            assert {type(number) for number in numbers} == {int}
        assert {type(found.version) for found in store.get_records([("queued", "b")])} == {int}
        assert {type(found.version) for found in store.list_records("queued").items} == {int}

    def test_any_json_value_is_kept(self, store: Storage, harness: Harness) -> None:
        """Whatever JSON value it is, it comes back as it went in."""
        texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
        leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
        values = st.recursive(
            leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
        )
        numbers = iter(range(1_000_000))

        @settings(
            max_examples=harness.examples,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(st.dictionaries(texts, values, max_size=4))
        def check(attributes: dict[str, Any]) -> None:
            batch_id = f"b-{next(numbers)}"
            create_batch(store, Batch(batch_id, "q", "queued", attributes=attributes))
            assert _typed(row(store, batch_id).attributes) == _typed(attributes)

        check()


class RefusedValues(Contract):
    """The values that are refused, by each method alike and before anything is written."""

    @pytest.mark.parametrize("value", list(REFUSED.values()), ids=list(REFUSED))
    def test_what_is_no_json_value_is_refused_before_the_first_write(
        self,
        store: Storage,
        value: Any,  # noqa: ANN401 - anything
    ) -> None:
        """A value that would not come back as it went in is refused wherever it stands, with nothing written."""
        batch = made(store, "there")
        before = everything(store)

        for attributes in ({"v": value}, {"list": [1, value]}, {"deep": {"er": [value]}}):
            with pytest.raises(InvalidValueError):
                create_batch(store, Batch("b", "q", "queued", request_ids=("r-1",), attributes=attributes))
            with pytest.raises(InvalidValueError):
                transition(store, batch, "testing", update=attributes)
            [outcome] = store.update_batches([swap(batch, "testing", attributes=attributes)])
            assert isinstance(outcome, InvalidValueError)

        assert everything(store) == before

    @pytest.mark.parametrize("attributes", [None, [], "text", 1, {1}, OrderedDict(a=1)])
    def test_attributes_are_an_object(self, store: Storage, attributes: Any) -> None:  # noqa: ANN401 - anything
        """Attributes that are no plain dict are refused, with nothing written."""
        with pytest.raises(InvalidValueError):
            create_batch(store, Batch("b", "q", "queued", attributes=attributes))

        assert everything(store) == {"batches": [], "records": [], "associations": []}

    def test_a_refused_value_costs_its_neighbours_nothing(self, store: Storage) -> None:
        """Of many batches only those with a value that is refused are not written."""
        outcomes = create_many(store, [new("a"), new("b", v=float("nan")), new("c", v={1}), new("d")])

        assert [isinstance(outcome, Batch) for outcome in outcomes] == [True, False, False, True]
        assert sorted(store.get_batches("abcd")) == ["a", "d"]
        assert filed(store, "b") == {}

    def test_the_message_says_where_and_what_to_do(self, store: Storage) -> None:
        """The refusal of a value names the place where it stands, and what to store instead."""
        with pytest.raises(InvalidValueError, match=r"attributes\['a'\]\[1\]\['b'\] is a set.*use"):
            create_batch(store, new(a=[0, {"b": {1}}]))

    def test_what_a_write_would_refuse_is_known_without_one(self, plain: Storage) -> None:
        """`check_batches` says of each batch what its creation would be refused for, and writes nothing."""
        answers = plain.check_batches([marked(new("a")), marked(new("b", v={1})), marked(new(""))])

        assert answers[0] is None
        assert isinstance(answers[1], InvalidValueError)
        assert isinstance(answers[2], InvalidValueError)
        assert plain.get_batches(["a"]) == {}


class NothingShared(Contract):
    """What is handed in and out is nobody's but the caller's."""

    def test_what_is_handed_in_may_be_changed_afterwards(self, store: Storage) -> None:
        """Changing what was given to a creation or a move changes nothing that is stored."""
        attributes: dict[str, Any] = {"list": [1, {"x": 1}], "map": {"k": "v"}}
        batch = create_batch(store, Batch("b", "q", "queued", attributes=attributes))
        attributes["list"][1]["x"] = 2
        attributes["map"].clear()
        assert row(store).attributes == {"list": [1, {"x": 1}], "map": {"k": "v"}}

        update: dict[str, Any] = {"more": [[0]]}
        transition(store, row(store), "testing", update=update)
        update["more"][0].append(1)
        batch.attributes["list"].append(2)
        assert row(store).attributes == {"list": [1, {"x": 1}], "map": {"k": "v"}, "more": [[0]]}

    def test_what_is_handed_out_may_be_changed(self, store: Storage) -> None:
        """Changing what was read changes nothing that is stored, and no other reader's copy."""
        made(store, requests=["r"], list=[1, {"x": 1}])
        before = copy.deepcopy(row(store))
        read: list[Callable[[], Batch]] = [
            lambda: row(store),
            lambda: list_by_states(store, ["queued"])[0],
            lambda: next(iter_by_states(store, ["queued"])),
            lambda: find_by_request_id(store, "r").batches[0],
        ]

        for look in read:
            ours, theirs = look(), look()
            assert ours == theirs
            assert ours is not theirs
            ours.attributes["list"][1]["x"] = 99
            ours.attributes["new"] = 1
            assert theirs == before

        assert row(store) == before

    def test_errors_hand_out_copies_too(self, store: Storage) -> None:
        """The row that a refusal carries is a copy like any other."""
        batch = made(store, list=[1])
        transition(store, batch, "testing")

        [outcome] = store.update_batches([swap(batch, "testing")])
        current = getattr(outcome, "current", None)
        if current is not None:
            current.attributes["list"].append(2)

        assert row(store).attributes == {"list": [1]}

    def test_one_id_loaded_twice_in_a_call_is_answered_once(self, plain: Storage) -> None:
        """Duplicates among the IDs asked for are fine, and so are IDs that are not there."""
        batch = made(plain)

        assert plain.get_batches(["b", "x", "b"]) == {"b": batch}
        assert plain.get_batches([]) == {}
        assert plain.get_batches(iter(["b"])) == {"b": batch}


def _typed(value: object) -> object:
    """Answer `value` in a form that tells 1 from 1.0 and True, 0.0 from -0.0, and one order of keys from another."""
    if isinstance(value, dict):
        return [(key, _typed(item)) for key, item in value.items()]
    if isinstance(value, list):
        return ["list", *[_typed(item) for item in value]]
    return type(value).__name__, repr(value) if isinstance(value, float) else value
