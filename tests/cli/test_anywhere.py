"""Each command that looks or mends, once on each backend."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from batchstate import Lifecycle, Retry, open_queue

if TYPE_CHECKING:
    from tests.cli.terminal import Command

FLOW = "queued > testing > merging > merged; testing | merging > failed"
M = ("-q", "merges", "-l", FLOW)
E = ("-q", "emails")


def test_looking_at_batches_and_mending_them(anywhere: Command) -> None:
    """Batches are counted, listed, shown, moved, filed, retired and purged through the command."""
    with open_queue("merges", anywhere.url, lifecycle=Lifecycle.parse(FLOW), by="setup") as queue:
        for number in range(3):
            queue.create(f"batch-{number}", requests=[f"pr-{number}", "pr-shared"], attributes={"n": number})

    [summary] = anywhere("status", "--json").json
    assert summary["batches"] == {"queued": 3}
    assert anywhere("queues", "--json").json == ["merges"]
    assert [b["id"] for b in anywhere("list", "queued", *M, "--json").json] == ["batch-0", "batch-1", "batch-2"]
    assert "queued (3)" in anywhere("lifecycle", *M).out

    assert anywhere("advance", "batch-0", "testing", *M, "--why", "by hand", "--json").json["outcome"] == "moved"
    assert anywhere("advance", "batch-0", "failed", *M).code == 0
    shown = anywhere("show", "batch-0", *M, "--json").json
    assert [move["why"] for move in shown["history"]] == ["", "by hand", ""]
    assert shown["records_agree"]
    assert len(anywhere("show", "pr-shared", *M, "--json").json["attempts"]) == 3

    assert anywhere("ensure", "batch-1", *M[:2], "--json").json == {"ensured": ["batch-1"], "retired": []}
    assert anywhere("reconcile", *M, "--yes", "--json").json["looked"] == 3
    assert anywhere("tidy", *M, "--dry-run", "--json").json == {"lapsed": 0, "would_mend": 0, "would_delete": 0}
    assert anywhere("retire", "batch-0", *M, "--json").json == {"retired": ["batch-0"]}
    said = anywhere("purge", *M, "--older-than", "0s", "--yes", "--json")
    assert (said.code, said.json) == (0, {"deleted": 1, "more": False}), said.err
    assert anywhere("tidy", *M, "--yes").code == 0
    said = anywhere("check", *M)
    assert (said.code, said.out) == (0, "All is well.\n"), said.err
    said = anywhere("watch", "--times", "1")
    assert (said.code, "queued 2" in said.out) == (0, True)


def test_looking_at_jobs_and_mending_them(anywhere: Command) -> None:
    """Jobs are added, listed, paused, limited, released, revived, removed and swept through the command."""
    with open_queue("emails", anywhere.url, by="setup") as queue:
        for number in range(6):
            queue.add(f"email-{number}", {"n": number}, group="a", max_attempts=1)
        claim = queue.claim(2)
        assert claim is not None
        claim.settle({job.id: Retry("refused") for job in claim})
        held = queue.claim(2, lease="1h")
        assert held is not None

    jobs = anywhere("status", "--json").json[0]["jobs"]
    assert [jobs[name] for name in ("waiting", "active", "dead", "claims", "lapsed")] == [2, 2, 2, 1, 0]
    assert [job["id"] for job in anywhere("jobs", "waiting", "-g", "a", *E, "--json").json] == ["email-4", "email-5"]
    assert anywhere("show", "email-0", *E, "--json").json["job"]["error"] == "refused"
    assert [job["id"] for job in anywhere("dead", "--error", "fuse", *E, "--json").json] == ["email-0", "email-1"]

    assert anywhere("pause", "-g", "a", "--why", "down", *E).code == 0
    assert anywhere("ceiling", "3", "-g", "a", *E).code == 0
    [group] = [g for g in anywhere("status", "--json").json[0]["jobs"]["groups"] if g["group"] == "a"]
    assert (group["paused"], group["ceiling"]) == ("down", 3)
    assert anywhere("resume", "-g", "a", *E).code == 0

    said = anywhere("release", held.id, *E, "--yes", "--why", "hangs", "--by", "ada", "--json")
    assert sorted(said.json["released"]) == ["email-2", "email-3"]
    last = anywhere("show", held.id, *E, "--json").json["history"][-1]
    assert (last["to"], last["by"], last["why"]) == ("settled", "ada", "hangs")
    assert anywhere("sweep", *E, "--json").json["returned"] == []
    assert anywhere("revive", "email-0", *E, "--json").json == {"revived": ["email-0"], "refused": {}}
    assert anywhere("remove", "email-1", *E, "--json").json == {"removed": ["email-1"], "refused": {}}
    assert anywhere("add", "-", *E, "--json", text='{"id": "new"}\n{"id": "email-5"}').json == {
        "added": 1,
        "duplicates": 1,
        "refused": [],
    }
    assert len(anywhere("jobs", "waiting", *E, "--json").json) == 6
    said = anywhere("check", *E)
    assert (said.code, said.out) == (0, "All is well.\n"), said.err
    (anywhere.folder / "app.py").write_text("def handle(job): ...\n", encoding="utf-8")
    said = anywhere("work", "app:handle", *E, "--burst", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out.splitlines()[-1])["ends"]["completed"] == 6
