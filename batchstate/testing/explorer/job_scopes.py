"""Scopes of two actors that work on jobs, small enough to replay on any store that keeps jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from batchstate.readymade import CLAIM
from batchstate.testing.explorer.actors import Actor, Scope
from batchstate.testing.explorer.job_messages import (
    JobsAtStart,
    claiming,
    removing,
    reviving,
    settling,
    sweeping,
)
from batchstate.testing.explorer.job_promises import attempts_are_failures, job_promises, nothing_is_held
from batchstate.testing.explorer.promises import Promises

if TYPE_CHECKING:
    from batchstate.testing.explorer.job_messages import Kind

__all__ = ["TWO_ACTORS_ON_JOBS", "JobScope", "on_jobs"]


@frozen
class JobScope:
    """A scope, what its store holds at the start, and what must hold throughout."""

    scope: Scope
    start: JobsAtStart
    promises: Promises


def on_jobs(title: str, *actors: Actor) -> Scope:
    """Let them act on the two jobs."""
    return Scope(f"jobs: {title}", CLAIM, actors)


ANY = job_promises()
CHARGED = ANY.also(always=(attempts_are_failures,))
REMOVING = job_promises("a").also(always=(attempts_are_failures,))
ENDING = CHARGED.also(at_rest=(nothing_is_held,))


def _late(kind: Kind) -> JobScope:
    return JobScope(
        on_jobs(
            f"a late {kind} beside a sweeper",
            Actor("sweeper", (sweeping(2), sweeping()), crashes=1, lost_replies=1),
            Actor("late holder", (settling(0, kind), settling(0, "complete", "b")), crashes=1, lost_replies=1),
        ),
        JobsAtStart(ceiling=2, held=2),
        CHARGED,
    )


TWO_ACTORS_ON_JOBS: tuple[JobScope, ...] = (
    JobScope(
        on_jobs(
            "two claimers to the end",
            Actor("claimer-1", (claiming(1, "retry", "complete"),), crashes=1),
            Actor("claimer-2", (claiming(2, "complete", "dead", limit=1),), crashes=1),
        ),
        JobsAtStart(ceiling=1, held=0),
        ENDING,
    ),
    JobScope(
        on_jobs(
            "a claimer and a sweeper",
            Actor("claimer", (claiming(1, "complete", "release", extends=True),), crashes=1),
            Actor("sweeper", (sweeping(), sweeping(2)), lost_replies=1),
        ),
        JobsAtStart(ceiling=1),
        CHARGED,
    ),
    JobScope(
        on_jobs(
            "a claimer and a late holder",
            Actor("claimer", (claiming(1, "retry", "complete"),), lost_replies=1),
            Actor("late holder", (settling(0, "retry"),), crashes=1, lost_replies=1),
        ),
        JobsAtStart(),
        CHARGED,
    ),
    JobScope(
        on_jobs(
            "calls that are sent again",
            Actor("claimer", (claiming(1, "complete", "retry"),), resends=1),
            Actor("sweeper", (sweeping(),), resends=1),
        ),
        JobsAtStart(),
        CHARGED,
    ),
    JobScope(
        on_jobs(
            "a claimer and a remover",
            Actor("claimer", (claiming(1, "complete", "retry"),), crashes=1),
            Actor("remover", (removing(),), crashes=1, resends=1),
        ),
        JobsAtStart(ceiling=1, held=0),
        REMOVING,
    ),
    JobScope(
        on_jobs(
            "a reviver beside a killing sweeper",
            Actor("sweeper", (sweeping(max_stalls=0), sweeping(max_stalls=0)), crashes=1),
            Actor("reviver", (reviving(), reviving("b")), crashes=1, lost_replies=1),
        ),
        JobsAtStart(held=2),
        ANY,
    ),
    *(_late(kind) for kind in ("complete", "retry", "delay", "dead", "release")),
)
