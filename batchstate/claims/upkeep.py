"""Upkeep: jobs of dead workers come back, ended things go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batchstate.errors import InvalidValueError
from batchstate.job_calls import Swept
from batchstate.listing import OnProblem, raise_problem
from batchstate.tidying import Purged, Reconciled, purge, reconcile
from batchstate.times import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batchstate.claims.context import JobContext

__all__ = ["Tidied", "purge_ended", "sweep", "tidy"]

SWEPT_AT_ONCE = 1000
"""How many jobs one step of a sweep takes back, so that it does not keep claims waiting."""

PURGED_AT_ONCE = 1000


class Tidied(NamedTuple):
    """What `tidy` did.

    Attributes:
        swept: the jobs taken back.
        reconciled: the records mended.
        purged: the batches deleted.
        forgotten: how many remembered IDs and dead jobs were deleted.
    """

    swept: Swept
    reconciled: Reconciled
    purged: Purged
    forgotten: int


def sweep(context: JobContext, *, limit: int | None = None, by: str | None = None) -> Swept:
    """Take back the jobs whose lease has lapsed, a stall each; a job that stalled once too often is dead.

    Args:
        context: the queue.
        limit: how many jobs at most; `None` for all.
        by: who sweeps, for the histories of the claims that end.

    Raises:
        InvalidValueError: the limit is not positive. Nothing was swept.
        StorageUnavailableError: the store could not be reached. What was swept is swept; call it again.
    """
    if limit is not None and (type(limit) is not int or limit < 1):
        msg = f"limit must be an int of 1 or more, or None, not {limit!r}"
        raise InvalidValueError(msg)
    returned: list[str] = []
    dead: list[str] = []
    ended: list[str] = []
    skew = milliseconds(context.policy.skew, "skew", zero=True)
    while True:
        room = SWEPT_AT_ONCE if limit is None else min(SWEPT_AT_ONCE, limit - len(returned) - len(dead))
        swept = context.store.sweep_jobs(
            room, max_stalls=context.policy.max_stalls, by=context.by if by is None else by, skew=skew
        )
        returned += swept.returned
        dead += swept.dead
        ended += swept.ended
        full = limit is not None and len(returned) + len(dead) >= limit
        if full or not swept.more:
            return Swept(tuple(returned), tuple(dead), tuple(ended), swept.more)


def purge_ended(
    context: JobContext, states: Iterable[str] | None = None, *, on_problem: OnProblem = raise_problem
) -> tuple[Purged, int]:
    """Delete what was kept long enough: retired batches, remembered IDs, dead jobs where they are not kept for ever.

    Args:
        context: the queue.
        states: every state a record may be filed under; by default those of the queue's lifecycle.
        on_problem: is told of each unreadable row instead of the first ending the purge; it stays.

    Returns:
        The batches deleted, and how many remembered IDs and dead jobs.
    """
    policy = context.policy
    purged = purge(
        context.store,
        context.lifecycle.states if states is None else states,
        older_than=policy.keep_settled,
        on_problem=on_problem,
        clock=context.store.now,
    )
    keep_dead = None if policy.keep_dead is None else milliseconds(policy.keep_dead, "keep_dead", zero=True)
    forgotten = 0
    more = True
    while more:
        gone, more = context.store.purge_jobs(PURGED_AT_ONCE, keep_dead=keep_dead)
        forgotten += gone
    return purged, forgotten


def tidy(context: JobContext, states: Iterable[str] | None = None) -> Tidied:
    """Sweep, reconcile and purge, once each, to the end; `states` as for `purge_ended`."""
    every = tuple(context.lifecycle.states if states is None else states)
    swept = sweep(context)
    reconciled = reconcile(context.store, every)
    purged, forgotten = purge_ended(context, every)
    return Tidied(swept, reconciled, purged, forgotten)
