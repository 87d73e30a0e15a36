"""Times: instants are whole milliseconds since the epoch (UTC), durations are whatever reads best at the call."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

from batchstate.errors import InvalidValueError

__all__ = ["Clock", "Duration", "milliseconds", "moment", "wall_clock"]

Duration: TypeAlias = timedelta | float | str
"""A length of time: a `timedelta`, a number of seconds, or a text such as `"30s"`, `"250ms"`, `"1h30m"`, `"15d"`."""

Clock: TypeAlias = Callable[[], int]
"""Answers the present instant in milliseconds since the epoch."""

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*", re.ASCII)
_LONGEST = 100 * 366 * _UNITS["d"]  # a century: beyond it a unit was mistaken, and 53-bit stores begin to round


def wall_clock() -> int:
    """Answer this machine's time."""
    return time.time_ns() // 1_000_000


def moment(instant: int) -> datetime:
    """Answer an instant of ours as an aware `datetime` in UTC."""
    return datetime.fromtimestamp(instant / 1000, UTC)


def milliseconds(duration: Duration, what: str, *, zero: bool = False) -> int:
    """Answer a duration in whole milliseconds, rounded up so that nothing is ever shorter than was asked.

    Args:
        duration: a `timedelta`, seconds, or a text such as `"30s"` or `"1h30m"`.
        what: names it in an error, such as `"lease"`.
        zero: whether nothing at all is a sensible length here.

    Raises:
        InvalidValueError: it is negative, not finite, unreadable, longer than a century, or zero
            where that makes no sense. Nothing was written.
    """
    exact = _exact(duration, what)
    if not math.isfinite(exact) or exact < 0 or (exact == 0 and not zero) or exact > _LONGEST:
        least = "0 or more" if zero else "more than 0"
        msg = f"{what} must be {least} and at most 100 years, not {duration!r}"
        raise InvalidValueError(msg)
    return math.ceil(exact)


def _exact(duration: Duration, what: str) -> float:
    if isinstance(duration, timedelta):
        return duration / timedelta(milliseconds=1)
    if isinstance(duration, str):
        return _read(duration, what)
    if type(duration) in (int, float):
        return round(duration * 1000, 6) if math.isfinite(duration) else duration
    msg = f"{what} must be a timedelta, seconds or a text such as '30s', not {type(duration).__name__}"
    raise InvalidValueError(msg)


@lru_cache(256)  # every claim tells its lease, mostly the same
def _read(text: str, what: str) -> float:
    total, position = 0.0, 0
    while part := _PART.match(text, position):
        total += float(part[1]) * _UNITS[part[2]]
        position = part.end()
    if position == 0 or position != len(text):
        msg = f"{what} is unreadable: {text!r:.40}; write for example '30s', '250ms', '1h30m' or '15d'"
        raise InvalidValueError(msg)
    return round(total, 6)
