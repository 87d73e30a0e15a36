"""A schedule: who acts next, and what goes wrong for it."""

from __future__ import annotations

from enum import IntEnum

from attrs import frozen

__all__ = ["Act", "Schedule", "Turn", "Violation"]


class Act(IntEnum):
    """What an actor does when it is its turn."""

    CALL = 0
    """It makes its next call, or begins its message with its first."""
    RESEND = 1
    """It makes its next call, the reply is late, and its client will send the call again."""
    LOSE = 2
    """It makes its next call and its reply is lost."""
    CRASH = 3
    """It dies, and its message comes again."""
    ACKNOWLEDGE = 4
    """It is done with its message: acknowledges it, or gives it back for a later delivery."""


@frozen
class Turn:
    """One turn of one actor."""

    actor: str
    act: Act


@frozen
class Schedule:
    """One interleaving of a scope's actors, from the start.

    Attributes:
        scope: the title of the scope.
        turns: the turns, in order.
    """

    scope: str
    turns: tuple[Turn, ...]

    def __str__(self) -> str:
        return ", ".join(
            turn.actor if turn.act is Act.CALL else f"{turn.actor} {turn.act.name.lower()}" for turn in self.turns
        )


class Violation(AssertionError):  # noqa: N818 - an assertion that failed
    """A promise was broken. The text tells the schedule, step by step.

    Attributes:
        problem: what is broken.
        schedule: how to get there.
    """

    def __init__(self, problem: str, schedule: Schedule, story: str) -> None:
        super().__init__(f"{schedule.scope}: {problem}\n{story}")
        self.problem = problem
        self.schedule = schedule
