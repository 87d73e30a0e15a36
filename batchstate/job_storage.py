"""The `JobStorage` protocol: what a backend must do to have jobs claimed together, locked together and settled apart.

Each method is one atomic step of the backend for each item, chunk or claim it names, reads the clock once, and may be
sent twice: a re-sent command applies once. Clock and errors are as in `batchstate.storage`: a
refusal of one item is answered in its place, `StorageUnavailableError` is raised, with whole items done or not done.

A job is in exactly one place at every instant. *Held* means active under a claim. A deadline that has passed loses
nothing by itself: only a sweep takes a job back. The group `""` is that of the jobs without one. A call that is sent
again answers as it did, save where its docstring says what it answers then.

**Taking a job back to its place** always means to its own group and its old order, ahead of younger jobs; and every
way out of active frees the group's slot, once, in the same step.

**The ring.** A group is *servable* while it has a job waiting or due, headroom under its ceiling, and is not paused.
It joins the ring's tail in the step that makes it servable (groups whose scheduled jobs fell due join, by due time,
when a claim by turn looks, or earlier when another step concerns them), keeps its place while it waits, leaves when it
is not servable any more, and goes to the tail when it is served by its turn. Several that one step makes servable join
in the order of the items of the call, or by name where the call names none, as a sweep. Counting is no look. A paused
queue changes nothing about the ring.

**A claim ends** in the step that takes its last held job out of active: its batch moves to `abandoned` where that
step is a sweep, else to `settled` (the states that `Ending` names), from whatever state it is in, unless that one is
terminal. If the state it is in then is terminal, the step retires the row as well: files it among the retired and
deletes its record; otherwise it moves the record. The version rises by one, the history says who and why. It ends
once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from batchstate.errors import BatchStateError, CorruptRowError
    from batchstate.job_calls import (
        Added,
        Claimed,
        Claiming,
        ClaimRow,
        Extended,
        Held,
        NewJob,
        QueueCounts,
        Settled,
        Settling,
        Swept,
    )
    from batchstate.jobs import Job, Place
    from batchstate.storage import Outcome, Page

__all__ = ["JobStorage", "Restorable", "Wakeable"]


@runtime_checkable
class JobStorage(Protocol):
    """One queue's jobs in a store that is a `Storage` as well."""

    @property
    def max_claim(self) -> int:
        """How many jobs one claim takes at most on this backend."""

    def now(self) -> int:
        """The store's time: its own clock where it has one, else the host's or the one that was given."""

    def add_jobs(self, jobs: Sequence[NewJob]) -> list[Added | BatchStateError]:
        """Add each job behind all that are there, waiting, or scheduled where it is due later.

        Answers per item: `"added"`; `"duplicate"` where its ID is known in any place, or remembered as done within
            its time and `again` is not set, and nothing was changed; or `InvalidNameError`, `InvalidValueError`,
            `TooLargeError`.
        """

    def claim_jobs(self, claiming: Claiming) -> Claimed | None:
        """Take jobs of one group (or across groups), and make one batch of them, with one lease.

        Takes the oldest first by order; due jobs of the group count as waiting in their old place (a step may look at
        a bounded number of them; the order is exact among those looked at). Each job's deliveries rise by one, its
        claim is this one, its place active. The batch, its record under `claiming.state` and the jobs' associations
        are created in the same step, with the move `(None, state, 1, now, by, "")` as the history.

        Returns `None` where nothing can be served: nothing waits or is due, or the queue or the group is paused or
        full. Then nothing was written. Sent again for a claim that exists: takes nothing and answers the jobs still
        held and the stored lease.

        Raises:
            ClaimLostError: a batch of this ID exists and holds nothing, or nothing any more.
        """

    def get_claims(self, ids: Iterable[str]) -> dict[str, Claimed]:
        """Load claims in flight with the jobs they hold; those that ended, or never were, are absent."""

    def extend_claim(self, claim_id: str, lease: int) -> Extended:
        """Set the claim's deadline to now + `lease` (milliseconds), which may shorten it: one write whatever its size.

        A job's deadline is the later of its claim's and its own extension. Names the jobs lost (swept or removed and
        not settled by this claim since), not those settled. A claim that holds nothing any more, or never was, is
        answered with `held=0`, and gets no lease.
        """

    def extend_job(self, claim_id: str, job_id: str, lease: int) -> Extended:
        """Set one held job's own extension to now + `lease`, unless it is later already.

        Answers `held=1` and the job's deadline, the later of that and its claim's; or `held=0`, with the job in `lost`
        where this claim never settled it.
        """

    def settle_jobs(
        self, claim_id: str, settlings: Sequence[Settling], *, keep_done: int, by: str = "", why: str = ""
    ) -> Settled:
        """Settle each job by itself on its verdict; the order does not matter, one costs its neighbours nothing.

        `complete`: the job is gone, its ID remembered for `keep_done` milliseconds (0: not at all). `retry`: one more
        attempt; dead where they reach `max_attempts`, else scheduled for now + `delay`. `delay`: scheduled for then,
        nothing charged. `dead`: dead. `release`: waiting in its old place, nothing charged. A delay of 0 is waiting
        at once.

        Per job: where its association with this claim remembers a settlement, it is answered with that first outcome,
        and nothing is changed, whatever the verdict. Where this claim holds it, it is settled. Where this claim was
        the last to hold it, its association says `swept` and it waits, it is settled late, save by `release`: it
        leaves waiting, and no slot is freed twice. Anything else is `lost`. The association gets the outcome in the
        same step. `by` and `why` go into the history where the claim ends.

        Items beyond the backend's chunk are settled in several steps, each whole.
        """

    def sweep_jobs(self, limit: int, *, max_stalls: int, by: str = "", skew: int = 0) -> Swept:
        """Take back up to `limit` held jobs whose deadline is not after now - `skew`, counting one stall each.

        Where a job's stalls exceed `max_stalls` it is dead, with an error that says that it stalled. Each one's
        association gets the outcome `swept`. Decides on what is stored at that instant: a job settled meanwhile is
        not touched.
        """

    def revive_jobs(self, ids: Sequence[str]) -> list[Outcome]:
        """Take dead jobs back to their places: attempts, stalls, error and last claim cleared, deliveries kept.

        Answers per item: `None` also where the job is waiting (a re-sent revival); `NotFoundError`;
            `InvalidTransitionError` where it is active or scheduled.
        """

    def remove_jobs(self, ids: Sequence[str], *, force: bool = False, by: str = "") -> list[Outcome]:
        """Remove jobs from whatever place they are in; a held one only with `force`, freeing its slot.

        A forced removal gives the association the outcome `removed`, and ends the claim as settled where it was its
        last.
        Answers per item: `None`; `NotFoundError`, also where it was removed before; `InvalidTransitionError` where it
            is held and not forced. A remembered done ID is forgotten, successfully.
        """

    def move_job(self, job_id: str, group: str) -> Outcome:
        """Put a waiting, scheduled or dead job into another group, in the place its order has there.

        Answers `None`, also where it is in that group; `NotFoundError`; `InvalidTransitionError` where it is held.
        """

    def set_paused(self, group: str | None, reason: str | None) -> None:
        """Pause a group (`""`: the jobs without one) or, with `None`, the queue; `None` as the reason resumes.

        A part of the claim's own step. Adding, settling, extending and sweeping go on; due jobs wait.
        """

    def set_ceiling(self, group: str | None, ceiling: int | None) -> None:
        """Set how many jobs of a group may be held at once, or with `None` for the group, the default of all groups.

        `None` as ceiling takes it away. Lowering it takes nothing away that is held.
        """

    def count_jobs(self) -> QueueCounts:
        """Count by place the jobs of every group that has jobs, a ceiling of its own, or is paused itself."""

    def count_claimable(self, limit: int, group: str | None = None, *, across_groups: bool = False) -> int:
        """Answer how many jobs one claim could take now, counted no further than `limit`.

        Due jobs count, paused and full groups do not. Without a `group` they are those of the group whose turn it is.
        """

    def get_jobs(self, ids: Iterable[str]) -> dict[str, Job | CorruptRowError]:
        """Load jobs by ID; missing ones are absent from the answer."""

    def list_jobs(
        self, place: Place, group: str | None = None, cursor: str | None = None, *, limit: int = 500
    ) -> Page[Job | CorruptRowError]:
        """List the jobs in a place, of one group or all, a page at a time.

        Waiting and active ones come by order within a group; scheduled ones by due time within a group; dead ones by
        order.
        """

    def list_claims(self, cursor: str | None = None, *, limit: int = 500) -> Page[ClaimRow]:
        """List the claims in flight, a page at a time."""

    def purge_jobs(self, limit: int, *, keep_dead: int | None) -> tuple[int, bool]:
        """Delete remembered done IDs whose time is over, and jobs that have been dead for `keep_dead` milliseconds.

        `None` keeps dead jobs for ever. Answers how many rows are gone, at most about `limit`, and whether more
        remain.
        """

    def take_hold(self, batch_id: str, token: str, lease: int) -> Held:
        """Hold a batch for `lease` milliseconds; sent again with the token it answers the same hold, not restarted.

        Answers the present holder's hold where that has not lapsed, so the caller compares the token. A retired batch
        can be held as any other; with its row its hold goes. Raises `NotFoundError` where there is no such batch.
        """

    def extend_hold(self, batch_id: str, token: str, lease: int) -> Held:
        """Set the hold's deadline to now + `lease`; raises `ClaimLostError` where it lapsed or another holds it."""

    def release_hold(self, batch_id: str, token: str) -> None:
        """End the hold; twice is harmless. Raises `ClaimLostError` where it lapsed or another holds it."""


@runtime_checkable
class Wakeable(Protocol):
    """A storage that tells who waits for work when there may be some."""

    def listen(self, nudge: Callable[[], None]) -> Callable[[], None]:
        """Call `nudge` whenever a step in this process may have made jobs claimable, until the answer is called.

        False alarms are fine. `nudge` returns at once, may be called from any thread, and must not call the storage.
        """


@runtime_checkable
class Restorable(Protocol):
    """A storage that can take over jobs as they stand, from a copy of the queue or another backend."""

    def restore_jobs(self, jobs: Sequence[Job]) -> list[Added | BatchStateError]:
        """Insert jobs as they stand: in their places, with their orders, counters, errors, last claims and times.

        The number that the next added job gets as its order is above all of them from then on. Whoever calls sees to
        it that no other job of the queue has one of these orders: restoring the one of the highest order first keeps
        later additions apart. A job that is held cannot be restored. The queue's name is known to `list_queues`.

        Answers per item: `"added"`; `"duplicate"` where its ID is known in any place, or remembered as done within its
            time, and nothing was changed; or `QueueMismatchError`, `InvalidNameError`, `InvalidValueError` (it is
            held, or is no job that could be stored), `TooLargeError`.
        """
