"""`SQLiteJobs`: the job storage protocol over a `SQLiteDatabase`."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from batchstate.errors import (
    BatchStateError,
    ClaimLostError,
    InvalidTransitionError,
    InvalidValueError,
    NotFoundError,
    StorageUnavailableError,
)
from batchstate.job_calls import Claimed, Extended, Held, Settled, Swept
from batchstate.job_rules import new_row, returned
from batchstate.job_wire import JobRow, check_new_job, row_to_restore
from batchstate.names import check_name
from batchstate_sqlite import job_claims, job_listing, job_settling
from batchstate_sqlite import job_statements as sql
from batchstate_sqlite.job_step import JobStep
from batchstate_sqlite.joining import JoinedConnection
from batchstate_sqlite.reads import at_one_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from sqlite3 import Cursor

    from batchstate.errors import CorruptRowError
    from batchstate.job_calls import Added, Claiming, ClaimRow, NewJob, QueueCounts, SettledAs, Settling
    from batchstate.jobs import Job, Place
    from batchstate.storage import Outcome, Page
    from batchstate.times import Clock
    from batchstate_sqlite.database import SQLiteDatabase

__all__ = ["SQLiteJobs"]

T = TypeVar("T")

CHUNK: Final = 1000
"""How many jobs are written in one transaction at most, where a call may name any number."""

LARGEST_INT: Final = 2**63 - 1


class SQLiteJobs:
    """The part of `SQLiteStorage` that keeps jobs."""

    max_claim = job_claims.MAX_CLAIM

    database: SQLiteDatabase | JoinedConnection
    clock: Clock
    _queue: str
    _longest: int

    def now(self) -> int:
        return self.clock()

    def add_jobs(self, jobs: Sequence[NewJob]) -> list[Added | BatchStateError]:
        answers: list[Added | BatchStateError] = []
        for start in range(0, len(jobs), CHUNK):
            with self._step() as step:
                answers += self._add(step, jobs[start : start + CHUNK])
        return answers

    def restore_jobs(self, jobs: Sequence[Job]) -> list[Added | BatchStateError]:
        answers: list[Added | BatchStateError] = []
        for start in range(0, len(jobs), CHUNK):
            with self._step() as step:
                answers += self._restore(step, jobs[start : start + CHUNK])
        return answers

    def claim_jobs(self, claiming: Claiming) -> Claimed | None:
        self._refuse_lease()
        with self._step(nudging=False) as step:
            if step.cursor.execute(sql.CLAIM_IS_KNOWN, (self._queue, claiming.id) * 2).fetchone():
                return job_claims.claimed_again(step.cursor, self._queue, claiming.id)
            return job_claims.claim(step, claiming)

    def get_claims(self, ids: Iterable[str]) -> dict[str, Claimed]:
        wanted = list(dict.fromkeys(ids))
        found = self._read(lambda cursor: [job_claims.claimed(cursor, self._queue, claim_id) for claim_id in wanted])
        return {claim.batch.id: claim for claim in found if claim is not None}

    def extend_claim(self, claim_id: str, lease: int) -> Extended:
        self._refuse_lease()
        with self.database.transaction() as cursor:
            return job_claims.extend(cursor, self._queue, claim_id, self.clock() + lease)

    def extend_job(self, claim_id: str, job_id: str, lease: int) -> Extended:
        self._refuse_lease()
        with self.database.transaction() as cursor:
            return job_claims.extend_one(cursor, self._queue, claim_id, job_id, self.clock() + lease)

    def settle_jobs(
        self, claim_id: str, settlings: Sequence[Settling], *, keep_done: int, by: str = "", why: str = ""
    ) -> Settled:
        outcomes: list[SettledAs | BatchStateError] = []
        finished = False
        for start in range(0, max(1, len(settlings)), CHUNK):
            try:
                with self._step() as step:
                    settled = job_settling.settle_all(
                        step, claim_id, settlings[start : start + CHUNK], keep_done=keep_done, by=by, why=why
                    )
            except StorageUnavailableError as error:
                if not outcomes:
                    raise
                return Settled((*outcomes, *[error] * (len(settlings) - start)), finished=False)
            outcomes += settled.outcomes
            finished = settled.finished
        return Settled(tuple(outcomes), finished)

    def sweep_jobs(self, limit: int, *, max_stalls: int, by: str = "", skew: int = 0) -> Swept:
        with self._step() as step:
            return job_settling.sweep(step, limit, max_stalls=max_stalls, by=by, skew=skew)

    def revive_jobs(self, ids: Sequence[str]) -> list[Outcome]:
        return self._each_job(ids, self._revive)

    def remove_jobs(self, ids: Sequence[str], *, force: bool = False, by: str = "") -> list[Outcome]:
        return self._each_job(ids, lambda step, rows, job_id: self._remove(step, rows, job_id, force=force, by=by))

    def move_job(self, job_id: str, group: str) -> Outcome:
        if group:
            check_name("group", group)
        [outcome] = self._each_job([job_id], lambda step, rows, job_id: self._move(step, rows, job_id, group))
        return outcome

    def set_paused(self, group: str | None, reason: str | None) -> None:
        with self._step() as step:
            if group is None:
                step.paused = reason
            else:
                step.group(group).paused = reason
                step.touch(group)

    def set_ceiling(self, group: str | None, ceiling: int | None) -> None:
        with self._step() as step:
            if group is None:
                step.ceiling = ceiling
                for state in step.all_groups():
                    step.touch(state.name)
            else:
                step.group(group).ceiling = ceiling
                step.touch(group)

    def count_jobs(self) -> QueueCounts:
        return self._read(lambda cursor: job_listing.counts(cursor, self._queue, self.clock()))

    def count_claimable(self, limit: int, group: str | None = None, *, across_groups: bool = False) -> int:
        return self._read(
            lambda cursor: job_listing.claimable(cursor, self._queue, self.clock(), limit, group, across=across_groups)
        )

    def get_jobs(self, ids: Iterable[str]) -> dict[str, Job | CorruptRowError]:
        wanted = dict.fromkeys(ids)
        found = self._read(lambda cursor: job_listing.jobs_of(cursor, self._queue, list(wanted)))
        return {job_id: job for job_id, job in found.items() if job_id in wanted}

    def list_jobs(
        self, place: Place, group: str | None = None, cursor: str | None = None, *, limit: int = 500
    ) -> Page[Job | CorruptRowError]:
        return self._read(lambda rows: job_listing.jobs_in(rows, self._queue, place, group, cursor, limit))

    def list_claims(self, cursor: str | None = None, *, limit: int = 500) -> Page[ClaimRow]:
        return self._read(lambda rows: job_listing.list_claims(rows, self._queue, cursor, limit))

    def purge_jobs(self, limit: int, *, keep_dead: int | None) -> tuple[int, bool]:
        with self._step(nudging=False) as step:
            return job_listing.purge(step, limit, keep_dead)

    def take_hold(self, batch_id: str, token: str, lease: int) -> Held:
        self._refuse_lease()
        with self.database.transaction() as cursor:
            if not cursor.execute(sql.BATCH_EXISTS, (self._queue, batch_id)).fetchone():
                raise NotFoundError(f"there is no batch {batch_id!r} in queue {self._queue!r}")
            now = self.clock()
            found = cursor.execute(sql.HOLD_OF, (self._queue, batch_id)).fetchone()
            if found is not None and found[1] > now:
                return Held(batch_id, *found)
            return self._put_hold(cursor, batch_id, token, now + lease)

    def extend_hold(self, batch_id: str, token: str, lease: int) -> Held:
        self._refuse_lease()
        with self.database.transaction() as cursor:
            now = self.clock()
            self._check_hold(cursor, batch_id, token, now)
            return self._put_hold(cursor, batch_id, token, now + lease)

    def release_hold(self, batch_id: str, token: str) -> None:
        with self.database.transaction() as cursor:
            if cursor.execute(sql.HOLD_OF, (self._queue, batch_id)).fetchone() is not None:
                self._check_hold(cursor, batch_id, token, self.clock())
                cursor.execute(sql.DROP_HOLD, (self._queue, batch_id))

    def listen(self, nudge: Callable[[], None]) -> Callable[[], None]:
        return self.database.nudges.listen(nudge)

    def _put_hold(self, cursor: Cursor, batch_id: str, token: str, expires_at: int) -> Held:
        cursor.execute(sql.PUT_HOLD, (self._queue, batch_id, token, expires_at))
        return Held(batch_id, token, expires_at)

    def _check_hold(self, cursor: Cursor, batch_id: str, token: str, now: int) -> None:
        holder, until = cursor.execute(sql.HOLD_OF, (self._queue, batch_id)).fetchone() or ("", 0)
        if holder != token or until <= now:
            raise ClaimLostError(f"the hold on batch {batch_id!r} lapsed or is another's; its work must not go on")

    def _refuse_lease(self) -> None:
        if isinstance(self.database, JoinedConnection):
            msg = (
                "a lease must be seen by all at once, and this storage works inside a transaction of yours, which they "
                "see when you commit it: claim, hold and extend by a storage of its own; add and settle jobs here"
            )
            raise InvalidValueError(msg)

    @contextmanager
    def _step(self, *, nudging: bool = True) -> Iterator[JobStep]:
        """Give a writing step, which is finished at the end; then tell who waits for jobs, if it may have made some."""
        with self.database.transaction() as cursor:
            step = JobStep(cursor, self._queue, self.clock())
            yield step
            step.finish()
        if nudging and not isinstance(self.database, JoinedConnection):
            self.database.nudges()

    def _read(self, work: Callable[[Cursor], T]) -> T:
        return self.database.read(lambda cursor: at_one_instant(cursor, work))

    def _each_job(
        self, ids: Sequence[str], work: Callable[[JobStep, dict[str, JobRow], str], Outcome]
    ) -> list[Outcome]:
        """Do something with each of these jobs, whose rows `work` is given and keeps up to date."""
        answers: list[Outcome] = []
        for start in range(0, len(ids), CHUNK):
            chunk = ids[start : start + CHUNK]
            with self._step() as step:
                found = step.cursor.execute(sql.BARE_JOBS_OF, (json.dumps(chunk), self._queue)).fetchall()
                rows = {row.id: row for row in map(JobRow._make, found)}
                answers += [work(step, rows, job_id) for job_id in chunk]
        return answers

    def _add(self, step: JobStep, jobs: Sequence[NewJob]) -> list[Added | BatchStateError]:
        answers: list[Added | BatchStateError] = []
        known = self._known(step, jobs)
        rows: list[JobRow] = []
        for job in jobs:
            try:
                self._check(job, step.now)
            except BatchStateError as error:
                answers.append(error)
                continue
            if job.id in known and not _may_come_again(job, known[job.id], step.now):
                answers.append("duplicate")
                continue
            known[job.id] = None
            step.added += 1
            rows.append(new_row(job, step.added, step.now))
            answers.append("added")
        self._insert(step, rows)
        return answers

    def _restore(self, step: JobStep, jobs: Sequence[Job]) -> list[Added | BatchStateError]:
        answers: list[Added | BatchStateError] = []
        known = self._known(step, jobs)
        rows: list[JobRow] = []
        for job in jobs:
            try:
                row = row_to_restore(job, self._queue, most=self._longest)
                if max(number for number in row if isinstance(number, int)) > LARGEST_INT:
                    answers.append(InvalidValueError(f"job {job.id!r} has a number larger than SQLite's 2**63-1"))
                    continue
            except BatchStateError as error:
                answers.append(error)
                continue
            forgotten_at = known.get(job.id, 0)
            if forgotten_at is None or forgotten_at > step.now:
                answers.append("duplicate")
                continue
            known[job.id] = None
            step.added = max(step.added, row.order)
            rows.append(row)
            answers.append("added")
        self._insert(step, rows)
        return answers

    def _known(self, step: JobStep, jobs: Sequence[NewJob | Job]) -> dict[str, int | None]:
        """Answer the IDs that are known, with the instant at which each is forgotten, `None` for one that is there."""
        ids = json.dumps([job.id for job in jobs if type(job.id) is str])
        return {
            job_id: due_at if place == "done" else None
            for job_id, place, due_at in step.cursor.execute(sql.KNOWN_JOBS, (ids, self._queue))
        }

    def _insert(self, step: JobStep, rows: Sequence[JobRow]) -> None:
        step.cursor.executemany(sql.PUT_JOB, [(self._queue, *row) for row in rows])
        for row in rows:
            step.enter(row)

    def _check(self, job: NewJob, now: int) -> None:
        small = len(job.payload) * 4 < self._longest
        check_new_job(job, most=None if small else self._longest)
        if max(job.max_attempts, job.due_at or 0, now + job.delay) > LARGEST_INT:
            msg = f"job {job.id!r} has a due time or max_attempts that is larger than SQLite stores, which is 2**63-1"
            raise InvalidValueError(msg)

    def _revive(self, step: JobStep, rows: dict[str, JobRow], job_id: str) -> Outcome:
        row = rows.get(job_id)
        if row is None or row.place == "done":
            return self._not_found(job_id)
        if row.place == "waiting":
            return None
        if row.place != "dead":
            return InvalidTransitionError(f"job {job_id!r} is {row.place}, and only a dead one can be revived")
        rows[job_id] = returned(row)._replace(attempts=0, stalls=0, error="", claim=None)
        step.move(row, rows[job_id])
        return None

    def _remove(self, step: JobStep, rows: dict[str, JobRow], job_id: str, *, force: bool, by: str) -> Outcome:
        row = rows.get(job_id)
        if row is None:
            return self._not_found(job_id)
        if row.place == "active" and not force:
            return InvalidTransitionError(f"job {job_id!r} is held by a worker; force=True removes it all the same")
        del rows[job_id]
        if row.place == "done":
            step.cursor.execute(sql.DROP_JOB, (self._queue, job_id))
            return None if (row.due_at or 0) > step.now else self._not_found(job_id)
        step.drop(row)
        step.touch(row.group)
        if row.place == "active" and row.claim is not None:
            step.remember(row.claim, job_id, "removed")
            job_settling.let_go_of_one(step, row.claim, by=by, why="its last job was removed")
        return None

    def _move(self, step: JobStep, rows: dict[str, JobRow], job_id: str, group: str) -> Outcome:
        row = rows.get(job_id)
        if row is None or row.place == "done":
            return self._not_found(job_id)
        if row.place == "active":
            return InvalidTransitionError(f"job {job_id!r} is held, and its slot is its group's; move it afterwards")
        step.move(row, row._replace(group=group))
        return None

    def _not_found(self, job_id: str) -> NotFoundError:
        return NotFoundError(f"there is no job {job_id!r} in queue {self._queue!r}")


def _may_come_again(job: NewJob, forgotten_at: int | None, now: int) -> bool:
    """Answer whether a job may be added whose ID is known; `forgotten_at` is `None` for one that is there."""
    return forgotten_at is not None and (job.again or forgotten_at <= now)
