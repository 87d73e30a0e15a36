"""A clock that stands still until it is told to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.times import milliseconds, moment

if TYPE_CHECKING:
    from batchstate.times import Duration

__all__ = ["ManualClock"]

START = 1_750_000_000_000  # 2025-06-15T15:06:40Z: recent, and the same in every run


class ManualClock:
    """Answers the same instant, in milliseconds since the epoch, until it is advanced.

    It goes wherever a `clock=` is taken. Nothing waits for it: who advances it sees the new time at
    the next call.

    Args:
        now: the instant it starts at.
    """

    def __init__(self, now: int = START) -> None:
        self.now: int = now

    def __call__(self) -> int:
        """Answer the present instant."""
        return self.now

    def __repr__(self) -> str:
        return f"<ManualClock at {moment(self.now).isoformat()}>"

    def advance(self, duration: Duration) -> int:
        """Go on by a `timedelta`, seconds or a text such as `"30s"`; answer the new instant.

        Raises:
            InvalidValueError: the duration cannot be read, or is negative. The clock stands where it stood.
        """
        self.now += milliseconds(duration, "duration", zero=True)
        return self.now
