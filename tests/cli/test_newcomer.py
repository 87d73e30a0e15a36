"""Somebody who was given nothing but `batchstate --help` finds what is wrong at three in the morning, and mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate import Dead, JobStorage, Lifecycle, open_queue
from batchstate.testing import Crash, FaultStore, crash_after

if TYPE_CHECKING:
    from tests.cli.terminal import Command

FLOW = "queued > testing > merging > merged; testing | merging > failed"


def break_something(url: str) -> bool:
    """Leave a batch half moved by a worker that died, and dead jobs of two errors; answer if there are jobs."""
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
        if not isinstance(queue.store, JobStorage):
            return False
        for number in range(6):
            queue.add(f"email-{number}", {"to": f"user-{number}"})
        claim = queue.claim(10)
        assert claim is not None
        for number, job in enumerate(claim):
            claim.record(job, Dead("connection refused" if number % 2 else "no such user"))
        claim.settle()
        return True


def test_a_newcomer_finds_and_mends_what_is_wrong(anywhere: Command) -> None:
    """A stuck batch is found, told why, with what mends it, and the dead jobs of one error come back."""
    has_jobs = break_something(anywhere.url)

    said = anywhere("--help")
    assert all(word in said.out for word in ("status", "show", "check", "ensure", "dead", "revive"))

    said = anywhere("status")
    assert said.code == 0, said.err
    assert "merges" in said.out
    assert "testing 3" in said.out

    said = anywhere("check", "--queue", "merges", "--lifecycle", FLOW)
    assert said.code == 1
    assert "unfiled batch" in said.out
    assert "batchstate ensure batch-1" in said.out

    said = anywhere("show", "batch-1", "--queue", "merges", "--lifecycle", FLOW)
    assert "in merging" in said.out
    assert "it is not filed under 'merging'" in said.out
    assert "all green" in said.out

    assert anywhere("list", "merging", "-q", "merges", "-l", FLOW, "--json").json == []
    assert anywhere("ensure", "batch-1", "--queue", "merges").code == 0
    assert [b["id"] for b in anywhere("list", "merging", "-q", "merges", "-l", FLOW, "--json").json] == ["batch-1"]
    assert anywhere("reconcile", "-q", "merges", "-l", FLOW, "--yes").code == 0
    said = anywhere("check", "--queue", "merges", "--lifecycle", FLOW)
    assert (said.code, said.out.strip()) == (0, "All is well.")

    if not has_jobs:
        return
    said = anywhere("dead", "--queue", "emails")
    assert "connection refused" in said.out
    assert "no such user" in said.out
    said = anywhere("revive", "--queue", "emails", "--error", "connection refused", "--yes", "--json")
    assert sorted(said.json["revived"]) == ["email-1", "email-3", "email-5"]
    assert [job["error"] for job in anywhere("dead", "-q", "emails", "--json").json] == ["no such user"] * 3
    assert len(anywhere("jobs", "waiting", "-q", "emails", "--json").json) == 3
