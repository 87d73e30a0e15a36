"""What `--json` prints has the shape that the documentation shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from batchstate import Lifecycle, Retry, open_queue
from tests.cli.terminal import Command

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
    ("check", ("check", *M)),
    ("advance --dry-run", ("advance", "batch-0", "testing", *M, "-n")),
    ("advance", ("advance", "batch-0", "testing", *M)),
    ("ensure --dry-run", ("ensure", "batch-0", *M[:2], "-n")),
    ("ensure", ("ensure", "batch-0", *M[:2])),
    ("reconcile --dry-run", ("reconcile", *M, "-n")),
    ("reconcile", ("reconcile", *M, "-y")),
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
    ("pause", ("pause", *E, "--why", "down")),
    ("pause", ("pause", *E, "-g", "a", "--why", "down")),
    ("ceiling", ("ceiling", "4", *E, "-g", "a")),
    ("ceiling", ("ceiling", "none", *E)),
    ("storage copy --dry-run", ("storage", "copy", "STORE", "sqlite:///other.db", *E, "-n")),
    ("storage copy", ("storage", "copy", "STORE", "sqlite:///other.db", *E)),
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


def test_every_documented_shape_is_tried() -> None:
    """No shape is documented that no call shows."""
    assert {heading for heading, _ in CALLS} == SHAPES.keys()


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
