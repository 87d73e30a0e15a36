"""The demo, through the command as it is installed, on a terminal and without one."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pexpect
import pytest

from batchstate import open_queue
from batchstate.cli.demo.worker import FLOW
from tests.cli.terminal import COMMAND, Command, environment

if TYPE_CHECKING:
    from pathlib import Path

DEMO = [*COMMAND, "demo"]
SHORT = ["--changes", "400", "--kills", "6"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demo printed, and the file that it left."""
    path = tmp_path_factory.mktemp("demo") / "merges.db"
    ended = subprocess.run(
        [*DEMO, *SHORT, "--path", path], env=environment(), capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout, path


def test_the_demo_loses_nothing_and_says_so(shown: tuple[str, Path]) -> None:
    """The demo ends with a proof that every change and every batch is found, though workers were killed."""
    told, _ = shown
    assert "400 of 400 changes are found by their ID" in told
    assert "Nothing was lost." in told
    assert "400 changes were completed by exactly one claim" in told
    assert "NO" not in told
    assert "\x1b[" not in told


def test_the_demo_kills_workers_for_real(shown: tuple[str, Path]) -> None:
    """As many workers die as were asked for, and what they dropped is delivered again."""
    rows = [line.split("│")[1:3] for line in shown[0].splitlines() if line.startswith("│")]
    said = {text.strip(): number.strip() for number, text in rows}
    assert said["workers killed with SIGKILL, in the middle of a move or before they acknowledged it"] == "6"
    assert said["messages delivered again, because nobody acknowledged them"] == "6"


def test_the_demo_leaves_its_file_where_it_is_told(shown: tuple[str, Path]) -> None:
    """With `--path` the SQLite file stays, to be looked at."""
    with open_queue("merges", f"sqlite:///{shown[1]}", lifecycle=FLOW) as queue:
        assert len(queue.list_by_states(["merged", "failed"])) > 30


def test_the_demo_shows_progress_on_a_terminal() -> None:
    """On a terminal the demo draws its progress in place."""
    shown = pexpect.spawn(
        DEMO[0], [*DEMO[1:], *SHORT], env=environment(), timeout=100, encoding="utf-8", dimensions=(40, 120)
    )
    shown.expect("merging")
    shown.expect("Nothing was lost")
    shown.expect(pexpect.EOF)
    shown.close()
    assert shown.exitstatus == 0


def test_the_demo_touches_no_file_that_exists(sqlite: Command) -> None:
    """A file that exists already is refused, and stays as it is."""
    path = sqlite.folder / "mine.db"
    path.write_text("mine")
    assert sqlite("demo", *SHORT, "--path", str(path)).code == 2
    assert path.read_text() == "mine"


@pytest.mark.parametrize("option", [["--workers", "1"], ["--changes", "0"], ["--kills", "-1"]])
def test_the_demo_refuses_options_that_make_no_sense(sqlite: Command, option: list[str]) -> None:
    """A number out of range is refused with a usage error before anything starts."""
    assert sqlite("demo", *option).code == 2
