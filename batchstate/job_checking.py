"""Checking the claim half: each job in one place, slots against jobs held, claims against jobs and batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, get_args

from batchstate.balance import Balance
from batchstate.checking import Fault, mending
from batchstate.entities import Batch
from batchstate.jobs import Job, Place
from batchstate.listing import HYDRATED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from batchstate.claims.context import JobStore
    from batchstate.errors import BatchStateError
    from batchstate.job_calls import ClaimRow

__all__ = ["check_jobs"]

_LOOKS = 3
"""How often a difference must be found, with the same jobs there; a count and a listing are no snapshot together."""

_CLAIMS = 50
"""How many claims are looked at together; each may hold hundreds of jobs."""

_MASK = (1 << 64) - 1

_Tally: TypeAlias = "dict[tuple[str | None, Place], tuple[int, int]]"
"""Group and place to how many jobs are listed there, and a sum that tells these jobs, as they are, from others."""


def check_jobs(store: JobStore, *, on_progress: Callable[[str, int], None] = lambda *_: None) -> Iterator[Fault]:
    """Go through the jobs and claims of a queue, and answer what is wrong.

    Works beside running workers: what is moving is not judged. A batch that was purged under its claim is no fault:
    its jobs are settled or swept all the same. Holds a page of jobs or claims at a time, and a line a group.

    Args:
        store: the queue's storage.
        on_progress: called with the kind of row and how many were looked at, page by page.

    Raises:
        StorageUnavailableError: the store could not be reached.
    """
    balance = Balance()
    yield from _check_claims(store, balance, on_progress)
    seen = 0
    tally: _Tally = {}
    unreadable = False
    for place in get_args(Place):
        for page in _jobs(store, place):
            _add_to(tally, place, page)
            for row in page:
                if not isinstance(row, Job):
                    unreadable = True
                    yield Fault("unreadable row", str(getattr(row, "key", "")), str(row))
                elif place == "active":
                    balance.take_out(str(row.claim), row.id)
            yield from _misplaced(store, place, page)
            seen += len(page)
            on_progress("jobs", seen)
    for page in _jobs(store, "active") if balance.is_off else ():
        yield from _orphans(store, page, balance)
    if not unreadable:  # nobody knows which group such a row counts in
        yield from _wrong_counts(store, tally)


def _check_claims(store: JobStore, balance: Balance, on_progress: Callable[[str, int], None]) -> Iterator[Fault]:
    """Answer what is wrong with the claims in flight, and put what they hold into the balance."""
    seen = 0
    for claims in _claims(store):
        for claim in claims:
            for job_id, _ in claim.jobs:
                balance.put_in(claim.id, job_id)
        yield from _wrong_claims(store, claims)
        seen += len(claims)
        on_progress("claims", seen)


def _jobs(store: JobStore, place: Place) -> Iterator[Sequence[Job | BatchStateError]]:
    page = store.list_jobs(place)
    yield page.items
    while page.cursor is not None:
        page = store.list_jobs(place, cursor=page.cursor)
        yield page.items


def _claims(store: JobStore) -> Iterator[Sequence[ClaimRow]]:
    page = store.list_claims(limit=_CLAIMS)
    yield page.items
    while page.cursor is not None:
        page = store.list_claims(page.cursor, limit=_CLAIMS)
        yield page.items


def _misplaced(store: JobStore, place: Place, page: Sequence[Job | BatchStateError]) -> Iterator[Fault]:
    """Answer the jobs that are listed in one place and are in another, and still are at a second look."""
    wrong = {job.id: job for job in page if isinstance(job, Job) and job.place != place}
    still = store.get_jobs(wrong) if wrong else {}
    for job in wrong.values():
        if still.get(job.id) == job:
            yield Fault("misplaced job", job.id, f"is listed as {place}, and is {job.place}")


def _orphans(store: JobStore, page: Sequence[Job | BatchStateError], balance: Balance) -> Iterator[Fault]:
    """Answer the jobs of a page that are held by no claim in flight."""
    doubtful = [job for job in page if isinstance(job, Job) and balance.doubts(str(job.claim), job.id)]
    if not doubtful:
        return
    asked = {job.claim for job in doubtful}
    flight = {claim.id for claims in _claims(store) for claim in claims if claim.id in asked}
    suspects = [job for job in doubtful if job.claim not in flight]
    still = store.get_jobs(job.id for job in suspects) if suspects else {}
    for job in suspects:
        now = still.get(job.id)
        # Held by that claim before the claims were looked at, and after: so all the time.
        if isinstance(now, Job) and _standing(now) == _standing(job):
            says = f"is held by claim {job.claim}, which is not in flight: no sweep will ever take it back"
            yield Fault("orphaned job", job.id, says, mending(store.queue, "remove --force", job.id))


def _standing(job: Job) -> tuple[object, ...]:
    """Answer what tells that a job has not left its place: every claim raises its deliveries."""
    return job.id, job.place, job.group, job.claim, job.deliveries, job.attempts, job.stalls, job.due_at, job.dead_at


def _wrong_claims(store: JobStore, claims: Sequence[ClaimRow]) -> Iterator[Fault]:
    """Answer what is wrong with claims in flight, if it still is at a second look."""
    batches = store.get_batches(claim.id for claim in claims)
    holders = _holders(store, [job_id for claim in claims for job_id, _ in claim.jobs])
    for claim in claims:
        faults = list(_claim_faults(store.queue, claim, batches.get(claim.id), holders))
        if faults:
            still = store.get_claims([claim.id]).get(claim.id)
            if still is not None and {job.id for job in still.jobs} == {job_id for job_id, _ in claim.jobs}:
                yield from faults


def _holders(store: JobStore, job_ids: Sequence[str]) -> dict[str, str | None]:
    """Answer which claim each of these jobs is held by."""
    holders: dict[str, str | None] = {}
    for start in range(0, len(job_ids), HYDRATED):
        jobs = store.get_jobs(job_ids[start : start + HYDRATED])
        holders |= {name: job.claim for name, job in jobs.items() if isinstance(job, Job) and job.place == "active"}
    return holders


def _claim_faults(queue: str, claim: ClaimRow, batch: object, holders: Mapping[str, str | None]) -> Iterator[Fault]:
    held = [job_id for job_id, _ in claim.jobs]
    if not held:
        says = "is in flight and holds nothing, so that nothing will end it"
        yield Fault("empty claim", claim.id, says, mending(queue, "release", claim.id))
    if isinstance(batch, Batch):
        members = set(batch.request_ids)
        strangers = [job_id for job_id in held if job_id not in members]
        if strangers:
            yield Fault("stranger in a claim", claim.id, f"holds {strangers[0]!r}, which its batch does not contain")
    for job_id in held:
        if holders.get(job_id) != claim.id:
            yield Fault("claim without its job", claim.id, f"holds {job_id!r}, which is not active under it")


def _add_to(tally: _Tally, place: Place, page: Sequence[Job | BatchStateError]) -> None:
    for job in page:
        if isinstance(job, Job):
            count, total = tally.get((job.group, place), (0, 0))
            tally[job.group, place] = (count + 1, (total + hash(_standing(job))) & _MASK)


def _wrong_counts(store: JobStore, tally: _Tally) -> Iterator[Fault]:
    """Answer the groups whose counts differ from what is listed, while the very same jobs are there at every look."""
    wrong = _differences(store, tally)
    for _ in range(_LOOKS - 1):
        if not wrong:
            return
        again: _Tally = {}
        places: set[Place] = {place for _, place in wrong}
        for place in places:
            for page in _jobs(store, place):
                _add_to(again, place, page)
        found = _differences(store, again)
        wrong = {key: seen for key, seen in wrong.items() if found.get(key) == seen}
    for (group, place), (said, listed, _) in wrong.items():
        says = f"counts {said} {place}, and {listed} are there"
        yield Fault("wrong count", group if group is not None else "(jobs without a group)", says)


def _differences(store: JobStore, tally: _Tally) -> dict[tuple[str | None, Place], tuple[int, int, int]]:
    """Answer per group and place what is counted, what is listed, and the sum of what is listed, where these differ."""
    counted = {group.group: group for group in store.count_jobs().groups}
    differences = {}
    for group in {*counted, *(name for name, _ in tally)}:
        for place in get_args(Place):
            said = getattr(counted[group], place) if group in counted else 0
            listed, total = tally.get((group, place), (0, 0))
            if said != listed:
                differences[group, place] = (said, listed, total)
    return differences
