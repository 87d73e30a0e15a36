"""The demo, through the command as it is installed, on a terminal and without one."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pexpect
import pytest

from batchstate import open_queue
from batchstate.cli.demo.worker import FLOW
from tests.cli.terminal import COMMAND, environment

if TYPE_CHECKING:
    from pathlib import Path

DEMO = [*COMMAND, "demo"]
SHORT = ["--changes", "400", "--kills", "6"]


def test_the_demo_loses_nothing_and_says_so() -> None:
    """The demo ends with a proof that every change and every batch is found, though workers were killed."""
    ended = subprocess.run([*DEMO, *SHORT], env=environment(), capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "400 of 400 changes are found by their ID" in ended.stdout
    assert "Nothing was lost." in ended.stdout
    assert "400 changes were completed by exactly one claim" in ended.stdout
    assert "NO" not in ended.stdout
    assert "\x1b[" not in ended.stdout


def test_the_demo_kills_workers_for_real() -> None:
    """As many workers die as were asked for, and what they dropped is delivered again."""
    ended = subprocess.run([*DEMO, *SHORT], env=environment(), capture_output=True, text=True, timeout=100, check=False)
    rows = [line.split("│")[1:3] for line in ended.stdout.splitlines() if line.startswith("│")]
    said = {text.strip(): number.strip() for number, text in rows}
    assert said["workers killed with SIGKILL, in the middle of a move or before they acknowledged it"] == "6"
    assert said["messages delivered again, because nobody acknowledged them"] == "6"


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


def test_the_demo_leaves_its_file_where_it_is_told(tmp_path: Path) -> None:
    """With `--path` the SQLite file stays, to be looked at."""
    path = tmp_path / "merges.db"
    subprocess.run(
        [*DEMO, *SHORT, "--path", str(path)], env=environment(), capture_output=True, timeout=100, check=True
    )
    with open_queue("merges", f"sqlite:///{path}", lifecycle=FLOW) as queue:
        assert len(queue.list_by_states(["merged", "failed"])) > 30


def test_the_demo_touches_no_file_that_exists(tmp_path: Path) -> None:
    """A file that exists already is refused, and stays as it is."""
    path = tmp_path / "mine.db"
    path.write_text("mine")
    ended = subprocess.run(
        [*DEMO, *SHORT, "--path", str(path)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 2
    assert path.read_text() == "mine"


@pytest.mark.parametrize("option", [["--workers", "1"], ["--changes", "0"], ["--kills", "-1"]])
def test_the_demo_refuses_options_that_make_no_sense(option: list[str]) -> None:
    """A number out of range is refused with a usage error before anything starts."""
    ended = subprocess.run(
        [*DEMO, *option], env=environment(), capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 2
