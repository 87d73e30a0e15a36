"""A batch as one string: what the scripts compare first, then what only Python reads.

    format TAB version TAB retired_at TAB mark TAB entered TAB updated_at TAB state TAB earlier marks
    created_at TAB requests
    attributes
    moves, one a line

Names have no control characters and JSON texts no raw ones, so a tab and a line break separate
without any quoting. Up to the mark, the first line is what a swap compares, as one text. It is
written anew by every swap; the second is written once and carried over by the scripts. No script
looks at the JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.errors import CorruptRowError, UnsupportedFormatError
from batchstate.wire import FORMAT, BatchRow, decode_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.entities import Batch
    from batchstate.storage import Unreadable

__all__ = ["MAX_ROW", "expected_head", "first_line", "last_lines", "read_row", "row_text"]

_OURS = f"{FORMAT}\t"

MAX_ROW = 64 * 1024 * 1024
"""The largest row, in bytes. The server could hold 512 MiB, and would serve nobody else while it copies them."""


def first_line(row: BatchRow) -> str:
    """Answer the line that every swap writes."""
    retired = "" if row.retired_at is None else row.retired_at
    earlier, _, last = row.marks.rpartition(" ")
    mark = last.rpartition(":")[2]
    return f"{row.format}\t{row.version}\t{retired}\t{mark}\t{row.entered}\t{row.updated_at}\t{row.state}\t{earlier}"


def expected_head(version: int, mark: str) -> str:
    """Answer what the first line of a live row at this version begins with; without a `mark`, whatever that is."""
    return f"{FORMAT}\t{version}\t\t{mark}\t" if mark else f"{FORMAT}\t{version}\t\t"


def last_lines(row: BatchRow) -> str:
    """Answer the lines after the second."""
    return f"{row.attributes}\n{row.moves}"


def row_text(row: BatchRow) -> str:
    """Answer the whole string."""
    return f"{first_line(row)}\n{row.created_at}\t{row.requests}\n{last_lines(row)}"


def read_row(raw: bytes, batch_id: str, queue: str) -> Batch | Unreadable:
    """Answer the batch that is stored as `raw`, or the error that names it."""
    try:
        return decode_batch(_values(raw, batch_id), queue)
    except (CorruptRowError, UnsupportedFormatError) as error:
        return error


def _values(raw: bytes, batch_id: str) -> Sequence[object]:
    """Answer the fields in the order of `BatchRow`.

    Raises:
        CorruptRowError: `raw` does not have them.
    """
    try:
        text = raw.decode()
        if not text.startswith(_OURS) and (later := _later_format(text)):
            return later, batch_id
        first, second, attributes, moves = text.split("\n", 3)
        form, version, retired, mark, entered, updated, state, earlier = first.split("\t")
        created, requests = second.split("\t")
        latest = f"{version}:{mark}" if mark else ""
        return (
            int(form),
            batch_id,
            int(version),
            state,
            int(entered),
            int(created),
            int(updated),
            int(retired) if retired else None,
            f"{earlier} {latest}" if earlier else latest,
            moves,
            requests,
            attributes,
        )
    except ValueError as error:
        raise CorruptRowError(
            f"the row of batch {batch_id!r} cannot be read: it does not have the lines and fields of one: {error}; "
            "look at it with redis-cli",
            key=batch_id,
        ) from error


def _later_format(text: str) -> int | None:
    """Answer the format of a row that a later program wrote, of which nothing else is known."""
    form = text.partition("\t")[0]
    return int(form) if form.isdecimal() and int(form) > FORMAT else None
