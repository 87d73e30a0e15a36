"""Claims, sweeps, late settlements, removals and revivals in every order: no job is lost, done twice or charged twice.

What is held against every state stands in `batchstate.testing.explorer.job_promises`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.testing.explorer import Actor, explore
from batchstate.testing.explorer.job_messages import claiming, removing, reviving, settling, sweeping
from batchstate.testing.explorer.job_promises import attempts_are_failures, job_promises, nothing_is_held
from batchstate.testing.explorer.job_scopes import on_jobs
from tests.model.job_given import store_with

if TYPE_CHECKING:
    from batchstate.testing.explorer import Promises
    from batchstate.testing.explorer.job_messages import Kind
    from tests.model.plugin import Show

JOB_PROMISES = job_promises()
CHARGED = JOB_PROMISES.also(always=(attempts_are_failures,))
REMOVING = job_promises("a")


@pytest.mark.parametrize("ceiling", [None, 1])
@pytest.mark.parametrize("kinds", [("complete", "retry"), ("release", "complete"), ("retry", "dead")])
def test_two_claimers_a_sweeper_and_a_late_holder(kinds: tuple[Kind, Kind], ceiling: int | None, show: Show) -> None:
    """Two claim and settle, one sweeps twice, one settles late what was swept from it; each may die once anywhere."""
    scope = on_jobs(
        f"two claimers that {' and '.join(kinds)}, a sweeper, a late holder, ceiling {ceiling}",
        Actor("claimer-1", (claiming(1, *kinds, extends=True),), crashes=1),
        Actor("claimer-2", (claiming(2, *reversed(kinds), limit=1),), crashes=1),
        Actor("sweeper", (sweeping(), sweeping()), crashes=1),
        Actor("late holder", (settling(0, kinds[0]),), crashes=1),
    )
    promises: Promises = CHARGED if kinds != ("retry", "dead") else JOB_PROMISES
    show(explore(scope, store_with(ceiling=ceiling), promises))


@pytest.mark.parametrize("late", ["complete", "retry", "delay", "dead", "release"])
def test_a_late_holder_with_every_verdict(late: Kind, show: Show) -> None:
    """A late verdict of every kind beside a claimer and a sweeper, the reply of any of them lost once."""
    scope = on_jobs(
        f"a late {late}, a claimer, a sweeper, lost replies",
        Actor("claimer", (claiming(1, "retry", "complete"),), crashes=1, lost_replies=1),
        Actor("sweeper", (sweeping(2), sweeping(2)), lost_replies=1),
        Actor("late holder", (settling(0, late), settling(0, "complete", "b")), crashes=1, lost_replies=1),
    )
    show(explore(scope, store_with(held=2), CHARGED))


def test_calls_that_are_sent_again(show: Show) -> None:
    """Clients of two claimers, a sweeper and a late holder send a call again, any time after the first was applied."""
    scope = on_jobs(
        "two claimers, a sweeper, a late holder, calls sent again",
        Actor("claimer-1", (claiming(1, "complete", "retry"),), resends=1),
        Actor("claimer-2", (claiming(2, "retry"),), resends=1),
        Actor("sweeper", (sweeping(),), resends=1),
        Actor("late holder", (settling(0, "retry"),), resends=1),
    )
    show(explore(scope, store_with(), CHARGED))


@pytest.mark.parametrize("held", [0, 1])
def test_a_remover(held: int, show: Show) -> None:
    """A job is removed by force while it is claimed, swept, settled and settled late."""
    scope = on_jobs(
        f"a remover, a claimer, a sweeper, a late holder, {held} held",
        Actor("claimer", (claiming(1, "complete", "retry"),), crashes=1),
        Actor("sweeper", (sweeping(),), crashes=1),
        Actor("remover", (removing(),), crashes=1, resends=1),
        *([Actor("late holder", (settling(0, "complete"),), crashes=1)] if held else ()),
    )
    show(explore(scope, store_with(held=held, ceiling=1), REMOVING.also(always=(attempts_are_failures,))))


def test_a_reviver(show: Show) -> None:
    """A job that the sweep killed, or that failed too often, is revived while others claim, sweep and settle late."""
    scope = on_jobs(
        "a reviver, a claimer, a killing sweeper, a late holder",
        Actor("claimer", (claiming(1, "retry", "complete"), claiming(2, "complete")), crashes=1),
        Actor("sweeper", (sweeping(max_stalls=0), sweeping(max_stalls=0)), crashes=1),
        Actor("reviver", (reviving(), reviving()), crashes=1),
        Actor("late holder", (settling(0, "retry"),), crashes=1),
    )
    show(explore(scope, store_with(max_attempts=1), JOB_PROMISES))


def test_nothing_is_held_in_the_end(show: Show) -> None:
    """Where every claimer comes to its end, however often it died, nothing is held any more."""
    scope = on_jobs(
        "two claimers to the end",
        Actor("claimer-1", (claiming(1, "retry", "complete"),), crashes=2),
        Actor("claimer-2", (claiming(2, "complete", "retry"),), crashes=2),
        Actor("sweeper", (sweeping(),), crashes=1),
    )
    show(explore(scope, store_with(held=0), CHARGED.also(at_rest=(nothing_is_held,))))


@pytest.mark.large
@pytest.mark.parametrize("ceiling", [None, 1])
def test_everybody_at_once(ceiling: int | None, show: Show) -> None:
    """Two claimers, two sweeps, a late holder, a remover and a reviver, each dying once."""
    scope = on_jobs(
        f"everybody at once, ceiling {ceiling}",
        Actor("claimer-1", (claiming(1, "complete", "retry", extends=True),), crashes=1),
        Actor("claimer-2", (claiming(2, "retry", limit=1),), crashes=1),
        Actor("sweeper", (sweeping(max_stalls=0), sweeping()), crashes=1),
        Actor("late holder", (settling(0, "complete"),), crashes=1),
        Actor("remover", (removing(),), crashes=1),
        Actor("reviver", (reviving(),), crashes=1),
    )
    show(explore(scope, store_with(ceiling=ceiling), REMOVING))
