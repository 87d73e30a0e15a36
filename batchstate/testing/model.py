"""A model of a queue's jobs that is as simple as can be: what every `JobStorage` must do, written for reading.

It keeps everything in plain lists and goes through all of them for every question. The state machine drives it side
by side with a storage, see `batchstate.testing.machine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
from attrs import define, field

from batchstate.job_calls import Claiming, ClaimRow, Extended, Settled, Swept
from batchstate.job_rules import STALLED
from batchstate.jobs import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.job_calls import Added, NewJob, SettledAs, Settling

__all__ = ["Model", "ModelClaim"]

SETTLED = ("completed", "retried", "delayed", "dead", "released")


@define
class ModelClaim:
    """One claim, in flight or ended."""

    claiming: Claiming
    jobs: list[str]
    expires_at: int
    state: str
    version: int = 1
    retired: bool = False
    held: list[str] = field(factory=list)
    outcomes: dict[str, str] = field(factory=dict)
    extended: dict[str, int] = field(factory=dict)
    ends: int = 0


class Model:
    """One queue's jobs."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.now = 0
        self.jobs: dict[str, Job] = {}
        self.done: dict[str, int] = {}
        self.claims: dict[str, ModelClaim] = {}
        self.ceilings: dict[str | None, int] = {}
        self.paused: dict[str | None, str] = {}
        self.ring: list[str] = []
        self.order = 0
        self.added = self.finished = self.removed = 0
        self.holds: dict[str, tuple[str, int]] = {}

    # ------------------------------------------------------------------------------ questions

    def group(self, name: str) -> list[Job]:
        """Answer the jobs of a group, oldest first."""
        return sorted((job for job in self.jobs.values() if (job.group or "") == name), key=lambda job: job.order)

    def claimable(self, name: str) -> list[Job]:
        """Answer the jobs of a group that wait or are due, oldest first."""
        return [job for job in self.group(name) if job.place == "waiting" or self.is_due(job)]

    def is_due(self, job: Job) -> bool:
        """Answer whether a scheduled job is due."""
        return job.place == "scheduled" and job.due_at is not None and job.due_at <= self.now

    def ceiling(self, name: str) -> int | None:
        """Answer the ceiling that holds for a group."""
        return self.ceilings.get(name, self.ceilings.get(None))

    def active(self, name: str) -> int:
        """Answer how many of a group are held."""
        return sum(job.place == "active" for job in self.group(name))

    def headroom(self, name: str) -> int:
        """Answer how many more of a group may be held."""
        ceiling = self.ceiling(name)
        return len(self.jobs) if ceiling is None else max(0, ceiling - self.active(name))

    def servable(self, name: str) -> int:
        """Answer how many jobs of a group a claim could take."""
        return 0 if name in self.paused else min(len(self.claimable(name)), self.headroom(name))

    def deadline(self, claim: ModelClaim, job_id: str) -> int:
        """Answer when the lease of a held job ends."""
        return max(claim.expires_at, claim.extended.get(job_id, 0))

    def in_flight(self) -> list[ClaimRow]:
        """Answer the claims in flight, by ID."""
        return [
            ClaimRow(claim_id, claim.expires_at, tuple((name, self.deadline(claim, name)) for name in claim.held))
            for claim_id, claim in sorted(self.claims.items())
            if claim.held
        ]

    def count(self, limit: int, group: str | None, *, across: bool) -> int:
        """Answer how many jobs one claim could take, no further than `limit`."""
        if None in self.paused:
            return 0
        names = [group] if group is not None else self.turns()
        found = [self.servable(name) for name in names if self.servable(name)]
        return min(limit, sum(found) if across else sum(found[:1]))

    # ------------------------------------------------------------------------------- the ring

    def turns(self) -> list[str]:
        """Answer the groups in turn, those whose jobs fell due at the end, by due time."""
        others = {job.group or "" for job in self.jobs.values()} - set(self.ring)
        due = [
            (min(job.due_at or 0 for job in self.group(name) if self.is_due(job)), name)
            for name in others
            if self.servable(name)
        ]
        return [*self.ring, *(name for _, name in sorted(due))]

    def refresh(self, name: str) -> None:
        """Let a group join the ring's tail or leave it."""
        if not self.servable(name):
            self.ring = [other for other in self.ring if other != name]
        elif name not in self.ring:
            self.ring.append(name)

    # --------------------------------------------------------------------------------- calls

    def add(self, new: NewJob) -> Added:
        """Add a job."""
        if new.id in self.jobs or (self.done.get(new.id, 0) > self.now and not new.again):
            return "duplicate"
        self.done.pop(new.id, None)
        self.order += 1
        self.added += 1
        due = new.due_at if new.due_at is not None else self.now + new.delay
        later = due > self.now
        self.jobs[new.id] = Job(
            new.id,
            self.queue,
            None,
            new.group or None,
            "scheduled" if later else "waiting",
            self.order,
            max_attempts=new.max_attempts,
            added_at=self.now,
            due_at=due if later else None,
        )
        self.refresh(new.group)
        return "added"

    def claim(self, claiming: Claiming, most: int) -> list[str] | None:
        """Make a claim and answer its jobs, `None` for none."""
        if None in self.paused:
            return None
        limit = min(claiming.limit, most)
        taken: list[str] = []
        if claiming.group is not None:
            taken = self._take(claiming, claiming.group, limit)
        else:
            self.ring = self.turns()
            while self.ring and len(taken) < limit:
                name = self.ring.pop(0)
                taken += self._take(claiming, name, 1 if claiming.across_groups else limit)
                self.refresh(name)
                if taken and not claiming.across_groups:
                    break
        if not taken:
            return None
        self.claims[claiming.id] = ModelClaim(
            claiming,
            taken,
            self.now + claiming.lease,
            claiming.state,
            held=list(taken),
            outcomes=dict.fromkeys(taken, ""),
        )
        return taken

    def _take(self, claiming: Claiming, name: str, limit: int) -> list[str]:
        taken = [job.id for job in self.claimable(name)[: min(limit, self.servable(name))]]
        for job_id in taken:
            job = self.jobs[job_id]
            self.jobs[job_id] = attrs.evolve(
                job, place="active", due_at=None, deliveries=job.deliveries + 1, claim=claiming.id
            )
        self.refresh(name)
        return taken

    def extend(self, claim_id: str, lease: int) -> Extended:
        """Extend a claim."""
        claim = self.claims.get(claim_id)
        if claim is None:
            return Extended(None, 0)
        lost = tuple(name for name in claim.jobs if claim.outcomes[name] in ("swept", "removed"))
        if not claim.held:
            return Extended(None, 0, lost)
        claim.expires_at = self.now + lease
        return Extended(claim.expires_at, len(claim.held), lost)

    def extend_job(self, claim_id: str, job_id: str, lease: int) -> Extended:
        """Extend one job."""
        claim = self.claims.get(claim_id)
        if claim is None or job_id not in claim.held:
            settled = claim is not None and claim.outcomes.get(job_id) in SETTLED
            return Extended(None, 0, () if settled else (job_id,))
        claim.extended[job_id] = max(claim.extended.get(job_id, 0), self.now + lease)
        return Extended(self.deadline(claim, job_id), 1)

    def settle(self, claim_id: str, settlings: Sequence[Settling], keep_done: int) -> Settled:
        """Settle jobs."""
        outcomes = tuple(self._settle(claim_id, settling, keep_done) for settling in settlings)
        self._end(claim_id, swept=False)
        claim = self.claims.get(claim_id)
        return Settled(outcomes, finished=claim is None or not claim.held)

    def _settle(self, claim_id: str, settling: Settling, keep_done: int) -> SettledAs:
        claim, job = self.claims.get(claim_id), self.jobs.get(settling.id)
        if claim is None or settling.id not in claim.outcomes:
            return "lost"
        known = claim.outcomes[settling.id]
        if known in SETTLED:
            return known  # type: ignore[return-value]  # one of them
        held = settling.id in claim.held
        late = (
            known == "swept"
            and settling.verdict != "release"
            and job is not None
            and (job.place, job.claim) == ("waiting", claim_id)
        )
        if job is None or not (held or late):
            return "lost"
        outcome, after = self._judged(job, settling)
        claim.outcomes[settling.id] = outcome
        if held:
            claim.held.remove(settling.id)
        if after is None:
            del self.jobs[settling.id]
            self.finished += 1
            if keep_done:
                self.done[settling.id] = self.now + keep_done
        else:
            self.jobs[settling.id] = after
        self.refresh(job.group or "")
        return outcome

    def _judged(self, job: Job, settling: Settling) -> tuple[SettledAs, Job | None]:
        later = attrs.evolve(
            job,
            place="scheduled" if settling.delay else "waiting",
            due_at=self.now + settling.delay if settling.delay else None,
        )
        dead = attrs.evolve(job, place="dead", dead_at=self.now, error=settling.reason)
        if settling.verdict == "complete":
            return "completed", None
        if settling.verdict == "dead":
            return "dead", dead
        if settling.verdict == "retry":
            attempts = job.attempts + 1
            if attempts >= job.max_attempts:
                return "dead", attrs.evolve(dead, attempts=attempts)
            return "retried", attrs.evolve(later, attempts=attempts, error=settling.reason)
        if settling.verdict == "delay":
            return "delayed", later
        return "released", attrs.evolve(job, place="waiting", due_at=None)

    def lapsed(self) -> list[tuple[str, str]]:
        """Answer the claims and jobs that a sweep would take back."""
        return [
            (claim_id, name)
            for claim_id, claim in self.claims.items()
            for name in claim.held
            if self.deadline(claim, name) <= self.now
        ]

    def sweep(self, swept: Swept, max_stalls: int) -> None:
        """Take back the jobs that the storage says it took back, in its order: which ones come first is its own."""
        for name in (*swept.returned, *swept.dead):
            claim_id = self.jobs[name].claim or ""
            job = self.jobs[name]
            self.claims[claim_id].held.remove(name)
            self.claims[claim_id].outcomes[name] = "swept"
            stalled = attrs.evolve(job, stalls=job.stalls + 1, error=STALLED, place="waiting")
            if stalled.stalls > max_stalls:
                stalled = attrs.evolve(stalled, place="dead", dead_at=self.now)
            self.jobs[name] = stalled
            self._end(claim_id, swept=True)
        for group in sorted({self.jobs[name].group or "" for name in (*swept.returned, *swept.dead)}):
            self.refresh(group)

    def revive(self, job_id: str) -> str:
        """Revive a job; answer the error's name, or `""`."""
        job = self.jobs.get(job_id)
        if job is None:
            return "NotFoundError"
        if job.place == "waiting":
            return ""
        if job.place != "dead":
            return "InvalidTransitionError"
        self.jobs[job_id] = attrs.evolve(job, place="waiting", attempts=0, stalls=0, error="", claim=None, dead_at=None)
        self.refresh(job.group or "")
        return ""

    def remove(self, job_id: str, *, force: bool) -> str:
        """Remove a job; answer the error's name, or `""`."""
        job = self.jobs.get(job_id)
        if job is None:
            known = self.done.pop(job_id, 0) > self.now
            return "" if known else "NotFoundError"
        if job.place == "active" and not force:
            return "InvalidTransitionError"
        del self.jobs[job_id]
        self.removed += 1
        if job.place == "active" and job.claim is not None:
            self.claims[job.claim].held.remove(job_id)
            self.claims[job.claim].outcomes[job_id] = "removed"
            self._end(job.claim, swept=False)
        self.refresh(job.group or "")
        return ""

    def move(self, job_id: str, group: str) -> str:
        """Move a job; answer the error's name, or `""`."""
        job = self.jobs.get(job_id)
        if job is None:
            return "NotFoundError"
        if job.place == "active":
            return "InvalidTransitionError"
        self.jobs[job_id] = attrs.evolve(job, group=group or None)
        self.refresh(job.group or "")
        self.refresh(group)
        return ""

    def pause(self, group: str | None, reason: str | None) -> None:
        """Pause or resume."""
        if reason is None:
            self.paused.pop(group, None)
        else:
            self.paused[group] = reason
        if group is not None:
            self.refresh(group)

    def set_ceiling(self, group: str | None, ceiling: int | None) -> None:
        """Set a ceiling or take it away."""
        if ceiling is None:
            self.ceilings.pop(group, None)
        else:
            self.ceilings[group] = ceiling
        for name in sorted({job.group or "" for job in self.jobs.values()}) if group is None else [group]:
            self.refresh(name)

    def purge(self, keep_dead: int | None) -> int:
        """Forget what was kept long enough; answer how much."""
        over = [job_id for job_id, until in self.done.items() if until <= self.now]
        for job_id in over:
            del self.done[job_id]
        dead = [
            job.id
            for job in self.jobs.values()
            if keep_dead is not None and job.place == "dead" and (job.dead_at or 0) <= self.now - keep_dead
        ]
        for job_id in dead:
            del self.jobs[job_id]
        self.removed += len(dead)
        return len(over) + len(dead)

    def _end(self, claim_id: str, *, swept: bool) -> None:
        claim = self.claims.get(claim_id)
        if claim is None or claim.held or claim.ends:
            return
        claim.ends += 1
        ending = claim.claiming.ending
        if not claim.retired:
            if claim.state not in ending.terminal:
                claim.state = ending.abandoned if swept else ending.settled
            claim.version += 1
            claim.retired = claim.state in ending.terminal
