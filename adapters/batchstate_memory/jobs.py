"""`MemoryJobs`: the job storage protocol over a `MemoryStore`."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING

from batchstate.errors import (
    BatchStateError,
    ClaimLostError,
    InvalidTransitionError,
    NotFoundError,
)
from batchstate.job_calls import Claimed, Extended, Held, Settled, Swept
from batchstate.job_rules import batch_of_claim, ending_swap, judge_settling, new_row, returned, settle, stall
from batchstate.job_wire import check_new_job, decode_job, row_to_restore
from batchstate.names import check_name
from batchstate.wire import decode_batch, encode_batch
from batchstate_memory.job_listing import MemoryJobListing
from batchstate_memory.job_rows import ClaimState, JobRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from batchstate.entities import Batch
    from batchstate.job_calls import Added, Claiming, NewJob, SettledAs, Settling
    from batchstate.job_wire import JobRow
    from batchstate.jobs import Job
    from batchstate.storage import Outcome

__all__ = ["MemoryJobs"]

LOOKED_AT = 1000
"""How many due jobs of a group one claim looks at."""


class MemoryJobs(MemoryJobListing):
    """The part of `MemoryStorage` that keeps jobs."""

    max_claim = 100_000

    def now(self) -> int:
        return self.clock()

    def add_jobs(self, jobs: Sequence[NewJob]) -> list[Added | BatchStateError]:
        with self._lock:
            now = self.clock()
            answers = [self._add(job, now) for job in jobs]
            for job, answer in zip(jobs, answers, strict=True):
                if answer == "added":
                    self._jobs.refresh(job.group, now)
            self._nudge()
            return answers

    def restore_jobs(self, jobs: Sequence[Job]) -> list[Added | BatchStateError]:
        with self._lock:
            now = self.clock()
            answers = [self._restore(job, now) for job in jobs]
            self._nudge()
            return answers

    def claim_jobs(self, claiming: Claiming) -> Claimed | None:
        with self._lock:
            now = self.clock()
            if claiming.id in self._rows.batches:
                return self._claim_again(claiming)
            if self._jobs.paused is not None:
                return None
            taken = self._take(claiming, now)
            return self._make_claim(claiming, taken, now) if taken else None

    def get_claims(self, ids: Iterable[str]) -> dict[str, Claimed]:
        with self._lock:
            return {
                claim_id: self._claimed(claim_id)
                for claim_id in dict.fromkeys(ids)
                if claim_id in self._jobs.claims and claim_id in self._rows.batches
            }

    def extend_claim(self, claim_id: str, lease: int) -> Extended:
        with self._lock:
            lost = self._lost(claim_id)
            claim = self._jobs.claims.get(claim_id)
            if claim is None:
                return Extended(None, 0, lost)
            claim.expires_at = self.clock() + lease
            heappush(self._jobs.leases, (claim.expires_at, claim_id))
            return Extended(claim.expires_at, len(claim.held), lost)

    def extend_job(self, claim_id: str, job_id: str, lease: int) -> Extended:
        with self._lock:
            claim = self._jobs.claims.get(claim_id)
            if claim is None or job_id not in claim.held:
                settled = self._outcome(claim_id, job_id) not in (None, "", "swept", "removed")
                return Extended(None, 0, () if settled else (job_id,))
            row = self._jobs.rows[job_id]
            until = max(self.clock() + lease, row.extended_to or 0)
            self._jobs.rows[job_id] = row._replace(extended_to=until)
            heappush(self._jobs.leases, (until, claim_id))
            return Extended(max(until, claim.expires_at), 1)

    def settle_jobs(
        self, claim_id: str, settlings: Sequence[Settling], *, keep_done: int, by: str = "", why: str = ""
    ) -> Settled:
        with self._lock:
            now = self.clock()
            outcomes = tuple(self._settle(claim_id, settling, keep_done, now) for settling in settlings)
            self._end_if_empty(claim_id, swept=False, now=now, by=by, why=why)
            self._nudge()
            return Settled(outcomes, finished=claim_id not in self._jobs.claims)

    def sweep_jobs(self, limit: int, *, max_stalls: int, by: str = "", skew: int = 0) -> Swept:
        with self._lock:
            now = self.clock()
            swept: list[JobRow] = []
            ended: list[str] = []
            leases = self._jobs.leases
            more = False
            while leases and leases[0][0] <= now - skew and not more:
                lapsed_at, claim_id = heappop(leases)
                claim = self._jobs.claims.get(claim_id)
                if claim is None:
                    continue
                lapsed = [
                    row for job_id in claim.held if self._jobs.deadline(row := self._jobs.rows[job_id]) <= now - skew
                ]
                room = limit - len(swept)
                more = len(lapsed) > room
                if more:
                    heappush(leases, (lapsed_at, claim_id))
                swept += [self._sweep(claim, row, max_stalls, now) for row in lapsed[:room]]
                if self._end_if_empty(claim_id, swept=True, now=now, by=by, why="swept"):
                    ended.append(claim_id)
            for group in sorted({row.group for row in swept}):
                self._jobs.refresh(group, now)
            self._nudge()
            return Swept(
                tuple(row.id for row in swept if row.place == "waiting"),
                tuple(row.id for row in swept if row.place == "dead"),
                tuple(ended),
                more,
            )

    def revive_jobs(self, ids: Sequence[str]) -> list[Outcome]:
        with self._lock:
            now = self.clock()
            answers = [self._revive(job_id, now) for job_id in ids]
            self._nudge()
            return answers

    def remove_jobs(self, ids: Sequence[str], *, force: bool = False, by: str = "") -> list[Outcome]:
        with self._lock:
            now = self.clock()
            answers = [self._remove(job_id, force=force, by=by, now=now) for job_id in ids]
            self._nudge()
            return answers

    def move_job(self, job_id: str, group: str) -> Outcome:
        if group:
            check_name("group", group)
        with self._lock:
            row = self._jobs.rows.get(job_id)
            if row is None:
                return NotFoundError(f"there is no job {job_id!r} in queue {self._queue!r}")
            if row.place == "active":
                return InvalidTransitionError(
                    f"job {job_id!r} is held, and its slot is its group's; move it afterwards"
                )
            now = self.clock()
            self._jobs.store(row._replace(group=group))
            for name in (row.group, group):
                self._jobs.refresh(name, now)
            self._nudge()
            return None

    def set_paused(self, group: str | None, reason: str | None) -> None:
        with self._lock:
            if group is None:
                self._jobs.paused = reason
            else:
                self._jobs.group(group).paused = reason
                self._jobs.refresh(group, self.clock())
            self._nudge()

    def set_ceiling(self, group: str | None, ceiling: int | None) -> None:
        with self._lock:
            if group is None:
                self._jobs.ceiling = ceiling
            else:
                self._jobs.group(group).ceiling = ceiling
            now = self.clock()
            for name in [group] if group is not None else sorted(self._jobs.groups):
                self._jobs.refresh(name, now)
            self._nudge()

    def take_hold(self, batch_id: str, token: str, lease: int) -> Held:
        with self._lock:
            if batch_id not in self._rows.batches:
                raise NotFoundError(f"there is no batch {batch_id!r} in queue {self._queue!r}")
            now = self.clock()
            holder, until = self._jobs.holds.get(batch_id, ("", 0))
            if until > now:
                return Held(batch_id, holder, until)
            self._jobs.holds[batch_id] = (token, now + lease)
            return Held(batch_id, token, now + lease)

    def extend_hold(self, batch_id: str, token: str, lease: int) -> Held:
        with self._lock:
            now = self.clock()
            self._check_hold(batch_id, token, now)
            self._jobs.holds[batch_id] = (token, now + lease)
            return Held(batch_id, token, now + lease)

    def release_hold(self, batch_id: str, token: str) -> None:
        with self._lock:
            if batch_id in self._jobs.holds:
                self._check_hold(batch_id, token, self.clock())
                del self._jobs.holds[batch_id]

    def listen(self, nudge: Callable[[], None]) -> Callable[[], None]:
        return self.store.listen(nudge)

    def _nudge(self) -> None:
        self.store.nudge()

    def _add(self, job: NewJob, now: int) -> Added | BatchStateError:
        try:
            check_new_job(job)
        except BatchStateError as error:
            return error
        if job.id in self._jobs.rows or (self._jobs.done.get(job.id, 0) > now and not job.again):
            return "duplicate"
        self._jobs.done.pop(job.id, None)
        self._jobs.added += 1
        self._jobs.store(new_row(job, self._jobs.added, now))
        return "added"

    def _restore(self, job: Job, now: int) -> Added | BatchStateError:
        try:
            row = row_to_restore(job, self._queue)
        except BatchStateError as error:
            return error
        if job.id in self._jobs.rows or self._jobs.done.get(job.id, 0) > now:
            return "duplicate"
        self._jobs.done.pop(job.id, None)
        self._jobs.added = max(self._jobs.added, row.order)
        self._jobs.store(row)
        self._jobs.refresh(row.group, now)
        return "added"

    def _take(self, claiming: Claiming, now: int) -> list[JobRow]:
        """Take jobs out of their lines, by turn or from the group that is named."""
        limit = min(claiming.limit, self.max_claim)
        if claiming.group is not None:
            taken = self._take_from(claiming.group, limit, now)
            self._jobs.refresh(claiming.group, now)
            return taken
        self._jobs.join(now)
        rows: list[JobRow] = []
        while self._jobs.ring and len(rows) < limit:
            name = next(iter(self._jobs.ring))
            rows += self._take_from(name, 1 if claiming.across_groups else limit, now)
            del self._jobs.ring[name]
            self._jobs.refresh(name, now)
            if rows and not claiming.across_groups:
                break
        return rows

    def _take_from(self, name: str, limit: int, now: int) -> list[JobRow]:
        if not self._jobs.is_servable(name, now):
            return []
        for _ in range(LOOKED_AT):
            due = self._jobs.first_due(name, now)
            if due is None:
                break
            self._jobs.store(returned(due))
        headroom = self._jobs.headroom(self._jobs.group(name))
        rows: list[JobRow] = []
        for row in islice(self._jobs.in_line(name), limit if headroom is None else min(limit, headroom)):
            rows.append(row._replace(place="active", deliveries=row.deliveries + 1))
            self._jobs.store(rows[-1])
        return rows

    def _make_claim(self, claiming: Claiming, taken: Sequence[JobRow], now: int) -> Claimed:
        ids = [row.id for row in taken]
        batch = batch_of_claim(self._queue, claiming, ids, now)
        self._rows.write(encode_batch(batch, self._queue))
        self._rows.bucket(batch.state).put(batch.id, batch.version)
        for job_id in ids:
            self._rows.outcomes.setdefault(job_id, {})[batch.id] = ""
            self._jobs.rows[job_id] = self._jobs.rows[job_id]._replace(claim=claiming.id, extended_to=None)
        self._jobs.claims[claiming.id] = ClaimState(now + claiming.lease, claiming.ending, dict.fromkeys(ids))
        heappush(self._jobs.leases, (now + claiming.lease, claiming.id))
        return self._claimed(claiming.id)

    def _claim_again(self, claiming: Claiming) -> Claimed:
        if claiming.id not in self._jobs.claims:
            raise ClaimLostError(f"claim {claiming.id!r} holds nothing any more; claim again, with a new ID")
        return self._claimed(claiming.id)

    def _claimed(self, claim_id: str) -> Claimed:
        claim = self._jobs.claims[claim_id]
        jobs = tuple(self._job(self._jobs.rows[job_id]) for job_id in claim.held)
        return Claimed(self._batch(claim_id), jobs, claim.expires_at)

    def _batch(self, batch_id: str) -> Batch:
        return decode_batch(self._rows.batches[batch_id], self._queue)

    def _job(self, row: JobRow) -> Job:
        claim = self._jobs.claims.get(row.claim or "")
        return decode_job(row, self._queue, claim_expires_at=claim.expires_at if claim else None)

    def _outcome(self, claim_id: str, job_id: str) -> str | None:
        return self._rows.outcomes.get(job_id, {}).get(claim_id)

    def _remember(self, claim_id: str, job_id: str, outcome: str) -> None:
        if claim_id in self._rows.outcomes.get(job_id, {}):  # not where the batch was purged under its holder
            self._rows.outcomes[job_id][claim_id] = outcome

    def _lost(self, claim_id: str) -> tuple[str, ...]:
        row = self._rows.batches.get(claim_id)
        if row is None:
            return ()
        return tuple(
            job_id
            for job_id in self._batch(claim_id).request_ids
            if self._outcome(claim_id, job_id) in ("swept", "removed")
        )

    def _settle(self, claim_id: str, settling: Settling, keep_done: int, now: int) -> SettledAs:
        row = self._jobs.rows.get(settling.id)
        judged = judge_settling(self._outcome(claim_id, settling.id), row, claim_id, settling)
        if judged is not None or row is None:
            return judged or "lost"
        outcome, after = settle(row, settling, now)
        if after is not None:
            self._jobs.store(after)
        else:
            self._jobs.drop(row)
            if keep_done > 0:
                self._jobs.done[row.id] = now + keep_done
                heappush(self._jobs.forgetting, (now + keep_done, row.id))
        if row.place == "active":
            self._jobs.claims[claim_id].held.pop(row.id)
        self._remember(claim_id, row.id, outcome)
        self._jobs.refresh(row.group, now)
        return outcome

    def _sweep(self, claim: ClaimState, row: JobRow, max_stalls: int, now: int) -> JobRow:
        after = stall(row, max_stalls, now)
        self._jobs.store(after)
        claim.held.pop(row.id)
        self._remember(row.claim or "", row.id, "swept")
        return after

    def _end_if_empty(self, claim_id: str, *, swept: bool, now: int, by: str, why: str) -> bool:
        """End the claim if it holds nothing any more; answer whether this step did."""
        claim = self._jobs.claims.get(claim_id)
        if claim is None or claim.held:
            return False
        del self._jobs.claims[claim_id]
        if claim_id not in self._rows.batches:
            return True
        swap = ending_swap(self._batch(claim_id), claim.ending, swept=swept, now=now, by=by, why=why)
        if swap is not None:
            self._rows.write(encode_batch(swap.after, self._queue))
            self._rows.bucket(swap.before.state).delete(claim_id, swap.before.version)
            if swap.after.retired_at is None:
                self._rows.bucket(swap.after.state).put(claim_id, swap.after.version)
        return True

    def _revive(self, job_id: str, now: int) -> Outcome:
        row = self._jobs.rows.get(job_id)
        if row is None:
            return NotFoundError(f"there is no job {job_id!r} in queue {self._queue!r}")
        if row.place == "waiting":
            return None
        if row.place != "dead":
            return InvalidTransitionError(f"job {job_id!r} is {row.place}, and only a dead one can be revived")
        self._jobs.store(returned(row)._replace(attempts=0, stalls=0, error="", claim=None))
        self._jobs.refresh(row.group, now)
        return None

    def _remove(self, job_id: str, *, force: bool, by: str, now: int) -> Outcome:
        row = self._jobs.rows.get(job_id)
        if row is None:
            known = self._jobs.done.pop(job_id, 0) > now
            return None if known else NotFoundError(f"there is no job {job_id!r} in queue {self._queue!r}")
        if row.place == "active" and not force:
            return InvalidTransitionError(f"job {job_id!r} is held by a worker; force=True removes it all the same")
        self._jobs.drop(row)
        if row.place == "active" and row.claim is not None:
            self._jobs.claims[row.claim].held.pop(job_id)
            self._remember(row.claim, job_id, "removed")
            self._end_if_empty(row.claim, swept=False, now=now, by=by, why="its last job was removed")
        self._jobs.refresh(row.group, now)
        return None

    def _check_hold(self, batch_id: str, token: str, now: int) -> None:
        holder, until = self._jobs.holds.get(batch_id, ("", 0))
        if holder != token or until <= now:
            raise ClaimLostError(f"the hold on batch {batch_id!r} lapsed or is another's; its work must not go on")

    @property
    def _jobs(self) -> JobRows:
        return self._rows.jobs
