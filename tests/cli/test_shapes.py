"""What `--json` prints has the shape that the documentation shows."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from batchstate import Batch, Lifecycle, Retry, create_batch, open_queue
from batchstate.transition import record_of
from tests.cli.terminal import PATIENCE, Command, started, wait_for

FLOW = "queued > testing > merging > merged; testing | merging > failed"
SHAPES = {
    heading: json.loads(example)
    for heading, example in re.findall(
        r"^### ([^\n]*)\n[^#]*?```json\n(.*?)```",
        Path(__file__).parents[2].joinpath("docs", "command-json.md").read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
}
"""The documented shapes, by the heading above each."""

FREE = {"batches", "attributes", "payload", "outcomes", "refused", "facts"}
"""Mappings whose keys are the user's, and values that are."""

M = ("-q", "merges", "-l", FLOW)
E = ("-q", "emails")
CALLS: list[tuple[str, tuple[str, ...]]] = [
    ("status", ("status",)),
    ("queues", ("queues",)),
    ("list", ("list", *M)),
    ("show, of a batch", ("show", "batch-4", *M)),
    ("show, of a batch", ("show", "CLAIM", *E)),
    ("show, of a job or a request", ("show", "email-0", *E)),
    ("show, of a job or a request", ("show", "pr-1", *M)),
    ("jobs", ("jobs", "active", *E)),
    ("jobs", ("dead", *E)),
    ("lifecycle", ("lifecycle", *M)),
    ("lifecycle", ("lifecycle", *M, "--no-counts")),
    ("tidy --dry-run", ("tidy", *M, "-n")),
    ("advance --dry-run", ("advance", "batch-0", "testing", *M, "-n")),
    ("advance", ("advance", "batch-0", "testing", *M)),
    ("ensure --dry-run", ("ensure", "batch-0", *M[:2], "-n")),
    ("ensure", ("ensure", "batch-0", *M[:2])),
    ("reconcile --dry-run", ("reconcile", *M, "-n")),
    ("reconcile", ("reconcile", *M, "-y")),
    ("check", ("check", *M)),
    ("retire --dry-run", ("retire", "batch-4", *M, "-n")),
    ("retire", ("retire", "batch-4", *M)),
    ("purge --dry-run", ("purge", *M, "-n")),
    ("purge", ("purge", *M, "-y")),
    ("tidy", ("tidy", *M, "-y")),
    ("sweep --dry-run", ("sweep", *E, "-n")),
    ("sweep", ("sweep", *E)),
    ("revive --dry-run", ("revive", "email-0", *E, "-n")),
    ("revive", ("revive", "email-0", "nobody", *E, "-y")),
    ("remove --dry-run", ("remove", "email-0", *E, "-n")),
    ("remove", ("remove", "email-0", "nobody", *E, "-y")),
    ("release --dry-run", ("release", "CLAIM", *E, "-n")),
    ("release", ("release", "CLAIM", *E, "-y")),
    ("pause --dry-run", ("pause", *E, "--why", "down", "-n")),
    ("pause", ("pause", *E, "--why", "down")),
    ("pause", ("pause", *E, "-g", "a", "--why", "down")),
    ("ceiling --dry-run", ("ceiling", "4", *E, "-g", "a", "-n")),
    ("ceiling", ("ceiling", "4", *E, "-g", "a")),
    ("ceiling", ("ceiling", "none", *E)),
    ("storage copy --dry-run", ("storage", "copy", "STORE", "sqlite:///other.db", *E, "-n")),
    ("storage copy", ("storage", "copy", "STORE", "sqlite:///other.db", *E)),
    ("pause --dry-run", ("resume", *E, "-n")),
    ("pause", ("resume", *E)),
    ("add", ("add", "jobs.jsonl", *E)),
    ("storage init", ("storage", "init")),
    ("storage info", ("storage", "info")),
]
"""What is called one after the other, and the shape that each answer has."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What each call answers, in a store that has something for all of them."""
    folder = tmp_path_factory.mktemp("shapes")
    command = Command(f"sqlite:///{folder / 'store.db'}", folder)
    with open_queue("merges", command.url, lifecycle=Lifecycle.parse(FLOW), by="setup") as queue:
        for number in range(5):
            queue.create(f"batch-{number}", requests=[f"pr-{number}"], attributes={"n": number})
        old = Batch("batch-old", "merges", "merging", request_ids=("pr-old",))
        queue.store.delete_records([record_of(create_batch(queue.store, old, clock=lambda: 1_700_000_000_000))])
        queue.advance("batch-4", "testing", source="queued")
        queue.advance("batch-4", "failed", source="testing", why="red")
    with open_queue("emails", command.url, by="setup") as queue:
        for number in range(6):
            queue.add(f"email-{number}", {"n": number}, group="a", max_attempts=1)
        for claim in queue.claims(1):
            claim.settle({job.id: Retry("boom") for job in claim})
            break
        held = queue.claim(1, lease="1h")
        assert held is not None
    (folder / "jobs.jsonl").write_text('{"id": "new"}\n{"no": 1}\n', encoding="utf-8")
    stand_for = {"CLAIM": held.id, "STORE": command.url}
    return [command(*(stand_for.get(word, word) for word in words), "--json").json for _, words in CALLS]


