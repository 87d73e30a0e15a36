"""How the command behaves at a terminal, in a pipe, and where something is not there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest
from rich.cells import cell_len

from batchstate import Dead, JobSpec, open_queue
from tests.cli.terminal import COMMAND, PATIENCE, at_terminal, environment

if TYPE_CHECKING:
    from tests.cli.terminal import Command

LONG = "0192f0c1-7a63-7c1e-9d0a-3f1f5d1b2c3d-of-the-customers-in-the-north"


@pytest.fixture
def wide(sqlite: Command) -> Command:
    """A store whose names and errors are longer than a narrow screen is wide."""
    with open_queue("q", sqlite.url, by="setup") as queue:
        queue.add(LONG, group=LONG)
        queue.add("other", group=LONG)
        claim = queue.claim(1)
        assert claim is not None
        claim.settle({LONG: Dead("connection refused by " + "x" * 90)})
        queue.pause(LONG, reason="the relay's owner has to say that it works again, " * 3)
    return sqlite


@pytest.mark.parametrize(
    "words", [("status",), ("dead",), ("jobs", "waiting"), ("show", LONG), ("check",)], ids=" ".join
)
def test_tables_fit_a_narrow_screen_and_lose_nothing(wide: Command, words: tuple[str, ...]) -> None:
    """On a terminal of 80 columns no line of a table is longer, and long names are folded, never cut."""
    said = wide.at_terminal(*words)
    assert said.code == 0, said.out
    out = re.sub(r"\x1b\[[0-9;]*m", "", said.out)
    assert all(cell_len(line) <= 80 for line in out.splitlines())
    if words[0] in ("dead", "show"):
        assert out.count("x") >= 90
    if words[0] in ("dead", "status"):
        folded = "".join(line.strip().split(" ")[0] for line in out.splitlines())
        assert LONG in folded


@pytest.mark.parametrize(
    "words",
    [("status",), ("dead",), ("jobs", "waiting"), ("list", "claimed", "settled"), ("show", "lines")],
    ids=" ".join,
)
@pytest.mark.parametrize("columns", ["", "40"])
def test_what_is_piped_is_never_folded(wide: Command, words: tuple[str, ...], columns: str) -> None:
    """Where there is no terminal each row is one line with whole values, whatever COLUMNS says, also of many lines."""
    error = "one\n\ttwo " + "y" * 800
    with open_queue("q", wide.url) as queue:
        queue.add("lines", {"big": "z" * 3_000}, group="g")
        claim = queue.claim(1, group="g")
        assert claim is not None
        claim.settle({"lines": Dead(error)})
    said = wide(*words, COLUMNS=columns)
    assert said.code == 0, said.err
    rows = [line for line in said.out.splitlines() if LONG in line]
    if words[0] in ("status", "dead"):
        assert rows
        assert rows[0].split()[0] == LONG
    if words[0] == "dead":
        [row] = [line for line in said.out.splitlines() if line.split()[:1] == ["lines"]]
        assert row.rstrip().endswith(error.replace("\n", "\\n").replace("\t", "\\t"))
    if words[0] == "show":
        assert "z" * 3_000 in said.out
        assert "y" * 800 in said.out


def test_colours_are_left_out_where_the_user_says_so(wide: Command) -> None:
    """On a terminal there are colours; with NO_COLOR there are none."""
    for more, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        said = wide.at_terminal("status", **more)
        assert said.code == 0, said.out
        assert ("\x1b[31m" in said.out) is coloured


def test_a_reader_that_has_seen_enough_is_no_error(wide: Command) -> None:
    """A pipe that is closed early ends the command in silence."""
    with open_queue("many", wide.url) as queue:
        queue.add_many([JobSpec(f"job-{number}", None) for number in range(3_000)])
    with subprocess.Popen(
        [*COMMAND, "jobs", "waiting", "-q", "many", "--limit", "3000", "--json"],
        env=environment(BATCHSTATE_URL=wide.url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(PATIENCE) == 0


def test_watching_goes_on_when_the_store_comes_and_goes(sqlite: Command) -> None:
    """`watch` tells that the store is not there, shows it when it is, and keeps the last picture when it has gone."""
    running = at_terminal(sqlite, "watch", "--every", "0.1")
    running.expect("there is no file")
    with open_queue("first-queue", sqlite.url) as queue:
        queue.add("a")
    running.expect("first-queue")
    (sqlite.folder / "store.db").rename(sqlite.folder / "elsewhere.db")
    running.expect("there is no file")
    running.expect("first-queue")
    (sqlite.folder / "elsewhere.db").rename(sqlite.folder / "store.db")
    running.expect("1 queue")
    running.sendintr()
    running.expect(pexpect.EOF)
    running.close()
    assert running.exitstatus == 0


def test_looking_makes_no_store(sqlite: Command) -> None:
    """A mistyped path is told, and no empty store is left there."""
    said = sqlite("status")
    assert (said.code, "is the path right?" in said.err) == (1, True)
    assert not (sqlite.folder / "store.db").exists()
    assert sqlite("storage", "init").code == 0
    assert sqlite("status").out == "The store has no queues yet.\n"


@pytest.mark.parametrize("words", [("status",), ("check",), ("list",)], ids=" ".join)
def test_a_queue_that_is_not_there_is_told_apart_from_an_empty_one(wide: Command, words: tuple[str, ...]) -> None:
    """A mistyped queue is warned of, with the names of those that are there."""
    said = wide(*words, "-q", "qq")
    assert said.code == 0
    assert "there is no queue 'qq' yet; the store has q" in said.err
    assert wide(*words, "-q", "q").err == ""


def test_files_that_cannot_be_read_are_told_in_a_line(sqlite: Command) -> None:
    """A file that is missing, or is no text, or a folder, is named, without a traceback."""
    (sqlite.folder / "bad.jsonl").write_bytes(b'{"id": "a"}\n\xff\xfe\n')
    for name, told in (("none.jsonl", "none.jsonl"), (".", "."), ("bad.jsonl", "line 2")):
        said = sqlite("add", name, "-q", "q")
        assert said.code == 1
        assert told in said.err
        assert "Traceback" not in said.err


def test_questions_without_anybody_to_answer_say_how_to_go_on(wide: Command) -> None:
    """In a script a question is not asked in vain: what to give instead is told."""
    said = wide("pause")
    assert (said.code, "--why" in said.err) == (2, True)
    said = wide("remove", "other", LONG)
    assert (said.code, "--yes answers for a script" in said.err) == (1, True)


def test_the_version_and_the_completion_are_told(sqlite: Command) -> None:
    """`--version` and `--show-completion` need no store, and the completion completes commands."""
    assert sqlite("--version", BATCHSTATE_URL="").out.startswith("batchstate")
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # tests may run under no shell
    assert "_BATCHSTATE_COMPLETE=complete_bash" in sqlite("--show-completion", "bash", **named).out
    said = sqlite(COMP_WORDS="batchstate sta", COMP_CWORD="1", _BATCHSTATE_COMPLETE="complete_bash")
    assert said.out.split() == ["status"]


def test_the_pictures_of_the_documentation_are_drawn(tmp_path: Path) -> None:
    """The script that draws them runs."""
    script = Path(__file__).parents[2] / "docs" / "screenshots.py"
    subprocess.run([sys.executable, script, tmp_path], env=environment(), check=True, timeout=PATIENCE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["show.svg", "status.svg", "watch.svg"]
    assert "batch-17" in (tmp_path / "show.svg").read_text(encoding="utf-8")
