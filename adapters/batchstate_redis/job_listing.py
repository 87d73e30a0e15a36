"""Looking at jobs: loading, listing, counting, and forgetting what was kept long enough."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from batchstate.errors import InvalidValueError
from batchstate.job_calls import ClaimRow, GroupCounts, QueueCounts
from batchstate.storage import Page
from batchstate_redis.job_rows import read_or_answer
from batchstate_redis.keys import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from batchstate.errors import CorruptRowError
    from batchstate.jobs import Job, Place
    from batchstate_redis.job_scripts import JobRunner
    from batchstate_redis.keys import Keys
    from batchstate_redis.paging import Pager

__all__ = ["RedisJobListing"]

JOBS_AT_ONCE: Final = 500
GROUPS_AT_ONCE: Final = 250
LOOKED_AT: Final = 200
"""How many claims that may have lapsed one script looks at."""

CLAIMS_AT_ONCE: Final = 500
PURGED_AT_ONCE: Final = 250
ORDER_DIGITS: Final = 16
"""How many digits of its order a scheduled job's entry begins with."""


class RedisJobListing:
    """The part of `RedisStorage` that looks at jobs."""

    _queue: str
    _keys: Keys
    _pager: Pager
    _jobs: JobRunner

    def get_jobs(self, ids: Iterable[str]) -> dict[str, Job | CorruptRowError]:
        wanted = list(dict.fromkeys(ids))
        found: dict[str, Job | CorruptRowError] = {}
        for start in range(0, len(wanted), JOBS_AT_ONCE):
            chunk = wanted[start : start + JOBS_AT_ONCE]
            flat = self._jobs("get_jobs", *[job_id.encode("utf-8", "surrogatepass") for job_id in chunk])
            for at, job_id in enumerate(chunk):
                head, payload, expires = flat[3 * at : 3 * at + 3]
                if head:
                    found[job_id] = read_or_answer(job_id, self._queue, head, payload, expires)
        return found

    def list_jobs(
        self, place: Place, group: str | None = None, cursor: str | None = None, *, limit: int = 500
    ) -> Page[Job | CorruptRowError]:
        """As `JobStorage` says; what changes its place while it is read is answered as it is then, or left out."""
        name, score, member = ("", "", "") if cursor is None else _read_cursor(cursor)
        wanted = f"={group}" if group is not None else "*" if place == "dead" else ""
        flat, more, following = self._jobs(
            "list_jobs", min(limit, JOBS_AT_ONCE), place, wanted, name, score, str(member).encode()
        )
        entries = [(text_of(flat[at]), text_of(flat[at + 1]), text_of(flat[at + 2])) for at in range(0, len(flat), 3)]
        ids = [member[ORDER_DIGITS:] if place == "scheduled" else member for _, _, member in entries]
        found = self.get_jobs(ids)
        items = [job for job_id in ids if (job := found.get(job_id)) is not None and _is_in(job, place)]
        if not more:
            return Page(items)
        return Page(items, json.dumps(entries[-1] if not following else [text_of(following), "", ""]))

    def list_claims(self, cursor: str | None = None, *, limit: int = 500) -> Page[ClaimRow]:
        """As `JobStorage` says; of few claims all come in one page, whatever the limit."""
        names, following = self._pager.members(self._keys.job_part("leases"), cursor, limit)
        rows = [
            ClaimRow(claim_id, int(answer[0]), tuple(_leases(answer[1])))
            for claim_id, answer in self._each_claim("list_claims", names)
        ]
        return Page(rows, following)

    def _each_claim(self, name: str, ids: Sequence[str]) -> list[tuple[str, Any]]:
        """Run a script that answers for as many claims as it can; answer for those that are there."""
        found = []
        done = 0
        while done < len(ids):
            chunk = ids[done : done + CLAIMS_AT_ONCE]
            answers = self._jobs(name, *[claim_id.encode("utf-8", "surrogatepass") for claim_id in chunk])
            found += [(claim_id, answer) for claim_id, answer in zip(chunk, answers, strict=False) if answer != 0]
            done += len(answers)
        return found

    def count_jobs(self) -> QueueCounts:
        """As `JobStorage` says: a snapshot for up to 250 groups and 200 lapsed claims."""
        groups: list[GroupCounts] = []
        lapsed = passed = 0
        after = ""
        while True:
            found, paused, ceiling, claims, more_lapsed, is_more, now = self._jobs(
                "count_jobs", GROUPS_AT_ONCE, after, passed
            )
            default = int(ceiling) if ceiling else None
            groups += [_counts(row, default) for row in found]
            lapsed += more_lapsed
            passed += LOOKED_AT if is_more else 0
            if found:
                after = b"=" + found[-1][0]
            if len(found) < GROUPS_AT_ONCE and not is_more:
                groups.sort(key=lambda counts: counts.group or "")
                return QueueCounts(tuple(groups), _reason(paused), default, claims, lapsed, int(now))
            if not is_more:
                passed = 1 << 52

    def count_claimable(self, limit: int, group: str | None = None, *, across_groups: bool = False) -> int:
        wanted = f"={group}" if group is not None else "*" if across_groups else ""
        while True:
            count = int(self._jobs("count_claimable", limit, wanted))
            if count >= 0:
                return count

    def purge_jobs(self, limit: int, *, keep_dead: int | None) -> tuple[int, bool]:
        gone, more = 0, True
        while more and gone < limit:
            step, is_more = self._jobs(
                "purge_jobs", min(limit - gone, PURGED_AT_ONCE), "" if keep_dead is None else keep_dead
            )
            gone += step
            more = bool(is_more)
        return gone, more


def _counts(row: Sequence[Any], default: int | None) -> GroupCounts:
    name, waiting, active, scheduled, dead, ceiling, paused, oldest = row
    return GroupCounts(
        text_of(name) or None,
        waiting,
        active,
        scheduled,
        dead,
        int(ceiling) if ceiling else default,
        _reason(paused),
        int(oldest) if oldest else None,
    )


def _reason(text: bytes) -> str | None:
    return text_of(text[1:]) if text else None


def _leases(flat: Sequence[bytes]) -> list[tuple[str, int]]:
    return [(text_of(job_id), int(expires)) for job_id, expires in zip(flat[::2], flat[1::2], strict=True)]


def _is_in(job: Job | CorruptRowError, place: Place) -> bool:
    return isinstance(job, Exception) or job.place == place


def _read_cursor(cursor: str) -> tuple[str, str, str]:
    try:
        name, score, member = json.loads(cursor)
    except (ValueError, TypeError) as error:
        raise InvalidValueError(f"this is no cursor of this listing: {cursor!r:.80}") from error
    return name, score, member
