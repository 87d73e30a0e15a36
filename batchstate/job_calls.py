"""What the steps of a `JobStorage` are asked and what they answer: frozen values, times in milliseconds."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen

from batchstate.entities import Batch
from batchstate.errors import BatchStateError
from batchstate.jobs import Job

__all__ = [
    "Added",
    "ClaimRow",
    "Claimed",
    "Claiming",
    "Ending",
    "Extended",
    "GroupCounts",
    "Held",
    "NewJob",
    "QueueCounts",
    "Settled",
    "SettledAs",
    "Settling",
    "Swept",
]

Added: TypeAlias = Literal["added", "duplicate"]
"""What became of a job that was to be added."""

SettledAs: TypeAlias = Literal["completed", "retried", "delayed", "dead", "released", "lost"]
"""What became of a job that was to be settled."""


@frozen
class NewJob:
    """A job to add.

    Attributes:
        id: its ID.
        payload: its JSON text, as `batchstate.values.encode_json` makes it.
        group: its group, `""` for none.
        max_attempts: with how many failures it is dead.
        delay: milliseconds from now until it is due; 0 for at once.
        due_at: instead of `delay`, the instant it is due; one that has passed means at once.
        again: whether to add it though it was done a short while ago.
    """

    id: str
    payload: str
    group: str = ""
    max_attempts: int = 3
    delay: int = 0
    due_at: int | None = None
    again: bool = False


@frozen
class Ending:
    """What the step that ends a claim does to its batch.

    Attributes:
        settled: the state a settled claim goes to.
        abandoned: the state an abandoned claim goes to.
        terminal: the terminal states: a batch in one of them stays there, and a batch that ends in one is retired.
    """

    settled: str = "settled"
    abandoned: str = "abandoned"
    terminal: tuple[str, ...] = ("settled", "abandoned")


@frozen
class Claiming:
    """A claim to make.

    Attributes:
        id: the claim's ID, made by the caller, unique and never used again; also its batch's, and the fencing token.
        limit: how many jobs to take at most; the adapter may take fewer (`JobStorage.max_claim`).
        lease: how long they are held, in milliseconds.
        group: the group to serve, `""` for the jobs without one; `None` for whose turn it is.
        across_groups: take one job a group, round after round, from the groups in turn.
        state: the state the claim's batch begins in.
        ending: what the end of the claim does to it.
        attributes: the batch's attributes, as JSON text.
        by: who claims, for the history.
        mark: the mark of the batch's first version.
    """

    id: str
    limit: int
    lease: int
    mark: str
    group: str | None = None
    across_groups: bool = False
    state: str = "claimed"
    ending: Ending = field(factory=Ending)
    attributes: str = "{}"
    by: str = ""


@frozen
class Claimed:
    """A claim that was made, or is still held.

    Attributes:
        batch: the claim's batch, as it is now.
        jobs: the jobs held, in their order; all active.
        expires_at: when the claim's lease ends; never later than the store has it.
    """

    batch: Batch
    jobs: tuple[Job, ...]
    expires_at: int


@frozen
class Extended:
    """What extending did. It is true where something is held and nothing was lost.

    Attributes:
        expires_at: when the lease ends now; `None` where nothing is held any more.
        held: the jobs still held, whose lease this is.
        lost: the jobs this claim no longer holds and never settled.
    """

    expires_at: int | None
    held: int
    lost: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.held > 0 and not self.lost


@frozen
class Settling:
    """A job to settle.

    Attributes:
        id: the job.
        verdict: what to do with it.
        reason: why, for retries and deaths.
        delay: milliseconds until it is due again, for retries and delays.
    """

    id: str
    verdict: Literal["complete", "retry", "delay", "dead", "release"]
    reason: str = ""
    delay: int = 0


@frozen
class Settled:
    """What became of the jobs of one settling call.

    Attributes:
        outcomes: for each job, in the order given, what became of it, or the error why nothing is known of it.
        finished: whether the claim has ended, by this call or before.
    """

    outcomes: tuple[SettledAs | BatchStateError, ...]
    finished: bool


@frozen
class Swept:
    """What a sweep did.

    Attributes:
        returned: the jobs taken back to their places, each with one more stall.
        dead: the jobs that stalled once too often.
        ended: the claims that ended by it.
        more: whether it stopped at its limit with more to do.
    """

    returned: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    more: bool = False


@frozen
class ClaimRow:
    """A claim in flight.

    Attributes:
        id: the claim.
        expires_at: when its lease ends.
        jobs: the jobs it holds, with when each one's lease ends.
    """

    id: str
    expires_at: int
    jobs: tuple[tuple[str, int], ...]


@frozen
class Held:
    """A hold on a batch without jobs.

    Attributes:
        batch_id: the batch.
        token: the holder's.
        expires_at: when it lapses.
    """

    batch_id: str
    token: str
    expires_at: int


@frozen
class GroupCounts:
    """What one group has.

    Attributes:
        group: its name, `None` for the jobs without one.
        waiting: jobs waiting.
        active: jobs held.
        scheduled: jobs due later, or due and not yet looked at.
        dead: jobs dead.
        ceiling: how many may be held at once, `None` for no limit; the default where it has none of its own.
        paused: the reason it is paused for, `None` where it is not.
        oldest: when its oldest waiting job was added, `None` where none waits.
    """

    group: str | None
    waiting: int = 0
    active: int = 0
    scheduled: int = 0
    dead: int = 0
    ceiling: int | None = None
    paused: str | None = None
    oldest: int | None = None


@frozen
class QueueCounts:
    """What a queue has; no snapshot where the backend has none.

    Attributes:
        groups: per group, sorted by name, the jobs without one first.
        paused: the reason the queue is paused for, `None` where it is not.
        ceiling: the default ceiling of its groups, `None` for no limit.
        claims: claims in flight.
        lapsed: claims in flight whose lease has ended.
        now: the store's time when it counted.
    """

    groups: tuple[GroupCounts, ...]
    paused: str | None = None
    ceiling: int | None = None
    claims: int = 0
    lapsed: int = 0
    now: int = 0

    @property
    def waiting(self) -> int:
        """Jobs waiting, in all groups."""
        return sum(group.waiting for group in self.groups)

    @property
    def active(self) -> int:
        """Jobs held, in all groups."""
        return sum(group.active for group in self.groups)

    @property
    def scheduled(self) -> int:
        """Jobs due later, in all groups."""
        return sum(group.scheduled for group in self.groups)

    @property
    def dead(self) -> int:
        """Jobs dead, in all groups."""
        return sum(group.dead for group in self.groups)
