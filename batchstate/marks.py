"""Marks: the fresh random ID that every write of a row leaves in it, and how a row remembers the last of them.

Client libraries send a command again when its reply is lost. A swap that was applied the first time
then fails its own condition; only a mark, made once per call and kept over its re-sends, tells that
apart from a lost race.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["REMEMBERED", "mark_at", "marks_from", "new_mark", "remember"]

REMEMBERED = 8
"""How many of its latest writes a row remembers."""


def _random_mark() -> str:
    return os.urandom(8).hex()


_source: ContextVar[Callable[[], str]] = ContextVar("batchstate_marks", default=_random_mark)


def new_mark() -> str:
    """Answer a fresh mark: 16 hexadecimal digits, unless `marks_from` says otherwise."""
    return _source.get()()


@contextmanager
def marks_from(source: Callable[[], str]) -> Iterator[None]:
    """Take marks from `source` in this context, so that a test is deterministic. A mark has no space and no colon."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


def remember(marks: str, version: int, mark: str) -> str:
    """Answer the row's memory `marks` (`"version:mark version:mark …"`, oldest first) with one more write in it."""
    kept = marks.split(" ")[1 - REMEMBERED :] if marks else []
    return " ".join([*kept, f"{version}:{mark}"])


def mark_at(marks: str, version: int) -> str | None:
    """Answer the mark of the write that made `version`, or `None` where the row does not remember it."""
    sought = f" {version}:"
    _, found, rest = f" {marks}".partition(sought)
    return rest.partition(" ")[0] if found else None
