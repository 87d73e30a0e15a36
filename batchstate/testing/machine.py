"""A state machine that drives a storage and the model of it side by side, with a clock that it sets.

After every step all that can be seen of the storage is compared with the model; and what the model itself must keep
is checked. Every changing call is sent twice at random. Needs hypothesis.
"""

from __future__ import annotations

import os
import random
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import attrs
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from batchstate.errors import BatchStateError, ClaimLostError
from batchstate.job_calls import Claimed, Claiming, Ending, NewJob, Settling, Swept
from batchstate.marks import new_mark
from batchstate.testing.machine_checks import GROUPS, IDS, JobChecks
from batchstate.tidying import retire
from batchstate.transition import transition

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.testing.harness import Harness

__all__ = ["drive"]

WALKING = Ending("S", "L", ("S", "T"))
MAX_STALLS = 1

T = TypeVar("T")

jobs = st.sampled_from(IDS)
groups = st.sampled_from(GROUPS)
some_group = st.one_of(st.none(), groups)
leases = st.sampled_from([1, 1_000, 5_000])
delays = st.sampled_from([0, 0, 1, 1_000, 4_000])
twice = st.booleans()
numbers = st.integers(0, 10**6)
verdicts = st.sampled_from(["complete", "complete", "retry", "retry", "delay", "dead", "release"])


