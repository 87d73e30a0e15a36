"""Moves: the entries of a batch's history, and the text in which a row keeps the last of them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated

from attrs import frozen
from pydantic import Field, TypeAdapter, ValidationError

from batchstate.errors import CorruptRowError, InvalidValueError
from batchstate.values import encode_plain

__all__ = ["KEPT", "LONGEST_TEXT", "Move", "append_move", "first_move", "read_moves"]

KEPT = 20
"""How many of its latest moves a row keeps."""

LONGEST_TEXT = 1000
"""How many characters of `by` and of `why` are kept, so that a row does not grow until its backend refuses it."""


@frozen
class Move:
    """One move of a batch, written in the swap it tells of.

    Attributes:
        source: the state it left; `None` for its creation.
        to: the state it entered, or stayed in.
        version: the version this move made.
        at: when, in milliseconds since the epoch.
        by: who, as the caller said.
        why: the reason, as the caller said.
    """

    source: str | None
    to: str
    version: int
    at: int
    by: str = ""
    why: str = ""


_Int = Annotated[int, Field(strict=True)]
_Text = Annotated[str, Field(strict=True)]
_LINES = TypeAdapter(list[tuple[_Text | None, _Text, _Int, _Int, _Text, _Text]])


def append_move(text: str, move: Move) -> str:
    """Answer the history `text` with one more move; the oldest beyond the last 20 are dropped.

    The text is one JSON array a line, so that a move is added without decoding the others.
    """
    by, why = _shortened(move.by, "by"), _shortened(move.why, "why")
    line = encode_plain([move.source, move.to, move.version, move.at, by, why], "by or why")
    if not text:
        return line
    if text.count("\n") < KEPT - 1:
        return f"{text}\n{line}"
    return "\n".join([*text.split("\n")[1 - KEPT :], line])


def first_move(state: str, by: str) -> tuple[str, str]:
    """Answer the history of a batch made in `state`: what stands before its time in milliseconds, and what behind it.

    Claims are made by the thousand, and differ in nothing but the time.
    """
    return _first_move(state, _shortened(by, "by"))


@lru_cache(256)
def _first_move(state: str, by: str) -> tuple[str, str]:
    line = append_move("", Move(None, state, 1, 0, by))
    before = f"[null,{encode_plain(state, 'state')},1,"
    return before, line[len(before) + 1 :]


def _shortened(text: str, what: str) -> str:
    if type(text) is not str:
        msg = f"{what} must be a str, not {type(text).__name__}"
        raise InvalidValueError(msg)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def read_moves(text: str, where: str) -> tuple[Move, ...]:
    """Answer the moves of a history `text`; `where` names the batch in an error.

    Raises:
        CorruptRowError: the text is no history.
    """
    if not text:
        return ()
    try:
        lines = [json.loads(line) for line in text.split("\n")]
        return tuple(Move(*line) for line in _LINES.validate_python(lines))
    except (ValueError, ValidationError) as error:
        msg = f"the history of batch {where!r} cannot be read: {error}"
        raise CorruptRowError(msg, key=where) from error
