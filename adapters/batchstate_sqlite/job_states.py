"""What the tables say of a group and of a claim."""

from __future__ import annotations

import json
from typing import NamedTuple

from attrs import asdict, define

from batchstate.job_calls import Ending

__all__ = ["ClaimState", "GroupState", "ending_of", "ending_text"]


@define
class GroupState:
    """One group as its row has it; `alarm` is when it must be looked at, `turn` its place in the ring."""

    name: str
    waiting: int = 0
    active: int = 0
    scheduled: int = 0
    dead: int = 0
    ceiling: int | None = None
    paused: str | None = None
    alarm: int | None = None
    turn: int | None = None

    def values(self) -> tuple[object, ...]:
        """Answer the values of its row."""
        return (
            self.name,
            self.waiting,
            self.active,
            self.scheduled,
            self.dead,
            self.ceiling,
            self.paused,
            self.alarm,
            self.turn,
        )

    @property
    def is_void(self) -> bool:
        """Whether it has no jobs, and nothing was said of it."""
        empty = not (self.waiting or self.active or self.scheduled or self.dead)
        return empty and self.ceiling is None and self.paused is None

    def headroom(self, default: int | None) -> int | None:
        """Answer how many more may be held, `None` for no limit; `default` is the queue's ceiling."""
        ceiling = self.ceiling if self.ceiling is not None else default
        return None if ceiling is None else max(0, ceiling - self.active)


class ClaimState(NamedTuple):
    """One claim in flight as its row has it.

    Attributes:
        id: the claim.
        group: the group of all its jobs, `None` where they were taken across groups.
        expires_at: when its lease ends.
        filed_at: the instant it is filed under, which none of its jobs' leases ends before.
        held: how many jobs it holds.
        ending: what its end does to its batch.
    """

    id: str
    group: str | None
    expires_at: int
    filed_at: int
    held: int
    ending: str


def ending_text(ending: Ending) -> str:
    """Answer how an `Ending` is stored."""
    return json.dumps(asdict(ending))


def ending_of(text: str) -> Ending:
    """Answer a stored `Ending`."""
    values = json.loads(text)
    return Ending(values["settled"], values["abandoned"], tuple(values["terminal"]))
