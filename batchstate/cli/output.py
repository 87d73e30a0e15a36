"""How commands show what they found: tables for people, JSON for programs, colours on a terminal alone."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any
from zlib import crc32

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from batchstate.cli.safe import SafeConsole, clean, clean_json
from batchstate.times import moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from batchstate import Batch, GroupCounts, Job

__all__ = [
    "ago",
    "batch_json",
    "complain",
    "errors",
    "group_json",
    "job_json",
    "json_text",
    "out",
    "print_json",
    "print_json_line",
    "say",
    "state_text",
    "table",
    "when",
]

_ENDLESS = 1_000_000
"""How wide what is no terminal is: nothing is folded there, so that `grep` and `awk` find whole values."""

out = SafeConsole(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else _ENDLESS)
"""Where results go. rich leaves colours out where this is no terminal, and where `NO_COLOR` is set."""

errors = SafeConsole(stderr=True, highlight=False)
"""Where errors and progress go."""

_COLOURS = ("cyan", "magenta", "blue", "yellow", "bright_cyan", "bright_blue")
_PROSE = {"error", "why", "by", "says", "mend it with", "attributes"}
"""The columns that may be broken into lines; the others are copied into the next command, so they stay whole."""
_LEGIBLE = 12
"""How many characters a column of prose needs at least."""
_BESIDE = 3
"""How many characters each column takes beside its text."""
_ENDS = {
    "merged": "green",
    "succeeded": "green",
    "settled": "green",
    "failed": "red",
    "dead": "red",
    "abandoned": "red",
}


def print_json(value: object) -> None:
    """Print a value as JSON, on its own."""
    out.file.write(clean_json(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def print_json_line(value: object) -> None:
    """Print a value as a line of JSON, at once."""
    out.file.write(json_text(value) + "\n")
    out.file.flush()


def json_text(value: object) -> str:
    """Answer a value as JSON in one line."""
    return clean_json(json.dumps(value, ensure_ascii=False))


def say(text: str) -> None:
    """Print a line for a person as it is: no markup, no wrapping, so that it can be copied."""
    out.print(Text(clean(text)), soft_wrap=True)


def complain(text: str) -> None:
    """Print a line about what is wrong to where errors go."""
    errors.print(Text(clean(f"batchstate: {text}")), soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[str] = ()) -> None:
    """Print a table, the columns named in `right` set flush right. Values are shown as they are, never as markup.

    Names stay in one piece, for the next command; where the screen is too narrow for that, they are folded, never cut.
    Where there is no screen, each row is one line, and line feeds and tabs within it are shown as escapes.
    """
    cells = [[cell if isinstance(cell, Text) else _cell(str(cell)) for cell in row] for row in rows]
    if title:
        out.print(Text(clean(title), style="italic"), soft_wrap=True)
    drawn = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    numbers = set(right)
    whole = _fits(columns, cells)
    for column in columns:
        drawn.add_column(
            column,
            justify="right" if column in numbers else "left",
            overflow="fold",
            no_wrap=column not in _PROSE and (whole or column in numbers),
        )
    for row in cells:
        drawn.add_row(*row)
    out.print(drawn)


def _cell(text: str) -> Text:
    return Text(clean(text if out.is_terminal else text.replace("\n", "\\n").replace("\t", "\\t")))


def _fits(columns: Sequence[str], cells: Sequence[Sequence[Text]]) -> bool:
    """Answer if the screen has room for the names in one piece, and some for the prose beside them."""
    widths = [max((row[at].cell_len for row in cells), default=0) for at in range(len(columns))]
    needed = (
        min(width, _LEGIBLE) if column in _PROSE else max(width, len(column))
        for column, width in zip(columns, widths, strict=True)
    )
    return sum(needed) + _BESIDE * len(columns) <= out.width


def state_text(state: str) -> Text:
    """Answer a state's name in a colour of its own."""
    colour = _ENDS.get(state) or _COLOURS[crc32(state.encode()) % len(_COLOURS)]
    return Text(clean(state), style=colour)


def when(instant: int | None) -> str:
    """Answer an instant as a person reads it, in UTC."""
    return "" if instant is None else moment(instant).strftime("%Y-%m-%d %H:%M:%S")


def ago(instant: int | None, now: int) -> str:
    """Answer how long ago an instant is, or in how long it will be."""
    if instant is None:
        return ""
    seconds = abs(now - instant) / 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            said = f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
            break
    else:
        said = f"{seconds:.0f} s"
    return said if instant <= now else f"in {said}"


def batch_json(batch: Batch) -> dict[str, Any]:
    """Answer a batch in the shape that `--json` prints."""
    return {
        "id": batch.id,
        "queue": batch.queue,
        "state": batch.state,
        "version": batch.version,
        "entered": batch.entered,
        "request_ids": list(batch.request_ids),
        "attributes": batch.attributes,
        "created_at": batch.created_at,
        "updated_at": batch.updated_at,
        "retired_at": batch.retired_at,
        "history": [
            {"source": m.source, "to": m.to, "version": m.version, "at": m.at, "by": m.by, "why": m.why}
            for m in batch.history
        ],
    }


def job_json(job: Job) -> dict[str, Any]:
    """Answer a job in the shape that `--json` prints."""
    names = (
        "id queue payload group place order deliveries attempts stalls max_attempts error claim added_at due_at "
        "expires_at dead_at"
    )
    return {name: getattr(job, name) for name in names.split()}


def group_json(group: GroupCounts) -> dict[str, Any]:
    """Answer a group's counts in the shape that `--json` prints."""
    names = "group waiting active scheduled dead ceiling paused oldest"
    return {name: getattr(group, name) for name in names.split()}
