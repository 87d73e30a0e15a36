"""Counting, listing and purging jobs; what is counted and listed is no snapshot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from batchstate.errors import CorruptRowError
from batchstate.job_calls import ClaimRow, GroupCounts, QueueCounts
from batchstate.job_wire import decode_job
from batchstate.storage import Page
from batchstate_dynamodb.errors import ConditionFailedError
from batchstate_dynamodb.job_claims import DynamoDBClaims
from batchstate_dynamodb.job_layout import SHARDS, ClaimItem, instant, read_state
from batchstate_dynamodb.job_step import Step
from batchstate_dynamodb.layout import item_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from batchstate.job_wire import JobRow
    from batchstate.jobs import Job, Place
    from batchstate_dynamodb.job_layout import Group, Settings

__all__ = ["DynamoDBJobListing"]

_PURGED = 40
"""How many dead jobs are purged in one transaction: each has a place and a guard, and perhaps a group."""


class DynamoDBJobListing(DynamoDBClaims):
    """The part of `TransactingDynamoDBStorage` that looks at jobs."""

    def count_jobs(self) -> QueueCounts:
        now, settings = self.clock(), self._settings()
        groups = sorted(self._all_groups().values(), key=lambda group: group.name)
        claims = self._all_claims()
        lapsed = sum(any(claim.deadline(row) <= now for row in claim.held.values()) for claim in claims)
        counts = self._requests.side_by_side(lambda group: self._counts(group, settings), groups)
        return QueueCounts(tuple(counts), settings.paused, settings.ceiling, len(claims), lapsed, now)

    def _counts(self, group: Group, settings: Settings) -> GroupCounts:
        first = self._head(self._keys.waiting(group.name), 1) if group.waiting else ()
        return GroupCounts(
            group.name or None,
            group.waiting,
            group.active,
            group.scheduled,
            group.dead,
            ceiling=group.ceiling if group.ceiling is not None else settings.ceiling,
            paused=group.paused,
            oldest=read_state(first[0], "waiting").added_at if first else None,
        )

    def count_claimable(self, limit: int, group: str | None = None, *, across_groups: bool = False) -> int:
        now = self.clock()
        if group is not None:
            settings, groups = self._groups([group])
            names = [group]
        else:
            settings, groups = self._settings(), self._all_groups()
            names = []
        if settings.paused is not None:
            return 0
        step = Step(self, now, settings, groups)
        if group is None:
            ring = sorted((one.turn, one.name) for one in groups.values() if one.turn is not None)
            names = [*(name for _, name in ring), *self._joining(step)[0]]
        count = 0
        for name in names:
            count += self._claimable(step, name, limit - count)
            if count and (count >= limit or not across_groups):
                break
        return count

    def _claimable(self, step: Step, name: str, limit: int) -> int:
        if not step.is_servable(name):
            return 0
        group = step.groups[name]
        headroom = group.headroom(step.settings.ceiling)
        most = limit if headroom is None else min(limit, headroom)
        if group.waiting >= most or group.scheduled == 0:
            return min(group.waiting, most)
        due = self._head(self._keys.scheduled(name), most - group.waiting, instant(step.now + 1))
        return group.waiting + len(due)

    def get_jobs(self, ids: Iterable[str]) -> dict[str, Job | CorruptRowError]:
        distinct = list(dict.fromkeys(ids))
        return self._decide(lambda: self._get_jobs(distinct)) if distinct else {}

    def _get_jobs(self, ids: Sequence[str]) -> dict[str, Job | CorruptRowError] | None:
        guards = self._guards(ids)
        present = {job_id: guards[job_id] for job_id in ids if job_id in guards and guards[job_id].done is None}
        rows = self._locate(present.values())
        if len(rows) < len(present):
            return None
        return {job_id: self._read_job(*rows[job_id]) for job_id in present}

    def _read_job(self, row: JobRow, claim: ClaimItem | None = None) -> Job | CorruptRowError:
        try:
            return decode_job(row, self._queue, claim_expires_at=claim.expires_at if claim else None)
        except CorruptRowError as error:
            return error

    def list_jobs(
        self, place: Place, group: str | None = None, cursor: str | None = None, *, limit: int = 500
    ) -> Page[Job | CorruptRowError]:
        if place == "active":
            return self._list_active(group, cursor, limit)
        if place == "dead":
            return self._list_dead(group, cursor, limit)
        return self._list_lines(place, group, cursor, limit)

    def _list_active(self, group: str | None, cursor: str | None, limit: int) -> Page[Job | CorruptRowError]:
        claims = {claim.id: claim for claim in self._all_claims()}
        found = sorted(
            (row.group, row.order, row.id, claim.id)
            for claim in claims.values()
            for row in claim.held.values()
            if group in (None, row.group)
        )
        after = ("", -1) if cursor is None else tuple(json.loads(cursor))
        rest = [key for key in found if key[:2] > after]
        chosen = rest[:limit]
        rows = self._with_payload(claims[claim_id].held[job_id] for _, _, job_id, claim_id in chosen)
        items = [self._read_job(row, claims.get(row.claim or "")) for row in rows]
        return Page(items, json.dumps(chosen[-1][:2]) if len(rest) > limit else None)

    def _list_dead(self, group: str | None, cursor: str | None, limit: int) -> Page[Job | CorruptRowError]:
        page = self._requests.query(self._keys.dead, cursor, limit)
        rows = [row for item in page.items if group in (None, (row := read_state(item, "dead")).group)]
        return Page([self._read_job(row) for row in self._with_payload(rows)], page.last)

    def _list_lines(
        self, place: Place, group: str | None, cursor: str | None, limit: int
    ) -> Page[Job | CorruptRowError]:
        name, after = (None, None) if cursor is None else json.loads(cursor)
        if group is not None:
            names = [group]
        else:
            names = sorted(one.name for one in self._all_groups().values() if getattr(one, place))
            names = [one for one in names if name is None or one >= name]
        rows: list[JobRow] = []
        line = self._keys.waiting if place == "waiting" else self._keys.scheduled
        for number, one in enumerate(names):
            page = self._requests.query(line(one), after if one == name else None, limit - len(rows))
            rows += [read_state(item, place) for item in page.items]
            if page.last is not None:
                return self._page(rows, json.dumps([one, page.last]))
            if len(rows) >= limit and number + 1 < len(names):
                return self._page(rows, json.dumps([names[number + 1], None]))
        return self._page(rows, None)

    def _page(self, rows: Iterable[JobRow], cursor: str | None) -> Page[Job | CorruptRowError]:
        return Page([self._read_job(row) for row in self._with_payload(rows)], cursor)

    def list_claims(self, cursor: str | None = None, *, limit: int = 500) -> Page[ClaimRow]:
        first, after = (0, None) if cursor is None else json.loads(cursor)
        claims: list[ClaimItem] = []
        for shard in range(first, SHARDS):
            page = self._requests.query(self._keys.claims(shard), after, limit - len(claims))
            claims += [ClaimItem.of(item) for item in page.items]
            after = page.last
            if after is not None or len(claims) >= limit:
                end = [shard, after] if after is not None else [shard + 1, None]
                return Page([_claim_row(claim) for claim in claims], json.dumps(end) if end[0] != SHARDS else None)
        return Page([_claim_row(claim) for claim in claims])

    def purge_jobs(self, limit: int, *, keep_dead: int | None) -> tuple[int, bool]:
        now = self.clock()
        gone, more = self._forget_done(limit, now)
        if keep_dead is None:
            return gone, more
        dead: list[JobRow] = []
        after: str | None = None
        while True:
            page = self._requests.query(self._keys.dead, after, None)
            rows = [read_state(item, "dead") for item in page.items]
            dead += [row for row in rows if (row.dead_at or 0) <= now - keep_dead]
            after = page.last
            if after is None or len(dead) > limit:
                break
        room = max(0, limit - gone)
        chosen = dead[:room]
        for start in range(0, len(chosen), _PURGED // 2):
            chunk = chosen[start : start + _PURGED // 2]
            gone += self._decide(lambda chunk=chunk: self._purge_dead(chunk))[0]  # type: ignore[misc]
        return gone, more or len(dead) > room

    def _forget_done(self, limit: int, now: int) -> tuple[int, bool]:
        """Forget remembered IDs whose time is over; answer how many, and whether more remain."""
        gone, more = 0, False
        for shard in range(SHARDS):
            room = limit - gone
            found = self._head(self._keys.remembered(shard), room + 1, instant(now + 1))
            more = more or len(found) > room
            entries = [self._sk(item) for item in found[: max(room, 0)]]
            forgotten = self._requests.side_by_side(self._forget, entries)
            gone += sum(forgotten)
            self._requests.delete_many(
                self._keys.done(job_id, int(at)) for at, _, job_id in (entry.partition(":") for entry in entries)
            )
        return gone, more

    def _forget(self, entry: str) -> bool:
        """Forget the ID of an entry, unless it was added or done anew since; the entry is then a stray."""
        at, _, job_id = entry.partition(":")
        try:
            self._requests.call(
                "delete_item",
                Key=item_key(self._keys.guard(job_id)),
                ConditionExpression="#done = :done",
                ExpressionAttributeNames={"#done": "done"},
                ExpressionAttributeValues={":done": {"N": str(int(at))}},
            )
        except ConditionFailedError:
            return False
        return True

    def _purge_dead(self, rows: Sequence[JobRow]) -> tuple[int] | None:
        """Purge those of these that are dead still; answer how many."""
        settings, groups = self._groups(row.group for row in rows)
        found = self._requests.get_many([self._keys.place(row) for row in rows], lambda item: read_state(item, "dead"))
        step = Step(self, self.clock(), settings, groups)
        gone = 0
        for row in rows:
            if found.get(self._keys.place(row)) == row:
                step.move(row, None)
                step.write({"Delete": {"Key": item_key(self._keys.guard(row.id))}})
                gone += 1
        return (gone,) if step.commit() else None


def _claim_row(claim: ClaimItem) -> ClaimRow:
    held = tuple((job_id, claim.deadline(row)) for job_id, row in claim.held.items())
    return ClaimRow(claim.id, claim.expires_at, held)