@pytest.mark.parametrize(
    "at", range(len(CALLS)), ids=[f"{number}-{words[0]}" for number, (_, words) in enumerate(CALLS)]
)
def test_an_answer_has_the_documented_shape(answers: list[Any], at: int) -> None:
    """The answer has the keys of the documented example, each with the same kind of value."""
    assert differences(SHAPES[CALLS[at][0]], answers[at]) == []


def test_a_fault_has_the_documented_shape(answers: list[Any]) -> None:
    """The check whose shape is compared found something."""
    [checked] = [answer for (heading, _), answer in zip(CALLS, answers, strict=True) if heading == "check"]
    assert [fault["key"] for fault in checked["faults"]] == ["batch-old"]


def test_every_documented_shape_is_tried() -> None:
    """No shape is documented that no call shows."""
    assert {*(heading for heading, _ in CALLS), "watch", *EVENTS.values()} == SHAPES.keys()


EVENTS = {
    "settled": "work",
    "crashed": "work, a worker crashed",
    "draining": "work, SIGTERM came",
    "late": "work, the grace ran out",
    "ended": "work, it ended",
}
"""The headings of what `work` tells."""


def test_watch_prints_a_line_a_look(sqlite: Command) -> None:
    """`watch` prints a documented value a line, while the store is away and when it is there."""
    [away] = lines(sqlite("watch", "--json", "--times", "1").out)
    assert (away["queues"], "there is no file" in away["error"]) == (None, True)
    with open_queue("q", sqlite.url, lifecycle=Lifecycle.parse("a > b")) as queue:
        queue.create("batch-1", requests=["r"])
        queue.add("a")
    looks = lines(sqlite("watch", "--json", "--times", "2", "--every", "0.1").out)
    assert [look["queues"][0]["jobs"]["waiting"] for look in looks] == [1, 1]
    assert [difference for look in (away, *looks) for difference in differences(SHAPES["watch"], look)] == []


def test_work_prints_a_line_an_event(sqlite: Command) -> None:
    """`work` prints a documented value for each event, and at last what was done in all."""
    (sqlite.folder / "app.py").write_text(CRASHES_ONCE, encoding="utf-8")
    with open_queue("q", sqlite.url) as queue:
        queue.add("quick")
    with started(sqlite, "work", "app:handle", "-q", "q", "--json", "--grace", "100ms", "--timeout", "10ms") as running:
        assert running.stdout is not None
        seen = [json.loads(line) for line in (running.stdout.readline(), running.stdout.readline())]
        with open_queue("q", sqlite.url) as queue:
            queue.add("slow")
        wait_for(sqlite.folder / "slow")
        running.send_signal(signal.SIGTERM)
        seen += lines(running.communicate(timeout=PATIENCE)[0])
    assert [event["event"] for event in seen] == ["crashed", "settled", "draining", "late", "ended"]
    assert [difference for event in seen for difference in differences(SHAPES[EVENTS[event["event"]]], event)] == []
    assert (seen[0]["code"], seen[1]["ends"]["completed"], seen[3]["workers"]) == (7, 1, 1)
    assert (seen[-1]["code"], running.returncode, seen[-1]["ends"]["completed"]) == (4, 4, 1)


CRASHES_ONCE = """
import multiprocessing, os, time
from pathlib import Path

if multiprocessing.parent_process() and not Path("crashed").exists():
    Path("crashed").touch()
    os._exit(7)

def handle(job):
    if job.id == "slow":
        Path("slow").write_text("begun")
        time.sleep(60)
"""


def lines(text: str) -> list[Any]:
    """Answer what was printed, a JSON value a line."""
    return [json.loads(line) for line in text.splitlines()]


def differences(example: object, real: object, path: str = "") -> list[str]:
    """Answer where two values differ in shape; `null` may stand for anything."""
    if example is None or real is None:
        return []
    if type(example) is not type(real):
        return [f"{path}: {type(real).__name__} instead of {type(example).__name__}"]
    if isinstance(example, dict) and isinstance(real, dict):
        if path.rpartition(".")[2] in FREE:
            return []
        found = [f"{path}.{key}: only in one of them" for key in example.keys() ^ real.keys()]
        return found + [
            d for key in example.keys() & real.keys() for d in differences(example[key], real[key], f"{path}.{key}")
        ]
    if isinstance(example, list) and isinstance(real, list):
        return [difference for one in real for difference in differences(example[0], one, f"{path}[]")]
    return []
