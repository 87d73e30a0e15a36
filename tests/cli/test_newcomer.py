"""Somebody who was given nothing but `batchstate --help` finds what is wrong at three in the morning, and mends it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from batchstate import Dead, Lifecycle, open_queue
from batchstate.testing import Crash, FaultStore, crash_after

if TYPE_CHECKING:
    from tests.cli.terminal import Command

FLOW = "queued > testing > merging > merged; testing | merging > failed"


def break_something(url: str) -> None:
    """Leave a batch half moved by a worker that died, and dead jobs of two errors."""
    with open_queue(
        "merges", url, lifecycle=Lifecycle.parse(FLOW), atomic=False, by="worker-1", clock=lambda: 1_700_000_000_000
    ) as queue:
        for number in range(3):
            queue.create(f"batch-{number}", requests=[f"pr-{number}"])
            queue.advance(f"batch-{number}", "testing", source="queued")
        whole = queue.store
        queue.store = FaultStore(whole, crash_after(1))
        with pytest.raises(Crash):
            queue.advance("batch-1", "merging", source="testing", why="all green")
        queue.store = whole
    with open_queue("emails", url, by="worker-2") as queue:
        for number in range(6):
            queue.add(f"email-{number}", {"to": f"user-{number}"})
        claim = queue.claim(10)
        assert claim is not None
        for number, job in enumerate(claim):
            claim.record(job, Dead("connection refused" if number % 2 else "no such user"))
        claim.settle()


def test_a_newcomer_finds_and_mends_what_is_wrong(anywhere: Command) -> None:
    """A stuck batch is found, told why, and mended by what is said; the dead jobs of one error come back."""
    break_something(anywhere.url)

    said = anywhere("--help")
    assert "Begin with batchstate status, go on with batchstate check" in (told := " ".join(said.out.split()))
    assert "finds what is wrong and says what mends it" in told
    assert all(f" {word} " in said.out for word in ("status", "show", "check", "dead", "revive"))

    said = anywhere("status")
    assert said.code == 0, said.err
    assert all(text in said.out for text in ("emails", "merges", "testing 3"))

    said = anywhere("check")
    assert said.code == 1
    [found] = [line for line in said.out.splitlines() if "batch-1" in line and "unfiled batch" in line]
    [also] = [line for line in said.out.splitlines() if "batch-1" in line and "stale record" in line]

    said = anywhere("show", "batch-1", "--queue", "merges")
    assert all(text in said.out for text in ("in merging", "it is not filed under 'merging'", "all green", "worker-1"))

    assert anywhere("list", "merging", "-q", "merges", "--json").json == []
    assert anywhere(*mended_by(found)).out == "filed batch-1 under merging\n"
    assert [b["id"] for b in anywhere("list", "merging", "-q", "merges", "--json").json] == ["batch-1"]
    said = anywhere(*mended_by(also))
    assert (said.code, "nothing was done; --yes answers" in said.err) == (1, True)
    assert anywhere(*mended_by(also), "--yes").code == 0
    said = anywhere("check")
    assert (said.code, said.out) == (0, "All is well.\n")

    said = anywhere("dead", "--queue", "emails")
    assert all(said.out.count(error) == 3 for error in ("connection refused", "no such user"))
    said = anywhere("revive", "--queue", "emails", "--error", "connection refused", "--yes", "--json")
    assert sorted(said.json["revived"]) == ["email-1", "email-3", "email-5"]
    assert [job["error"] for job in anywhere("dead", "-q", "emails", "--json").json] == ["no such user"] * 3
    assert len(anywhere("jobs", "waiting", "-q", "emails", "--json").json) == 3


def mended_by(line: str) -> list[str]:
    """Answer the words of the command that stands at the end of a line of `check`."""
    return shlex.split(line[line.index("batchstate ") :])[1:]