class JobMachine(JobChecks):
    """Does anything in any order to a queue and to the model of it."""

    def sent(self, call: Callable[[], T], *, again: bool) -> T:
        """Make a call, or make it twice and expect the same answer."""
        type(self).steps += 1
        answer = call()
        if again:
            second = call()
            assert _comparable(second) == _comparable(answer), f"sent again, it answered {second} and not {answer}"
        return answer

    def claim_id(self, number: int) -> str:
        """Choose one of the claims made so far, or one that never was."""
        known = [*self.model.claims, "never"]
        return known[-1 - number % min(len(known), 6)]

    # ------------------------------------------------------------------------------- rules

    @rule(name=jobs, group=groups, delay=delays, attempts=st.integers(1, 3), again=twice, more=twice)
    def add(self, *, name: str, group: str, delay: int, attempts: int, again: bool, more: bool) -> None:
        """Add a job, and another with it."""
        new = [NewJob(name, "null", group, attempts, delay, again=more)]
        if more:
            new.append(NewJob(IDS[IDS.index(name) - 1], "null", GROUPS[GROUPS.index(group) - 1], attempts))
        type(self).steps += 1
        assert self.store.add_jobs(new) == [self.model.add(job) for job in new]
        if again:
            assert self.store.add_jobs(new) == ["duplicate"] * len(new)

    @rule(
        limit=st.integers(1, 4), lease=leases, group=some_group, across=twice, walks=twice, terminal=twice, again=twice
    )
    def claim(
        self, *, limit: int, lease: int, group: str | None, across: bool, walks: bool, terminal: bool, again: bool
    ) -> None:
        """Make a claim, perhaps of a batch that walks."""
        claiming = Claiming(
            f"c-{next(self.names):04}", limit, lease, new_mark(), group, across_groups=across and group is None
        )
        if walks:
            claiming = attrs.evolve(claiming, state="T" if terminal else "A", ending=WALKING)
        claimable = self.store.count_claimable(limit, group, across_groups=claiming.across_groups)
        assert claimable == self.model.count(limit, group, across=claiming.across_groups)
        room = {name: self.model.headroom(name) for name in GROUPS}
        expected = self.model.claim(claiming, self.store.max_claim)
        answer = self.sent(lambda: self.store.claim_jobs(claiming), again=again and expected is not None)
        assert (None if answer is None else [job.id for job in answer.jobs]) == expected
        assert (0 if expected is None else len(expected)) == claimable
        for name in GROUPS:
            assert sum((self.model.jobs[taken].group or "") == name for taken in expected or ()) <= room[name]

    @rule(number=numbers, limit=st.integers(1, 4))
    def claim_again(self, number: int, limit: int) -> None:
        """Send a claim again, some time later."""
        claim_id = self.claim_id(number)
        claim = self.model.claims.get(claim_id)
        if claim is None:
            return
        type(self).steps += 1
        try:
            answer: Claimed = self.store.claim_jobs(attrs.evolve(claim.claiming, limit=limit, mark=new_mark()))
        except ClaimLostError:
            assert not claim.held
            return
        assert [job.id for job in answer.jobs] == claim.held
        assert answer.expires_at == claim.expires_at

    @rule(number=numbers, lease=leases, again=twice)
    def extend(self, *, number: int, lease: int, again: bool) -> None:
        """Extend a claim."""
        claim_id = self.claim_id(number)
        answer = self.sent(lambda: self.store.extend_claim(claim_id, lease), again=again)
        assert answer == self.model.extend(claim_id, lease)

    @rule(number=numbers, name=jobs, lease=leases, again=twice)
    def extend_job(self, *, number: int, name: str, lease: int, again: bool) -> None:
        """Extend one job."""
        claim_id = self.claim_id(number)
        answer = self.sent(lambda: self.store.extend_job(claim_id, name, lease), again=again)
        assert answer == self.model.extend_job(claim_id, name, lease)

    @rule(
        number=numbers,
        chosen=st.lists(st.tuples(numbers, verdicts, delays), min_size=1, max_size=4),
        keep=st.sampled_from([0, 5_000]),
        again=twice,
    )
    def settle(self, *, number: int, chosen: list[tuple[int, str, int]], keep: int, again: bool) -> None:
        """Settle some of a claim's jobs, and perhaps some that are not."""
        claim_id = self.claim_id(number)
        claim = self.model.claims.get(claim_id)
        names = [*(claim.jobs if claim is not None else ()), *IDS[:2]]
        settlings = [
            Settling(names[place % len(names)], verdict, f"why {place}", delay)  # type: ignore[arg-type]  # one of them
            for place, verdict, delay in chosen
        ]
        answer = self.sent(lambda: self.store.settle_jobs(claim_id, settlings, keep_done=keep), again=again)
        assert answer == self.model.settle(claim_id, settlings, keep)

    @rule(limit=st.integers(1, 5), again=twice)
    def sweep(self, *, limit: int, again: bool) -> None:
        """Take back what lapsed; which of it comes first is the storage's own."""
        type(self).steps += 1
        lapsed = self.model.lapsed()
        swept: Swept = self.store.sweep_jobs(limit, max_stalls=MAX_STALLS)
        taken = {*swept.returned, *swept.dead}
        assert len(taken) == len(swept.returned) + len(swept.dead) == min(limit, len(lapsed))
        assert taken <= {name for _, name in lapsed}
        assert swept.more == (len(lapsed) > limit)
        flying = {claim_id for claim_id, claim in self.model.claims.items() if claim.held}
        self.model.sweep(swept, MAX_STALLS)
        ended = {claim_id for claim_id in flying if not self.model.claims[claim_id].held}
        assert (set(swept.ended), len(swept.ended)) == (ended, len(ended))
        if again and not swept.more:
            assert self.store.sweep_jobs(limit, max_stalls=MAX_STALLS) == Swept()

    @rule(name=jobs, again=twice)
    def revive(self, *, name: str, again: bool) -> None:
        """Revive a job; whether one that is due counts as waiting yet is the storage's own."""
        if (job := self.model.jobs.get(name)) is not None and self.model.is_due(job):
            return
        [answer] = self.sent(lambda: self.store.revive_jobs([name]), again=again)
        assert _error(answer) == self.model.revive(name)

    @rule(chosen=st.lists(jobs, min_size=1, max_size=2), force=twice, again=twice)
    def remove(self, *, chosen: list[str], force: bool, again: bool) -> None:
        """Remove jobs."""
        type(self).steps += 1
        answers = self.store.remove_jobs(chosen, force=force)
        assert [_error(answer) for answer in answers] == [self.model.remove(name, force=force) for name in chosen]
        if again:
            answers = self.store.remove_jobs(chosen, force=force)
            assert [_error(answer) for answer in answers] == [self.model.remove(name, force=force) for name in chosen]

    @rule(name=jobs, group=groups, again=twice)
    def move(self, *, name: str, group: str, again: bool) -> None:
        """Move a job to a group."""
        answer = self.sent(lambda: self.store.move_job(name, group), again=again)
        assert _error(answer) == self.model.move(name, group)

    @rule(group=some_group, resumes=st.integers(0, 2), again=twice)
    def pause(self, *, group: str | None, resumes: int, again: bool) -> None:
        """Pause or resume."""
        reason = None if resumes else "why"
        self.sent(lambda: self.store.set_paused(group, reason), again=again)
        self.model.pause(group, reason)

    @rule(group=some_group, ceiling=st.sampled_from([None, None, 1, 2, 3]), again=twice)
    def set_ceiling(self, *, group: str | None, ceiling: int | None, again: bool) -> None:
        """Set a ceiling."""
        self.sent(lambda: self.store.set_ceiling(group, ceiling), again=again)
        self.model.set_ceiling(group, ceiling)

    @rule(keep_dead=st.sampled_from([None, None, None, 0, 4_000]), again=twice)
    def purge(self, *, keep_dead: int | None, again: bool) -> None:
        """Forget what was kept long enough."""
        type(self).steps += 1
        gone, more = self.store.purge_jobs(1000, keep_dead=keep_dead)
        expected = self.model.purge(keep_dead)
        assert not more
        assert gone == expected
        if again:
            assert self.store.purge_jobs(1000, keep_dead=keep_dead) == (0, False)

    @rule(by=st.sampled_from([1, 1, 999, 1_000, 4_000, 5_001]))
    def wait(self, by: int) -> None:
        """Let time go by."""
        type(self).steps += 1
        self.model.now = self.clock.advance(by / 1000)

    @rule(number=numbers, to=st.sampled_from(["A", "B", "T"]), end=twice)
    def walk(self, *, number: int, to: str, end: bool) -> None:
        """Move a claim's batch as its user does, or retire it."""
        claim_id = self.claim_id(number)
        claim = self.model.claims.get(claim_id)
        if claim is None or claim.retired or claim.claiming.ending != WALKING:
            return
        type(self).steps += 1
        batch = self.batch(claim_id)
        if end and claim.state in WALKING.terminal:
            retire(self.store, batch)
            claim.retired = True
        else:
            transition(self.store, batch, to)
            claim.state = to
        claim.version += 1

    @rule(number=numbers, token=st.sampled_from(["x", "y"]), lease=leases, kind=st.integers(0, 3), again=twice)
    def hold(self, *, number: int, token: str, lease: int, kind: int, again: bool) -> None:
        """Take, extend or end a hold on a claim's batch."""
        batch_id = self.claim_id(number)
        if batch_id == "never":
            return
        holder, until = self.model.holds.get(batch_id, ("", 0))
        if kind < 2:
            held = self.sent(lambda: self.store.take_hold(batch_id, token, lease), again=again)
            if until <= self.model.now:
                self.model.holds[batch_id] = (token, self.model.now + lease)
            assert (held.token, held.expires_at) == self.model.holds[batch_id]
            return
        ours = holder == token and until > self.model.now
        try:
            if kind == 2:
                self.sent(lambda: self.store.extend_hold(batch_id, token, lease), again=again)
                assert ours
                self.model.holds[batch_id] = (token, self.model.now + lease)
            else:
                self.sent(lambda: self.store.release_hold(batch_id, token), again=again)
                assert ours or not holder
                self.model.holds.pop(batch_id, None)
        except ClaimLostError:
            assert not ours


