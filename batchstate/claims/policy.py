"""What a queue does with its jobs unless a call says otherwise: attempts, stalls, back-off, keeping."""

from __future__ import annotations

import random
from typing import Protocol

from attrs import field, frozen

from batchstate.errors import InvalidValueError
from batchstate.times import Duration, milliseconds

__all__ = ["Backoff", "BackoffFunction", "JobPolicy"]


class BackoffFunction(Protocol):
    """Answers how long a failed job waits before its next attempt."""

    def __call__(self, attempts: int, /) -> Duration:
        """Answer the delay after this many failures, the present one included, so 1 or more."""


@frozen
class Backoff:
    """Exponential back-off with full jitter: a random time between nothing and `first · factor^(attempts - 1)`, capped.

    Full jitter spreads the retries of jobs that failed together best; see Marc Brooker, "Exponential Backoff And
    Jitter", AWS Architecture Blog, 2015.

    Attributes:
        first: the longest wait after the first failure.
        factor: how much longer the longest wait is after each further one.
        most: the longest wait of all.
        jitter: whether to wait a random part of it; else all of it.
        seed: makes the random parts repeatable; `None` for fresh ones.
    """

    first: Duration = "1s"
    factor: float = 2.0
    most: Duration = "10m"
    jitter: bool = True
    seed: int | None = None
    _random: random.Random = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        milliseconds(self.first, "first")
        milliseconds(self.most, "most")
        if not self.factor >= 1:
            msg = f"factor must be 1 or more, not {self.factor!r}"
            raise InvalidValueError(msg)
        object.__setattr__(self, "_random", random.Random(self.seed))  # noqa: S311 - spreads load, guards no secret

    def __call__(self, attempts: int, /) -> Duration:
        """Answer the delay after this many failures, in seconds."""
        most = milliseconds(self.most, "most")
        longest = milliseconds(self.first, "first") * self.factor ** min(attempts - 1, 64)
        chosen = min(longest, most)
        return (self._random.uniform(0, chosen) if self.jitter else chosen) / 1000


def _check_duration(instance: object, attribute: object, value: Duration | None) -> None:
    del instance
    name = getattr(attribute, "name", "duration")
    if value is not None or name != "keep_dead":
        milliseconds(value, name, zero=True)  # type: ignore[arg-type]  # what is no duration is refused there


def _check_count(instance: object, attribute: object, value: object) -> None:
    del instance
    least = 0 if getattr(attribute, "name", "") == "max_stalls" else 1
    if type(value) is not int or value < least:
        msg = f"{getattr(attribute, 'name', 'count')} must be an int of {least} or more, not {value!r}"
        raise InvalidValueError(msg)


@frozen
class JobPolicy:
    """What a queue does with its jobs unless a call says otherwise.

    Attributes:
        max_attempts: with how many failures a job is dead; a job may carry its own.
        max_stalls: how many recoveries are allowed: with 0 the first stall is fatal, with 1 the second.
        backoff: how long a failed job waits.
        keep_done: how long a done job's ID is remembered, so that an `add` re-sent after completion is a duplicate.
        keep_settled: how long ended claims are kept.
        keep_dead: how long dead jobs are kept; `None` for ever.
        skew: how far the clocks of workers may be apart, where the store has no clock of its own and they are several
            hosts.

    Raises:
        InvalidValueError: one of them makes no sense.
    """

    max_attempts: int = field(default=3, validator=_check_count)
    max_stalls: int = field(default=3, validator=_check_count)
    backoff: BackoffFunction = field(factory=Backoff)
    keep_done: Duration = field(default="1d", validator=_check_duration)
    keep_settled: Duration = field(default="15d", validator=_check_duration)
    keep_dead: Duration | None = field(default=None, validator=_check_duration)
    skew: Duration = field(default=0, validator=_check_duration)
