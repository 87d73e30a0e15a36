"""The text form of a lifecycle."""

from __future__ import annotations

import pytest
from hypothesis import given

from batchstate.errors import InvalidLifecycleError, InvalidNameError, InvalidValueError
from batchstate.lifecycle import Lifecycle
from tests.unit.lifecycles import ODD_NAMES, TRICKY_NAMES, lifecycles


def test_a_chain_declares_states_and_moves() -> None:
    """Chains name the states in order, `|` lists alternatives on either side, the first state begins."""
    flow = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")
    assert flow.states == ("queued", "testing", "merging", "merged", "failed")
    assert flow.initial == "queued"
    assert flow.terminal == {"merged", "failed"}
    assert flow.moves == (
        ("queued", "testing"),
        ("testing", "merging"),
        ("testing", "failed"),
        ("merging", "merged"),
        ("merging", "failed"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "a > b; b > c | d",
        "a>b;b>c|d",
        "\n  a > b  # the beginning\r\n# nothing; here > at all\n\tb > c | d;;\n",
        "a | b | c | d\rb > d\ra > b > c",
        '"a" > "b" > "c"; b > "d" | c; a > b',
        "a > b > c | d; initial = a; terminal = d | c",
    ],
)
def test_one_lifecycle_can_be_written_in_many_ways(text: str) -> None:
    """Line ends, semicolons, spaces, comments, quotes and repetition do not change what is said."""
    assert Lifecycle.parse(text) == Lifecycle(["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("b", "d")])


def test_quotes_hold_what_a_bare_name_cannot() -> None:
    """In double quotes a name may have spaces and signs, with a backslash before quotes and backslashes."""
    flow = Lifecycle.parse(r'"on hold; #1" > "say \"hi\"" > "a\\b" > c:d/e-f.g')
    assert flow.states == ("on hold; #1", 'say "hi"', "a\\b", "c:d/e-f.g")


def test_settings_stand_in_the_text_or_beside_it() -> None:
    """Where a batch begins and where claims end can be said in either place, or in both alike."""
    inside = Lifecycle.parse("c > d; b > c; initial = b; settled = d; abandoned = c; terminal = d")
    beside = Lifecycle.parse("c > d; b > c", initial="b", settled="d", abandoned="c", terminal=["d"])
    both = Lifecycle.parse("c > d; b > c; initial = b", initial="b", settled="d", abandoned="c")
    assert inside == beside == both
    assert (inside.initial, inside.settled, inside.abandoned) == ("b", "d", "c")


def test_a_state_may_be_called_like_a_setting() -> None:
    """Only the sign `=` makes a setting of a word."""
    flow = Lifecycle.parse("initial > terminal; initial = initial")
    assert flow.states == ("initial", "terminal")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a > b > c; a | b > d", "a > b > c; a | b > d"),
        ("a > b; b > c | d", "a > b > c | d"),
        ("a > b > a; b > c", "a > b > c | a"),
        ("c | b | a; c > a; a > b", "c | b | a; c > a; a > b"),
        ("z | a; a > z; initial = a", "z; a > z; initial = a"),
        ('"b c" > "-"; settled = "-"', '"b c" > "-"; settled = "-"'),
    ],
)
def test_the_text_that_is_written_is_short(text: str, written: str) -> None:
    """The main line comes first, then what leaves it; the rest is said only where it has to be."""
    assert str(Lifecycle.parse(text)) == written


@given(lifecycles(ODD_NAMES | TRICKY_NAMES) | lifecycles())
def test_what_is_written_reads_back(lifecycle: Lifecycle) -> None:
    """The text of a lifecycle makes an equal one, whatever its names, order and settings."""
    assert Lifecycle.parse(str(lifecycle)) == lifecycle


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("a b > c", 1, 3, "two names in a row. Write '>' or '|' between them, or put a name with spaces in double"),
        ("a > b\nb >\nc", 2, 4, "a name is missing after '>'. Name a state"),
        ("> a", 1, 1, "a name is missing before '>'"),
        ("a > b\r\nb | > c", 2, 5, "a name is missing before '>'"),
        ("a > b;; | c", 1, 9, "a name is missing before '|'"),
        ("a -> b", 1, 3, "The arrow is '>' alone"),
        ("a--> b", 1, 1, "The arrow is '>' alone"),
        ("a => b", 1, 1, "'a' is no setting. The settings are initial, terminal, settled, abandoned; the arrow is '>'"),
        ("a \u2192 b", 1, 3, "The arrow is '>'; a name with it needs quotes"),
        ("a > b, c", 1, 6, "Alternatives are listed with '|'"),
        ('a > "b', 1, 5, "this quote is not closed"),
        ('a > "b\nc"', 1, 5, "this quote is not closed"),
        (r'a > "b\n"', 1, 5, "inside, write"),
        ("a > b = c", 1, 7, "'=' has no place here"),
        ("start = a; a > b", 1, 1, "'start' is no setting"),
        ("a > b\ninitial =", 2, 9, "nothing follows the '='"),
        ("initial = a > b", 1, 11, "a setting takes no arrow"),
        ("initial = a | b", 1, 11, "'initial' takes one state"),
        ("a > b; initial = a\ninitial = a", 2, 1, "'initial' is set twice"),
    ],
)
def test_a_mistake_is_shown_where_it_stands(text: str, line: int, column: int, says: str) -> None:
    """What cannot be read names its line and column, says what to do, and points at the place."""
    with pytest.raises(InvalidLifecycleError) as caught:
        Lifecycle.parse(text)
    told, shown, pointer = str(caught.value).split("\n")
    assert told.startswith(f"line {line}, column {column}: ")
    assert says in told
    offending = text.replace("\r\n", "\n").split("\n")[line - 1]
    assert shown.strip() == offending.strip()
    assert pointer.index("^") - 4 == column - 1


def test_a_mistake_far_out_on_a_long_line_is_shown_with_its_surroundings() -> None:
    """Of a line too long to show, the part around the mistake is shown."""
    chain = " > ".join(f"s{number}" for number in range(300))
    with pytest.raises(InvalidLifecycleError) as caught:
        Lifecycle.parse(chain + " > here now")
    _, shown, pointer = str(caught.value).split("\n")
    assert len(shown) <= 80
    assert shown[pointer.index("^") :] == "now"


@pytest.mark.parametrize("setting", ["initial", "settled", "abandoned", "terminal"])
def test_two_answers_to_one_question_are_refused(setting: str) -> None:
    """A setting in the text and another one beside it is an error that names both."""
    arguments = {setting: ["b"] if setting == "terminal" else "b"}
    with pytest.raises(InvalidLifecycleError, match=rf"{setting} is .*'b'.* here and .*'a'.* in the text"):
        Lifecycle.parse(f"a > b; {setting} = a", **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [None, b"a > b", 5, ["a > b"]])
def test_only_text_is_read(bad: object) -> None:
    """What is no text is refused as a value."""
    with pytest.raises(InvalidValueError, match="defined by text"):
        Lifecycle.parse(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ['""', '"a\tb"', "x" * 256, "\ud800"])
def test_names_that_no_state_can_have_are_refused(name: str) -> None:
    """Empty and too long names, control characters and lone surrogates are refused as names."""
    with pytest.raises(InvalidNameError):
        Lifecycle.parse(f"a > {name}")
