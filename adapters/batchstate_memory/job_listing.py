"""Counting, listing and purging of the jobs in a `MemoryStore`."""

from __future__ import annotations

import json
from heapq import heappop
from itertools import islice
from typing import TYPE_CHECKING

from batchstate.errors import CorruptRowError
from batchstate.job_calls import ClaimRow, GroupCounts, QueueCounts
from batchstate.job_wire import decode_job
from batchstate.storage import Page

if TYPE_CHECKING:
    from collections.abc import Iterable
    from threading import RLock

    from batchstate.job_wire import JobRow
    from batchstate.jobs import Job, Place
    from batchstate.times import Clock
    from batchstate_memory.job_rows import GroupState
    from batchstate_memory.store import MemoryStore, QueueRows

__all__ = ["MemoryJobListing"]


class MemoryJobListing:
    """The part of `MemoryStorage` that looks at jobs."""

    _queue: str
    _lock: RLock
    _rows: QueueRows
    store: MemoryStore
    clock: Clock

    def count_jobs(self) -> QueueCounts:
        with self._lock:
            now = self.clock()
            jobs = self._rows.jobs
            oldest: dict[str, int] = {}
            for row in jobs.rows.values():
                if row.place == "waiting":
                    oldest[row.group] = min(row.added_at, oldest.get(row.group, row.added_at))
            groups = tuple(self._counts(name, group, oldest.get(name)) for name, group in sorted(jobs.groups.items()))
            lapsed = sum(
                any(jobs.deadline(jobs.rows[job_id]) <= now for job_id in claim.held) for claim in jobs.claims.values()
            )
            return QueueCounts(groups, jobs.paused, jobs.ceiling, len(jobs.claims), lapsed, now)

    def _counts(self, name: str, group: GroupState, oldest: int | None) -> GroupCounts:
        ceiling = group.ceiling if group.ceiling is not None else self._rows.jobs.ceiling
        return GroupCounts(name or None, **group.counts, ceiling=ceiling, paused=group.paused, oldest=oldest)

    def count_claimable(self, limit: int, group: str | None = None, *, across_groups: bool = False) -> int:
        with self._lock:
            now = self.clock()
            jobs = self._rows.jobs
            if jobs.paused is not None:
                return 0
            if group is not None:
                return self._claimable(group, limit, now)
            count = 0
            for name in (*jobs.ring, *jobs.joining(now)):
                count += self._claimable(name, limit - count, now)
                if count and (count >= limit or not across_groups):
                    break
            return count

    def _claimable(self, name: str, limit: int, now: int) -> int:
        jobs = self._rows.jobs
        if not jobs.is_servable(name, now):
            return 0
        group = jobs.groups[name]
        headroom = jobs.headroom(group)
        most = limit if headroom is None else min(limit, headroom)
        waiting = group.counts["waiting"]
        if waiting >= most:
            return most
        return waiting + sum(1 for _ in islice(jobs.due_jobs(name, now), most - waiting))

    def get_jobs(self, ids: Iterable[str]) -> dict[str, Job | CorruptRowError]:
        with self._lock:
            rows = [row for job_id in dict.fromkeys(ids) if (row := self._rows.jobs.rows.get(job_id)) is not None]
            return {row.id: self._read_job(row) for row in rows}

    def list_jobs(
        self, place: Place, group: str | None = None, cursor: str | None = None, *, limit: int = 500
    ) -> Page[Job | CorruptRowError]:
        with self._lock:
            found = sorted(
                (self._sort_key(row), row)
                for row in self._rows.jobs.rows.values()
                if row.place == place and group in (None, row.group)
            )
            after = None if cursor is None else tuple(json.loads(cursor))
            rest = [(key, row) for key, row in found if after is None or key > after]
            chosen = rest[:limit]
            items = [self._read_job(row) for _, row in chosen]
        return Page(items, json.dumps(chosen[-1][0]) if len(rest) > limit else None)

    @staticmethod
    def _sort_key(row: JobRow) -> tuple[str, int, int]:
        if row.place == "dead":
            return "", 0, row.order
        return row.group, row.due_at or 0, row.order

    def list_claims(self, cursor: str | None = None, *, limit: int = 500) -> Page[ClaimRow]:
        with self._lock:
            jobs = self._rows.jobs
            rest = sorted(claim_id for claim_id in jobs.claims if cursor is None or claim_id > cursor)
            items = [
                ClaimRow(
                    claim_id,
                    jobs.claims[claim_id].expires_at,
                    tuple((job_id, jobs.deadline(jobs.rows[job_id])) for job_id in jobs.claims[claim_id].held),
                )
                for claim_id in rest[:limit]
            ]
        return Page(items, rest[limit - 1] if len(rest) > limit else None)

    def purge_jobs(self, limit: int, *, keep_dead: int | None) -> tuple[int, bool]:
        with self._lock:
            now = self.clock()
            jobs = self._rows.jobs
            gone = 0
            while jobs.forgetting and jobs.forgetting[0][0] <= now and gone < limit:
                instant, job_id = heappop(jobs.forgetting)
                if jobs.done.get(job_id) == instant:
                    del jobs.done[job_id]
                    gone += 1
            dead = [
                row
                for row in jobs.rows.values()
                if keep_dead is not None and row.place == "dead" and (row.dead_at or 0) <= now - keep_dead
            ]
            room = max(0, limit - gone)
            for row in dead[:room]:
                jobs.drop(row)
                jobs.refresh(row.group, now)
            more = len(dead) > room or bool(jobs.forgetting and jobs.forgetting[0][0] <= now)
            return gone + len(dead[:room]), more

    def _read_job(self, row: JobRow) -> Job | CorruptRowError:
        claim = self._rows.jobs.claims.get(row.claim or "")
        try:
            return decode_job(row, self._queue, claim_expires_at=claim.expires_at if claim else None)
        except CorruptRowError as error:
            return error
