"""The shaper: when a consumer claims, as a pure function of what waits, for how long, and three knobs."""

from __future__ import annotations

from attrs import field, frozen

from batchstate.errors import InvalidValueError
from batchstate.times import Duration, milliseconds

__all__ = ["Shape", "Window"]


@frozen
class Shape:
    """How large a claim should be, and how long to wait for it.

    Attributes:
        min_size: claim as soon as so many wait; a preference, for `timeout` claims fewer.
        max_size: claim no more than these.
        timeout: claim what is there when the first of them has waited for so long.

    Raises:
        InvalidValueError: a knob is not positive, or `min_size` is above `max_size`.
    """

    min_size: int = 1
    max_size: int = 50
    timeout: Duration = "1s"
    timeout_ms: int = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        for name in ("min_size", "max_size"):
            size = getattr(self, name)
            if type(size) is not int or size < 1:
                msg = f"{name} must be an int of 1 or more, not {size!r}"
                raise InvalidValueError(msg)
        if self.min_size > self.max_size:
            msg = f"min_size ({self.min_size}) must not be above max_size ({self.max_size})"
            raise InvalidValueError(msg)
        object.__setattr__(self, "timeout_ms", milliseconds(self.timeout, "timeout"))

    def flush(self, waiting: int, elapsed: int) -> int:
        """Answer how many jobs to claim now, 0 for none yet.

        Args:
            waiting: how many jobs one claim could take now.
            elapsed: for how many milliseconds the window has been open.
        """
        if waiting == 0 or (waiting < self.min_size and elapsed < self.timeout_ms):
            return 0
        return min(waiting, self.max_size)


class Window:
    """For how long jobs have been seen waiting: opens when some are first seen, closes when none are.

    Args:
        shape: the knobs.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._opened: int | None = None

    def see(self, waiting: int, now: int) -> int:
        """Answer how many jobs to claim, having seen `waiting` of them at `now` (milliseconds); 0 for none yet.

        A flush closes the window; the next look, which is right after it, opens it anew if some were left.
        """
        if waiting == 0:
            self._opened = None
            return 0
        if self._opened is None:
            self._opened = now
        size = self._shape.flush(waiting, now - self._opened)
        if size:
            self._opened = None
        return size

    def remaining(self, now: int) -> int | None:
        """Answer in how many milliseconds the timeout falls due; `None` while the window is closed."""
        return None if self._opened is None else max(0, self._opened + self._shape.timeout_ms - now)
