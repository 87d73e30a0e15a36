"""Checking the claim half: each job in one place, slots against jobs held, claims against jobs and batches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, get_args

from batchstate.checking import Fault, mending
from batchstate.errors import BatchStateError
from batchstate.jobs import Job, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from batchstate.claims.context import JobStore
    from batchstate.job_calls import ClaimRow

__all__ = ["check_jobs"]

_LOOKS = 3  # a count and a listing are no snapshot together, so a difference must stand for so many looks


def check_jobs(store: JobStore, *, on_progress: Callable[[str, int], None] = lambda *_: None) -> Iterator[Fault]:
    """Go through the jobs and claims of a queue, and answer what is wrong.

    Args:
        store: the queue's storage.
        on_progress: called with the kind of row and how many were looked at, page by page.

    Raises:
        StorageUnavailableError: the store could not be reached.
    """
    seen = 0
    for place in get_args(Place):
        for page in _jobs(store, place):
            yield from _misplaced(store, place, page)
            seen += len(page)
            on_progress("jobs", seen)
    seen = 0
    for claims in _claims(store):
        for claim in claims:
            yield from _wrong_claim(store, claim)
        seen += len(claims)
        on_progress("claims", seen)
    yield from _wrong_slots(store)


def _jobs(store: JobStore, place: Place) -> Iterator[Sequence[Job | BatchStateError]]:
    page = store.list_jobs(place)
    yield page.items
    while page.cursor is not None:
        page = store.list_jobs(place, cursor=page.cursor)
        yield page.items


def _claims(store: JobStore) -> Iterator[Sequence[ClaimRow]]:
    page = store.list_claims()
    yield page.items
    while page.cursor is not None:
        page = store.list_claims(page.cursor)
        yield page.items


def _misplaced(store: JobStore, place: Place, page: Sequence[Job | BatchStateError]) -> Iterator[Fault]:
    """Answer the jobs that are listed in one place and are in another, and those held by no claim in flight."""
    yield from (
        Fault("unreadable row", str(getattr(row, "key", "")), str(row)) for row in page if not isinstance(row, Job)
    )
    jobs = [row for row in page if isinstance(row, Job)]
    now = store.get_jobs(job.id for job in jobs)
    held = store.get_claims({job.claim for job in jobs if job.claim is not None}) if place == "active" else {}
    for job in jobs:
        present = now.get(job.id)
        if not isinstance(present, Job) or present != job:
            continue  # it has moved on since, or is told of elsewhere
        if present.place != place:
            yield Fault("misplaced job", job.id, f"is listed as {place}, and is {present.place}")
        elif place == "active" and _is_orphan(store, job, held.keys()):
            says = f"is held by claim {job.claim}, which is not in flight: no sweep will ever take it back"
            yield Fault("orphaned job", job.id, says, mending("remove --force", job.id))


def _is_orphan(store: JobStore, job: Job, held: object) -> bool:
    if job.claim is not None and job.claim in held:  # type: ignore[operator]
        return False
    again = store.get_jobs([job.id]).get(job.id)
    return again == job and not (job.claim is not None and store.get_claims([job.claim]))


def _wrong_claim(store: JobStore, claim: ClaimRow) -> Iterator[Fault]:
    """Answer what is wrong with a claim in flight, if it still is at a second look."""
    for fault in _claim_faults(store, claim):
        still = store.get_claims([claim.id]).get(claim.id)
        if still is not None and {job.id for job in still.jobs} == {job_id for job_id, _ in claim.jobs}:
            yield fault


def _claim_faults(store: JobStore, claim: ClaimRow) -> Iterator[Fault]:
    batch = store.get_batches([claim.id]).get(claim.id)
    if batch is None or isinstance(batch, BatchStateError):
        yield Fault(
            "claim without a batch",
            claim.id,
            "is in flight and its batch cannot be read",
            mending("release", claim.id),
        )
        return
    if batch.retired_at is not None:
        yield Fault("retired claim", claim.id, "is in flight and its batch is retired", mending("release", claim.id))
    if not claim.jobs:
        yield Fault("empty claim", claim.id, "is in flight and holds nothing")
    strangers = [job_id for job_id, _ in claim.jobs if job_id not in set(batch.request_ids)]
    if strangers:
        yield Fault("stranger in a claim", claim.id, f"holds {strangers[0]!r}, which its batch does not contain")
    jobs = store.get_jobs(job_id for job_id, _ in claim.jobs)
    for job_id, _ in claim.jobs:
        job = jobs.get(job_id)
        if not isinstance(job, Job) or (job.place, job.claim) != ("active", claim.id):
            yield Fault("claim without its job", claim.id, f"holds {job_id!r}, which is not active under it")


def _wrong_slots(store: JobStore) -> Iterator[Fault]:
    """Answer the groups whose counts differ from what is listed, and differ in the same way at every look."""
    wrong = _slot_differences(store)
    for _ in range(_LOOKS - 1):
        if not wrong:
            return
        wrong = {key: says for key, says in _slot_differences(store).items() if wrong.get(key) == says}
    for (group, place), says in wrong.items():
        yield Fault("wrong count", group or "(none)", f"{place}: {says}")


def _slot_differences(store: JobStore) -> dict[tuple[str | None, str], str]:
    counted = {group.group: group for group in store.count_jobs().groups}
    differences: dict[tuple[str | None, str], str] = {}
    for place in get_args(Place):
        listed = Counter(job.group for page in _jobs(store, place) for job in page if isinstance(job, Job))
        for group in {*counted, *listed}:
            said = getattr(counted[group], place) if group in counted else 0
            if said != listed[group]:
                differences[group, place] = f"the group counts {said}, and {listed[group]} are there"
    return differences
