"""`work` and `add` as they are run: by a supervisor that sends signals, and by a person at a terminal."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pexpect
import pytest

from batchstate import open_queue
from batchstate.cli.restarts import Restarts
from tests.cli.terminal import PATIENCE, Command, at_terminal, started, wait_for

if TYPE_CHECKING:
    import subprocess

HANDLER = """
import os, time
from pathlib import Path

def handle(job):
    Path(f"begun-{job.deliveries}").write_text(str(os.getpid()))
    while not Path("go").exists():
        time.sleep(0.02)
"""


@pytest.fixture
def busy(sqlite: Command) -> Command:
    """A queue with one job, whose handler tells that it has begun and ends when it is allowed to."""
    (sqlite.folder / "app.py").write_text(HANDLER, encoding="utf-8")
    with open_queue("q", sqlite.url) as queue:
        queue.add("a")
    return sqlite


def work(on: Command, *words: str) -> subprocess.Popen[str]:
    """Start workers without a terminal."""
    return started(on, "work", "app:handle", "-q", "q", *words)


def counts(on: Command) -> tuple[int, int, int]:
    """Answer how many jobs wait, are held and are dead."""
    with open_queue("q", on.url) as queue:
        there = queue.counts()
        return there.waiting, there.active, there.dead


def test_sigterm_lets_the_jobs_in_hand_be_finished(busy: Command) -> None:
    """SIGTERM ends `work` with 0 when what is in hand is finished; elsewhere than on a terminal it prints lines."""
    with work(busy) as running:
        wait_for(busy.folder / "begun-1")
        running.send_signal(signal.SIGTERM)
        (busy.folder / "go").touch()
        _, said = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, said
    assert "finishing what is in hand" in said
    assert "a claim of 1 job; so far 1 completed" in said
    assert said.splitlines()[-1].startswith("1 claim  1 completed  ")
    assert "\x1b" not in said
    assert counts(busy) == (0, 0, 0)


def test_a_grace_that_runs_out_leaves_the_jobs_to_their_leases(busy: Command) -> None:
    """Where the grace is too short `work` ends with 4, and the job is held until its lease lapses."""
    with work(busy, "--grace", "300ms") as running:
        wait_for(busy.folder / "begun-1")
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=PATIENCE)
    assert running.returncode == 4, said
    assert "1 worker did not finish within the grace" in said
    assert counts(busy) == (0, 1, 0)


def test_a_killed_worker_is_replaced_and_its_job_comes_back(busy: Command) -> None:
    """A worker killed with SIGKILL is replaced; its job is delivered again when the lease has lapsed."""
    with work(busy, "--lease", "500ms") as running:
        os.kill(int(wait_for(busy.folder / "begun-1")), signal.SIGKILL)
        wait_for(busy.folder / "begun-2")
        running.send_signal(signal.SIGTERM)
        (busy.folder / "go").touch()
        _, said = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, said
    assert "was killed by signal 9; another takes its place" in said
    assert counts(busy) == (0, 0, 0)


def test_workers_that_never_come_up_end_the_work(sqlite: Command) -> None:
    """A program that crashes as soon as a worker loads it is tried again after a wait, and then given up with 5."""
    (sqlite.folder / "app.py").write_text(
        "import multiprocessing, os\n\ndef handle(job): ...\n\nif multiprocessing.parent_process():\n    os._exit(3)\n",
        encoding="utf-8",
    )
    said = sqlite("work", "app:handle", "-q", "q", "--restarts", "2", "--processes", "2")
    assert said.code == 5, said.err
    told = [line.partition("crashed with exit code 3; ")[2] for line in said.err.splitlines() if "crashed" in line]
    assert told[:3] == [
        "another takes its place",
        "another takes its place in 0.5 s",
        "too many in a row crashed before they had settled anything, so this ends",
    ]


def test_waits_between_crashes_grow_up_to_a_bound() -> None:
    """The first crash costs no wait, the next half a second and then twice as long each, up to half a minute."""
    restarts = Restarts(12)
    assert [restarts.crashed(0.1) for _ in range(13)] == [0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30, None]


def test_a_worker_that_got_somewhere_begins_the_count_anew() -> None:
    """After a settled claim, or a life of a minute, the next crash is the first of its row."""
    restarts = Restarts(2)
    assert [restarts.crashed(1), restarts.crashed(1)] == [0, 0.5]
    restarts.got_somewhere()
    assert [restarts.crashed(1), restarts.crashed(1), restarts.crashed(60), restarts.crashed(1)] == [0, 0.5, 0, 0.5]
    assert restarts.crashed(1) is None


def test_ctrl_c_at_a_terminal_drains_and_again_ends_at_once(busy: Command) -> None:
    """Ctrl-C lets what is in hand be finished, beside a live line; Ctrl-C once more leaves it to its lease."""
    running = at_terminal(busy, "work", "app:handle", "-q", "q")
    running.expect("0 jobs/s")
    wait_for(busy.folder / "begun-1")
    running.sendintr()
    running.expect("finishing what is in hand")
    running.sendintr()
    running.expect("did not finish")
    running.expect(pexpect.EOF)
    running.close()
    assert running.exitstatus == 4
    assert counts(busy) == (0, 1, 0)


@pytest.fixture
def many_lines(sqlite: Command) -> Command:
    """A file of 20,000 jobs."""
    lines = (json.dumps({"id": f"job-{number}", "payload": {"n": number}}) for number in range(20_000))
    (sqlite.folder / "jobs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return sqlite


def test_adding_shows_how_far_it_is_and_goes_on_where_it_stopped(many_lines: Command) -> None:
    """On a terminal `add` shows how much is done, how fast, and the time that is left; run again, it adds the rest."""
    running = at_terminal(many_lines, "add", "jobs.jsonl", "-q", "q")
    running.expect(r"[1-9]\d*/20000\S* [\d,]+/s \S*0:\d\d:\d\d\S* \S*0:\d\d:\d\d")
    running.sendintr()
    running.expect(pexpect.EOF)
    running.close()
    assert "Traceback" not in (running.before or "")
    before, _, _ = counts(many_lines)
    said = many_lines("add", "jobs.jsonl", "-q", "q", "--json")
    assert said.code == 0, said.err
    assert said.json == {"added": 20_000 - before, "duplicates": before, "refused": []}
    assert said.err == ""
    assert counts(many_lines)[0] == 20_000