def drive(harness: Harness, steps: int, *, length: int = 60) -> tuple[int, int]:
    """Run the machine for at least so many steps; print the seed, and answer it with the number of steps taken.

    Args:
        harness: opens the storage; the machine takes queues named `machine-0` and on.
        steps: how many steps to take at least.
        length: how many steps one queue is driven for.

    Raises:
        AssertionError: the storage and the model disagree; hypothesis prints the shortest way there that it found,
            and the seed that was printed finds it again, given in the environment as `BATCHSTATE_SEED`.
    """
    first = int(os.environ.get("BATCHSTATE_SEED", random.SystemRandom().randrange(10**9)))
    print(f"state machine: BATCHSTATE_SEED={first}")  # noqa: T201 - to repeat a failure
    machine = type("JobMachine", (JobMachine,), {"harness": harness, "queues": count(), "steps": 0})
    for number in count(first):
        left = steps - machine.steps  # type: ignore[attr-defined]
        if left <= 0:
            break
        run_state_machine_as_test(
            seed(number)(machine),
            settings=settings(
                max_examples=max(1, min(100, left // (length // 2))),
                stateful_step_count=length,
                deadline=None,
                database=None,
                print_blob=True,
                report_multiple_bugs=False,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            ),
        )
    print(f"state machine: {machine.steps} steps")  # type: ignore[attr-defined] # noqa: T201 - what was done
    return first, machine.steps  # type: ignore[attr-defined]


def _error(answer: BatchStateError | None) -> str:
    return "" if answer is None else type(answer).__name__


def _comparable(answer: object) -> object:
    if isinstance(answer, list):
        return [_comparable(item) for item in answer]
    return (type(answer), str(answer)) if isinstance(answer, BatchStateError) else answer
