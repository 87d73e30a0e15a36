"""The real changes that the demo merges, and how they are gathered into batches."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Change", "Gathered", "gather", "read_changes"]

_SHIPPED = Path(__file__).parent / "changes.jsonl"  # in the wheel
_CHECKED_OUT = Path(__file__).parents[3] / "examples" / "data" / "changes.jsonl"  # in a clone


@frozen
class Change:
    """One change of a public repository: its ID, and the folder most of it lies in."""

    id: str
    group: str


@frozen
class Gathered:
    """A batch to be made: its ID, its group, and the changes in it."""

    id: str
    group: str
    requests: tuple[str, ...]


def read_changes(most: int) -> list[Change]:
    """Read the first `most` changes."""
    path = _SHIPPED if _SHIPPED.exists() else _CHECKED_OUT
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(most), strict=False)]
    return [Change(row["id"], row["group"]) for row in rows]


def gather(changes: Iterable[Change], size: int) -> list[Gathered]:
    """Gather changes into batches of one group each, `size` at the most, in the order in which they fill up."""
    batches: list[Gathered] = []
    open_groups: defaultdict[str, list[str]] = defaultdict(list)

    def close(group: str) -> None:
        batches.append(Gathered(f"batch-{len(batches) + 1:03}", group, tuple(open_groups.pop(group))))

    for change in changes:
        open_groups[change.group].append(change.id)
        if len(open_groups[change.group]) == size:
            close(change.group)
    for group in list(open_groups):
        close(group)
    return batches
