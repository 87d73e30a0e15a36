"""Lifecycles from mappings and TOML."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from batchstate.errors import InvalidLifecycleError, InvalidValueError
from batchstate.lifecycle import Lifecycle
from tests.unit.lifecycles import ODD_NAMES, TRICKY_NAMES, lifecycles

if TYPE_CHECKING:
    from pathlib import Path

FLOW = Lifecycle.parse("queued > testing > merged | failed")


def _toml(value: object) -> str:
    """Write a value as TOML; its texts are a superset of JSON's once all but ASCII is escaped."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    assert isinstance(value, str)
    return '"' + "".join(f"\\U{ord(sign):08x}" for sign in value) + '"'


def test_a_mapping_names_what_may_follow_each_state() -> None:
    """The order of the table is the order of declaration, and the first state begins."""
    moves = {"queued": ["testing"], "testing": ("merged", "failed")}
    assert Lifecycle.from_mapping({"moves": moves}) == FLOW
    assert Lifecycle.from_mapping(MappingProxyType({"moves": MappingProxyType(moves)})) == FLOW


def test_a_mapping_may_hold_the_text_form() -> None:
    """The moves may be one text, its settings and those beside it together."""
    given_text = {"moves": "testing > merged | failed; queued > testing; initial = queued"}
    states = ["queued", "testing", "merged", "failed"]
    assert Lifecycle.from_mapping({**given_text, "states": states}) == FLOW
    assert Lifecycle.from_mapping(given_text).states == ("testing", "merged", "failed", "queued")


def test_states_alone_are_a_lifecycle_of_one() -> None:
    """A single state without moves is both beginning and end."""
    assert Lifecycle.from_mapping({"states": ["only"]}) == Lifecycle.parse("only")


def test_the_mapping_is_plain_and_new() -> None:
    """A lifecycle as a mapping is lists and texts in declaration order, without empty values."""
    mapping = FLOW.to_mapping()
    assert mapping == {
        "states": ["queued", "testing", "merged", "failed"],
        "initial": "queued",
        "moves": {"queued": ["testing"], "testing": ["merged", "failed"]},
        "terminal": ["merged", "failed"],
    }
    mapping["states"].clear()
    assert FLOW.to_mapping() != mapping


@given(lifecycles(ODD_NAMES | TRICKY_NAMES) | lifecycles())
def test_mapping_json_and_toml_read_back(lifecycle: Lifecycle) -> None:
    """The mapping of a lifecycle makes an equal one, also by way of JSON and TOML."""
    mapping = lifecycle.to_mapping()
    assert Lifecycle.from_mapping(mapping) == lifecycle
    assert Lifecycle.from_mapping(json.loads(json.dumps(mapping))) == lifecycle
    toml = "\n".join(f"{key} = {_toml(value)}" for key, value in mapping.items())
    assert Lifecycle.from_toml(toml) == lifecycle


def test_toml_is_read_from_its_table_or_the_top(tmp_path: Path) -> None:
    """A file may hold a lifecycle alone, or in a table among other things."""
    alone = 'moves = "queued > testing > merged | failed"'
    among = f'[tool]\nname = "x"\n[lifecycle]\n{alone}\n'
    tables = '[lifecycle.moves]\nqueued = ["testing"]\ntesting = ["merged", "failed"]\n'
    path = tmp_path / "flow.toml"
    path.write_text(among, encoding="utf-8")
    assert Lifecycle.from_toml(alone) == FLOW
    assert Lifecycle.from_toml(among) == FLOW
    assert Lifecycle.from_toml(tables) == FLOW
    assert Lifecycle.from_toml(path) == FLOW


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        ({"state": ["a"]}, "state: unknown key. Did you mean 'states'? The keys are 'states', 'initial', 'moves'"),
        ({"states": "abc"}, "states: a list of texts is needed here, not 'abc'"),
        ({"states": {"a"}}, "states: a list of texts is needed here"),
        ({"states": ["a", 1]}, "states.1: text is needed here, not 1"),
        ({"states": [b"a"]}, "states.0: text is needed here, not b'a'"),
        ({"moves": 5}, "moves: a text, or a table of lists of texts, is needed here, not 5"),
        ({"moves": None}, "moves: a text, or a table of lists of texts, is needed here, not None"),
        ({"moves": {"a": "b"}}, "moves.a: a list of texts is needed here, not 'b'"),
        ({"moves": {"text": [3]}}, "moves.text.0: text is needed here, not 3"),
        ({"moves": {"a": ["b"]}, "initial": 3}, "initial: text is needed here, not 3"),
        ({"moves": {"a": ["b"]}, "terminal": "b"}, "terminal: a list of texts is needed here, not 'b'"),
        ({"moves": {"a": ["b", "b"]}}, "'b' named twice after 'a'. Name each state once"),
        ({"states": ["a", "b", "a"], "moves": {"a": ["b"]}}, "named twice: 'a'. Name each state once"),
        ({"states": ["a", "be"], "moves": {"a": ["b"]}}, "moves names 'b', which is no state. Did you mean 'be'?"),
        ({"states": ["a", "b"], "moves": "a > b; c"}, "moves names 'c', which is no state"),
        ({"moves": "a >"}, "line 1, column 4: a name is missing"),
        ({"moves": "a > b; initial = a", "initial": "b"}, "initial is 'b' here and 'a' in the text"),
        ({}, "the lifecycle is empty"),
    ],
)
def test_what_cannot_be_read_is_named(mapping: dict[str, Any], says: str) -> None:
    """An unknown key or a value of the wrong kind is an error that names it and what is needed there."""
    with pytest.raises(InvalidLifecycleError) as caught:
        Lifecycle.from_mapping(mapping)
    assert says in str(caught.value)


def test_all_mistakes_of_kind_are_told_at_once() -> None:
    """One error names every place that needs a change."""
    with pytest.raises(InvalidLifecycleError) as caught:
        Lifecycle.from_mapping({"stats": [], "moves": {"a": 1}, "initial": 2})
    assert [line.split(":")[0].strip() for line in str(caught.value).split("\n")[1:]] == ["initial", "moves.a", "stats"]


def test_only_a_mapping_is_a_mapping() -> None:
    """Lists and texts are refused as values."""
    with pytest.raises(InvalidValueError, match="a mapping is needed here, not list"):
        Lifecycle.from_mapping([])  # type: ignore[arg-type]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing file, other text and other bytes are told apart, and each error names the file."""
    missing, other, binary = (tmp_path / name for name in ("missing.toml", "other.toml", "binary.toml"))
    other.write_text("queued > testing", encoding="utf-8")
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidValueError, match=r"missing\.toml cannot be opened: No such file"):
        Lifecycle.from_toml(missing)
    with pytest.raises(InvalidLifecycleError, match=r"other\.toml is no TOML"):
        Lifecycle.from_toml(other)
    with pytest.raises(InvalidLifecycleError, match=r"binary\.toml is no TOML"):
        Lifecycle.from_toml(binary)


def test_a_path_given_as_text_is_explained() -> None:
    """Text is read as TOML, so a path as text says how to name a file."""
    with pytest.raises(InvalidLifecycleError, match=r"To read a file, give its path as pathlib\.Path"):
        Lifecycle.from_toml("flow.toml")
