"""The README tells the truth: its program runs as printed, its picture is the lifecycle's, its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from batchstate import Lifecycle, open_queue

if TYPE_CHECKING:
    import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The first block of a language."""
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_program_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the README runs as it stands: a batch is merging afterwards, and each job was handed over."""
    monkeypatch.chdir(tmp_path)
    with open_queue("merges", "sqlite:///merges.db") as queue:
        queue.add("mail-1", {"to": "ada"})
        queue.add("mail-2", {"to": "grace"})
    sent: list[object] = []

    names: dict[str, object] = {"send": sent.append}
    exec(compile(block("python"), "README.md", "exec"), names)  # noqa: S102 - it is what the README prints

    assert sent == [{"to": "ada"}, {"to": "grace"}]
    flow = names["flow"]
    assert isinstance(flow, Lifecycle)
    with open_queue("merges", "sqlite:///merges.db", lifecycle=flow) as queue:
        [batch] = queue.list_by_states(["merging"])
        assert (batch.id, batch.request_ids, batch.attributes) == ("batch-17", ("pr-1", "pr-2"), {"ci": "green"})
        assert [(move.to, move.by) for move in batch.history][1] == ("testing", "ci-3")
        assert queue.counts().waiting == 0
    queue_left_open = names["q"]
    if hasattr(queue_left_open, "close"):
        queue_left_open.close()


def test_the_picture_is_the_lifecycles() -> None:
    """The README's picture is what `Lifecycle.mermaid` draws of the README's lifecycle."""
    text = re.search(r'Lifecycle\.parse\("(.*?)"\)', block("python"))
    assert text is not None
    assert block("mermaid").strip() == Lifecycle.parse(text[1]).mermaid().strip()


def test_the_two_commands_stand_alone() -> None:
    """There are exactly two commands to set it up with, each alone in its block."""
    for name in ("demo", "tests"):
        found = re.findall(rf"<!-- run: {name} -->\n```console\n(.*?)```", README, re.DOTALL)
        assert len(found) == 1
        assert found[0].count("\n") == 1
