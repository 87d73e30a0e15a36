"""What is written in the project speaks of the project alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [".ci", "adapters", "batchstate", "docs", "examples", "tests"]
GENERATED = {"__pycache__", "node_modules", "data"}
WRITTEN = {"", ".css", ".html", ".js", ".json", ".lua", ".md", ".py", ".sh", ".svg", ".toml"}


def _written_files() -> Iterator[Path]:
    """Every file that a person wrote, this one left out: it names what it looks for."""
    inside = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    for path in [*ROOT.glob("[!.]*"), *inside]:
        generated = GENERATED.intersection(path.relative_to(ROOT).parts)
        if path.is_file() and path.suffix in WRITTEN and not generated:
            yield path


def _lines_with(pattern: str) -> list[str]:
    """Where the pattern stands, as `file:line: text`."""
    sought = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in _written_files()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if sought.search(line)
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param(r"(?<![\w.])/(work|root)/|/home/\w", id="a path on somebody's machine"),
        pytest.param(r"\b[FR]\d{1,2}\b(?!['\"])|\bS(?!3\b)\d{1,2}\b", id="a code from a list"),
        pytest.param(r"\b[Ii]ssue #?\d", id="the number of an issue"),
    ],
)
def test_text_needs_no_key_to_be_understood(pattern: str) -> None:
    """A rule is said in words where it is kept, not by the number it has in some list."""
    assert _lines_with(pattern) == []


def test_every_document_that_is_named_is_there() -> None:
    """A document that a text refers to is part of the project."""
    present = {path.name for path in _written_files() if path.suffix == ".md"}
    missing = [
        line
        for line in _lines_with(r"\b[\w-]+\.md\b")
        if not set(re.findall(r"\b[\w-]+\.md\b", line.split(": ", 1)[1])) <= present
    ]

    assert missing == []


def test_every_link_within_the_project_leads_somewhere() -> None:
    """A relative link in a document leads to a file or folder that is there."""
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in _written_files()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / target).exists()
    ]

    assert broken == []
