"""When to start another worker where one has crashed, and when to give up."""

from __future__ import annotations

from typing import Final

__all__ = ["Restarts"]


class Restarts:
    """Counts the crashes in a row of workers that got nowhere, and says how long to wait after each.

    A worker has got somewhere when it settled a claim, or lived for a minute. The first crash costs no wait; then half
    a second, which doubles with each crash, up to half a minute. So a worker that was killed once is replaced at once,
    and a program that cannot start does not take the whole machine.

    Args:
        most: after how many such crashes in a row, plus one, to give up.
    """

    FIRST: Final = 0.5
    LONGEST: Final = 30.0
    LONG_LIFE: Final = 60.0

    def __init__(self, most: int) -> None:
        self._most = most
        self._in_a_row = 0

    def got_somewhere(self) -> None:
        """Begin to count anew: a worker works."""
        self._in_a_row = 0

    def crashed(self, lived: float) -> float | None:
        """Answer for how many seconds to wait before another one is started, `None` to give up.

        Args:
            lived: for how many seconds it lived.
        """
        self._in_a_row = 1 if lived >= self.LONG_LIFE else self._in_a_row + 1
        if self._in_a_row > self._most:
            return None
        return 0.0 if self._in_a_row == 1 else min(self.FIRST * 2.0 ** (self._in_a_row - 2), self.LONGEST)
