"""What others have stored is shown, and neither obeyed by the terminal nor read as markup."""

from __future__ import annotations

import json
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from rich.table import Table
from rich.text import Text

from batchstate import Lifecycle, Retry, open_queue
from batchstate.checking import mending
from batchstate.cli.safe import SafeConsole, clean, clean_json, many

if TYPE_CHECKING:
    from tests.cli.terminal import Command

EVIL = "\x1b[2J\x1b]0;owned\x07 [bold]x[/bold] [/] \x9b31m \u202egnp.exe\r"
ODD = "-x [bold]b"


@pytest.fixture
def evil(sqlite: Command) -> Command:
    """A store in which everything that may be a free text carries escapes and markup."""
    with open_queue("q", sqlite.url, lifecycle=Lifecycle.parse("a > b"), by="setup") as queue:
        queue.create(ODD, requests=["[red]r", "--help"], attributes={"a": EVIL})
        queue.advance(ODD, "b", source="a", why=EVIL)
        queue.add(ODD, {"p": EVIL}, group="[red]g", max_attempts=1)
        claim = queue.claim(1)
        assert claim is not None
        claim.settle({ODD: Retry(EVIL)})
        queue.add("held", EVIL, group="[red]g")
        queue.claim(1, lease="1h")
        queue.pause(reason=EVIL)
        queue.pause("[red]g", reason=EVIL)
    return sqlite


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("watch", "--times", "1"),
        ("list", "b", "--columns", "id,state,attributes"),
        ("show", "--", ODD),
        ("show", "held"),
        ("dead",),
        ("jobs", "active"),
        ("check",),
        ("status", "--json"),
        ("dead", "--json"),
        ("show", "--json", "--", ODD),
    ],
    ids=" ".join,
)
def test_no_command_sends_stored_escapes_to_the_terminal(evil: Command, words: tuple[str, ...]) -> None:
    """Control characters in attributes, reasons, errors, payloads and names are shown, and markup is kept as text."""
    said = evil(*words, COLUMNS="200")
    assert said.code == 0, said.err
    for character in "\x1b\x07\x9b\u202e\r":
        assert character not in said.out + said.err
    if words[0] in ("show", "dead", "status"):
        assert "[/] " in said.out


def test_names_that_look_like_options_or_markup_are_taken_as_names(evil: Command) -> None:
    """A name that begins with a dash goes behind `--`, and comes out as it went in."""
    assert evil("remove", "--dry-run", "--json", "--", ODD).json == {"would_remove": [ODD]}
    assert evil("revive", "--yes", "--", ODD).out == "revived 1 job\n"


def test_json_stays_the_value_it_was(evil: Command) -> None:
    """Escaping for the terminal changes no value."""
    assert evil("dead", "--json").json[0]["payload"] == {"p": EVIL}
    assert evil("dead", "--json").json[0]["error"] == EVIL


def test_a_console_cleans_whatever_it_draws() -> None:
    """A text that nobody cleaned before is cleaned when it is drawn, in tables too; rich's own colours pass."""
    drawn = StringIO()
    console = SafeConsole(file=drawn, force_terminal=True, width=40)
    table = Table(title=Text("t\x1bt"))
    table.add_column("c\x07")
    table.add_row(Text("\x1b[5mrow"))
    console.print(table, Text("\x9bx", style="red"))
    assert "\x1b[5m" not in drawn.getvalue()
    assert r"\x1b[5" in drawn.getvalue()
    assert "\x07" not in drawn.getvalue()
    assert "\x9b" not in drawn.getvalue()
    assert "\x1b[31m" in drawn.getvalue()


def test_cleaning_keeps_lines_tabs_and_letters() -> None:
    """Line feeds, tabs and letters of every script stay as they are."""
    assert clean("a\n\tü 日本 🎉") == "a\n\tü 日本 🎉"
    assert clean("\x00\x1b\x7f\x85\u2028\ud800") == r"\x00\x1b\x7f\x85\u2028\ud800"
    assert json.loads(clean_json(json.dumps("\x9b\u202e", ensure_ascii=False))) == "\x9b\u202e"


def test_names_are_quoted_where_they_stand_in_a_command() -> None:
    """What mends something can be copied into a shell as it is."""
    assert mending("q", "ensure", ODD) == "batchstate ensure --queue q -- '-x [bold]b'"
    assert mending("a b", "release", "c;rm") == "batchstate release --queue 'a b' 'c;rm'"


def test_one_is_no_plural() -> None:
    """One job is a job."""
    assert [many(1, "job"), many(0, "job"), many(2000, "batch", "batches")] == ["1 job", "0 jobs", "2,000 batches"]
