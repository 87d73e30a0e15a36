"""Jobs: requests while they wait in the queue or are worked on, what handlers say of them, what became of them.

All are frozen. Instants are milliseconds since the epoch (UTC).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from attrs import field, frozen

from batchstate.errors import BatchStateError, ClaimLostError
from batchstate.times import Duration

__all__ = [
    "UNGROUPED",
    "Dead",
    "Delay",
    "Done",
    "Group",
    "Job",
    "Place",
    "Retry",
    "Settlement",
    "Ungrouped",
    "Verdict",
]

Place: TypeAlias = Literal["waiting", "active", "scheduled", "dead"]
"""Where a job is, and it is in exactly one of them: waiting in its group, held by one claim, due later, or dead."""


class Ungrouped(Enum):
    """The type of `UNGROUPED`."""

    UNGROUPED = "ungrouped"


UNGROUPED: Final = Ungrouped.UNGROUPED
"""Names the jobs that were added without a group, where a call takes a group: they are a group as any other."""

Group: TypeAlias = str | Literal[Ungrouped.UNGROUPED]
"""A group's name, or `UNGROUPED`."""


@frozen(slots=False)  # made by the thousand: with slots it would take twice as long to make
class Job:
    """A request while it waits or is worked on.

    Attributes:
        id: names the job within its queue; it is the request's ID.
        queue: the queue.
        payload: yours, a JSON value.
        group: the jobs it takes turns with as one; `None` where it was added without.
        place: `"waiting"`, `"active"`, `"scheduled"` or `"dead"`.
        order: its place in the line: lower is older, and it returns to its old place however often it leaves.
        deliveries: how often it was claimed.
        attempts: how many failures were charged, by retry verdicts alone.
        stalls: how often its lease lapsed and it was swept.
        max_attempts: with how many failures it is dead.
        error: the reason of its latest retry, stall or death, `""` where there is none; cut at 1,000 characters.
        claim: the claim that holds it, or held it last; `None` before the first and after a revival.
        added_at: when it was added.
        due_at: while it is scheduled, when it is due, else `None`.
        expires_at: while it is active, when its lease ends: the later of its claim's and its own extension; else
            `None`.
        dead_at: while it is dead, since when, else `None`.
    """

    id: str
    queue: str
    payload: Any = field(default=None, hash=False)
    group: str | None = None
    place: Place = "waiting"
    order: int = 0
    deliveries: int = 0
    attempts: int = 0
    stalls: int = 0
    max_attempts: int = 3
    error: str = ""
    claim: str | None = None
    added_at: int = 0
    due_at: int | None = None
    expires_at: int | None = None
    dead_at: int | None = None


@frozen
class Done:
    """The job is done and leaves the queue; its ID stays known for a while."""


@frozen
class Retry:
    """The job failed: an attempt is charged, and it is due again later, or dead at its last attempt.

    Attributes:
        reason: what went wrong.
        delay: how long to wait; `None` leaves it to the queue's back-off.
    """

    reason: str = ""
    delay: Duration | None = None


@frozen
class Delay:
    """The job is not to be worked on now: it is due again later, and no attempt is charged.

    Attributes:
        delay: how long to wait.
    """

    delay: Duration


@frozen
class Dead:
    """The job will never succeed: it is kept, browsable, and can be revived.

    Attributes:
        reason: why.
    """

    reason: str = ""


Verdict: TypeAlias = Done | Retry | Delay | Dead
"""What a handler says of one job."""


@frozen
class Settlement:
    """What became of every job named in a call: each in exactly one list, in the claim's order, as the store answered.

    It is true where nothing was lost or in error.

    Attributes:
        completed: done, and gone from the queue.
        retried: failed, and due again.
        delayed: due again, nothing charged.
        dead: dead by verdict or at the last attempt.
        released: back in their old place, nothing charged.
        lost: no longer this claim's, and never settled by it; nothing was changed.
        errors: the store failed for these; they can be settled again, or lapse.
        finished: the claim has ended.
    """

    completed: tuple[str, ...] = ()
    retried: tuple[str, ...] = ()
    delayed: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    errors: Mapping[str, BatchStateError] = field(factory=dict, hash=False)
    finished: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing was lost or in error."""
        return not self.lost and not self.errors

    def __bool__(self) -> bool:
        return self.ok

    def raise_for_lost(self) -> None:
        """Raise `ClaimLostError` if a job was lost."""
        if self.lost:
            msg = f"{len(self.lost)} jobs were no longer this claim's: {', '.join(self.lost[:10])}"
            raise ClaimLostError(msg)
