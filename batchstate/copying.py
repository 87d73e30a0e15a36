"""Copying: a queue from one backend to another, as it stands, resumed where it was broken off, verified at the end.

Nothing is written before all of the queue was looked at, and what would be refused was found. Then associations go
first, rows second, records third, as in a creation, so that a copy that is broken off leaves nothing that points to a
batch without a row; and jobs last. Copied again, what is there already counts as done.
"""

from __future__ import annotations

from itertools import chain, islice
from shlex import quote
from typing import TYPE_CHECKING

from attrs import frozen

from batchstate.checking import Fault, check_batches
from batchstate.claims.context import has_jobs
from batchstate.entities import Association, Batch
from batchstate.errors import AlreadyExistsError, BatchStateError, InvalidTransitionError, InvalidValueError
from batchstate.job_calls import QueueCounts
from batchstate.job_checking import check_jobs
from batchstate.job_storage import Restorable
from batchstate.jobs import Job
from batchstate.listing import HYDRATED
from batchstate.times import Clock, wall_clock
from batchstate.transition import record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from batchstate.claims.context import JobStore
    from batchstate.job_calls import GroupCounts
    from batchstate.jobs import Place
    from batchstate.storage import Storage

__all__ = ["Copied", "Survey", "copy_queue", "survey"]

MOVED: tuple[Place, ...] = ("waiting", "scheduled", "dead")
"""The places from which jobs are copied; a held one has none that it could have elsewhere."""

TOLD = 100
"""How many faults and differences a copy tells of; it stops looking there."""


@frozen
class Survey:
    """What there is to copy.

    Attributes:
        queue: the queue.
        batches: how many rows the source has, retired ones too.
        present: how many of them the target has already.
        jobs: how many jobs the source has.
        jobs_present: how many of them the target has already.
        newest: the job of the highest order.
        counts: what the source says of its groups and limits, `None` where it keeps no jobs.
    """

    queue: str
    batches: int
    present: int
    jobs: int = 0
    jobs_present: int = 0
    newest: Job | None = None
    counts: QueueCounts | None = None


@frozen
class Copied:
    """What was copied.

    Attributes:
        queue: the queue.
        batches: how many rows the target has of the source's.
        associations: how many associations were put.
        jobs: how many jobs the target has of the source's.
        differing: what is not as it is in the source, a sentence each; the first 100.
        faults: what `check` found wrong with the target, the first 100.
    """

    queue: str
    batches: int
    associations: int
    jobs: int
    differing: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the target is what the source is, and sound."""
        return not self.differing and not self.faults


def survey(source: Storage, target: Storage, *, on_progress: Callable[[str, int], None] = lambda *_: None) -> Survey:
    """Look at what there is to copy, and refuse what could not be copied whole. Nothing is written.

    Args:
        source: the queue's storage.
        target: the storage of the queue of the same name on the other backend.
        on_progress: called with what is looked at and how many were.

    Raises:
        InvalidTransitionError: the source is not paused, or has claims in flight, or the target has some.
        AlreadyExistsError: the target has another batch or job of one of the IDs, or jobs of its own.
        InvalidValueError: the queues have different names; or the source has jobs and the target cannot take them.
        TooLargeError: the target cannot hold one of the rows.
        CorruptRowError: a row of the source cannot be read. So is `UnsupportedFormatError`.
        StorageUnavailableError: a store could not be reached.
    """
    if source.queue != target.queue:
        msg = f"queue {source.queue!r} cannot become queue {target.queue!r}: a copy keeps its name"
        raise InvalidValueError(msg)
    counts = source.count_jobs() if has_jobs(source) else None
    if counts is not None:
        _check_at_rest(source.queue, counts)
    total = 0 if counts is None else sum(getattr(counts, place) for place in MOVED)
    if total and not (has_jobs(target) and isinstance(target, Restorable)):
        msg = (
            f"queue {source.queue!r} has {total:,} jobs, and the target cannot take jobs over as they stand; "
            "DynamoDB can with transact=true"
        )
        raise InvalidValueError(msg)
    batches = present = 0
    for page in _batches(source):
        present += _check_page(target, page)
        batches += len(page)
        on_progress("batches looked at", batches)
    found = Survey(source.queue, batches, present, counts=counts)
    return found if not has_jobs(target) else _survey_jobs(source, target, found, on_progress)


def copy_queue(
    source: Storage,
    target: Storage,
    *,
    on_progress: Callable[[str, int], None] = lambda *_: None,
    clock: Clock = wall_clock,
) -> Copied:
    """Copy a queue: its batches with their histories and marks, associations with outcomes, jobs, pauses, ceilings.

    Rows come out as they are, retired ones among the retired. Each live batch is filed under its state; stale records
    are left behind. Not copied: holds, remembered IDs of done jobs (an addition that is sent again after the move is
    an addition), and the turns of the groups, which begin anew. The copy is paused, as the source is: nobody works
    on it before somebody resumes it. The source is only read.

    A copy that was broken off is completed by copying again. Memory stays bounded, a page of rows at a time.

    Args:
        source: the queue's storage: paused, without claims in flight, and with nobody who moves its batches.
        target: the storage of the queue of the same name on the other backend.
        on_progress: called with what is copied and how many were.
        clock: answers the time in milliseconds since the epoch.

    Returns:
        What was copied, and what is not as it should be.

    Raises:
        BatchStateError: as `survey`, and then nothing was written. After that a store that could not be reached, or
            that refused a row after all: the target is incomplete; copy again.
    """
    found = survey(source, target, on_progress=on_progress)
    if found.counts is not None and has_jobs(target):
        target.set_paused(None, found.counts.paused)
    associations = _copy_associations(source, target, on_progress)
    done = 0
    for page in _batches(source):
        _expect(target.create_batches(page))
        _expect(target.put_records([record_of(batch) for batch in page if batch.retired_at is None]))
        done += len(page)
        on_progress("batches copied", done)
    if found.counts is not None and has_jobs(source) and has_jobs(target):
        _copy_jobs(source, target, found, on_progress)
        _copy_limits(target, found.counts)
    return _verified(source, target, associations, on_progress, clock)


def _check_at_rest(queue: str, counts: QueueCounts) -> None:
    if counts.paused is None:
        msg = (
            f"queue {queue!r} is not paused, so that it would change while it is copied: "
            f"batchstate pause --queue {quote(queue)} --why moving, with the source as --url"
        )
        raise InvalidTransitionError(msg)
    if counts.claims or counts.active:
        msg = (
            f"queue {queue!r} has {counts.claims} claims in flight: wait until they are settled (batchstate status "
            f"--queue {quote(queue)}), or, where their workers are gone, batchstate sweep --queue {quote(queue)}"
        )
        raise InvalidTransitionError(msg)


def _batches(store: Storage) -> Iterator[list[Batch]]:
    """Go through all rows; raises the error that names one which cannot be read."""
    cursor: str | None = None
    while True:
        page = store.scan("batches", cursor, limit=HYDRATED)
        for row in page.items:
            if isinstance(row, BatchStateError):
                raise row
        yield list({row.id: row for row in page.items if isinstance(row, Batch)}.values())
        cursor = page.cursor
        if cursor is None:
            return


def _jobs(store: JobStore) -> Iterator[list[Job]]:
    """Go through all jobs that are not held; raises the error that names one which cannot be read."""
    for place in MOVED:
        cursor: str | None = None
        while True:
            page = store.list_jobs(place, cursor=cursor)
            for row in page.items:
                if isinstance(row, BatchStateError):
                    raise row
            yield [row for row in page.items if isinstance(row, Job)]
            cursor = page.cursor
            if cursor is None:
                break


def _check_page(target: Storage, page: Sequence[Batch]) -> int:
    """Answer how many of these batches the target has; raises what says why one cannot be copied."""
    _expect(target.check_batches(page))
    known = target.get_batches(batch.id for batch in page)
    for batch in page:
        there = known.get(batch.id)
        if there is not None and (problem := _difference(batch, there)):
            msg = f"{problem}; batch IDs are never reused: copy into a queue that does not have it"
            raise AlreadyExistsError(msg, current=there if isinstance(there, Batch) else None)
    return len(known)


def _difference(batch: Batch, there: object) -> str:
    """Answer how the target's row differs from the source's, `""` where it does not."""
    if there is None:
        return f"batch {batch.id!r} is missing in the target"
    if not isinstance(there, Batch):
        return f"the target cannot read its batch {batch.id!r}"
    if (there.version, there.marks) != (batch.version, batch.marks) or there != batch:
        return (
            f"the target has another batch {batch.id!r}: in {there.state!r} at version {there.version}, and the "
            f"source's is in {batch.state!r} at version {batch.version}"
        )
    return ""


def _survey_jobs(source: Storage, target: JobStore, found: Survey, on_progress: Callable[[str, int], None]) -> Survey:
    theirs = target.count_jobs()
    if theirs.claims or theirs.active:
        msg = f"the target's queue {found.queue!r} has {theirs.claims} claims in flight: it is being worked on"
        raise InvalidTransitionError(msg)
    jobs = present = 0
    newest: Job | None = None
    for page in _jobs(source) if has_jobs(source) else ():
        known = target.get_jobs(job.id for job in page)
        for job in page:
            if known.get(job.id, job) != job:
                msg = f"the target has another job {job.id!r}, or it went on there: copy into a queue without it"
                raise AlreadyExistsError(msg)
            if newest is None or job.order > newest.order:
                newest = job
        jobs += len(page)
        present += len(known)
        on_progress("jobs looked at", jobs)
    others = theirs.waiting + theirs.scheduled + theirs.dead - present
    if others > 0 and jobs:
        msg = f"the target's queue {found.queue!r} has {others:,} jobs of its own, whose order would be mixed up"
        raise AlreadyExistsError(msg)
    return Survey(found.queue, found.batches, found.present, jobs, present, newest, found.counts)


def _copy_associations(source: Storage, target: Storage, on_progress: Callable[[str, int], None]) -> int:
    done = 0
    cursor: str | None = None
    while True:
        page = source.scan("associations", cursor, limit=HYDRATED)
        associations = [row for row in page.items if isinstance(row, Association)]
        _expect(target.put_associations(associations))
        done += len(associations)
        on_progress("associations copied", done)
        cursor = page.cursor
        if cursor is None:
            return done


def _copy_jobs(source: JobStore, target: JobStore, found: Survey, on_progress: Callable[[str, int], None]) -> None:
    """Restore all jobs, the one of the highest order first, so that whoever adds meanwhile adds behind them all."""
    if not isinstance(target, Restorable) or found.newest is None:
        return
    done = 0
    for page in chain([[found.newest]], _jobs(source)):
        _expect([answer if isinstance(answer, BatchStateError) else None for answer in target.restore_jobs(page)])
        done += len(page)
        on_progress("jobs copied", min(done, found.jobs))


def _copy_limits(target: JobStore, counts: QueueCounts) -> None:
    """Set the ceilings and the groups' pauses; a ceiling of a group that equals the default is the default's."""
    target.set_ceiling(None, counts.ceiling)
    for group in counts.groups:
        name = group.group or ""
        if group.ceiling != counts.ceiling:
            target.set_ceiling(name, group.ceiling)
        if group.paused is not None:
            target.set_paused(name, group.paused)


def _verified(
    source: Storage, target: Storage, associations: int, on_progress: Callable[[str, int], None], clock: Clock
) -> Copied:
    """Compare the two and check the target."""
    batches = jobs = 0
    differing: list[str] = []
    for page in _batches(source):
        known = target.get_batches(batch.id for batch in page)
        differences = [said for batch in page if (said := _difference(batch, known.get(batch.id)))]
        differing += differences[: TOLD - len(differing)]
        batches += len(page) - len(differences)
        on_progress("batches compared", batches)
    faults: Iterator[Fault] = check_batches(target, None, settled_for=0, clock=clock, on_progress=on_progress)
    if has_jobs(source) and has_jobs(target):
        ours, theirs = source.count_jobs(), target.count_jobs()
        jobs = sum(getattr(theirs, place) for place in MOVED)
        differing += _count_differences(_by_group(ours), _by_group(theirs))
        if ours.claims or ours.paused is None:
            differing.append("the source was resumed while it was copied: pause it and copy again, into another queue")
        faults = chain(faults, check_jobs(target, on_progress=on_progress))
    told = tuple(islice(faults, TOLD))
    return Copied(source.queue, batches, associations, jobs, tuple(differing[:TOLD]), told)


def _by_group(counts: QueueCounts) -> dict[str | None, GroupCounts]:
    return {group.group: group for group in counts.groups}


def _count_differences(ours: Mapping[str | None, GroupCounts], theirs: Mapping[str | None, GroupCounts]) -> list[str]:
    names = sorted({*ours, *theirs}, key=lambda name: name or "")
    return [
        f"group {name!r} has {theirs.get(name)} in the target, and {ours.get(name)} in the source"
        for name in names
        if ours.get(name) != theirs.get(name)
    ]


def _expect(outcomes: Sequence[BatchStateError | None]) -> None:
    for outcome in outcomes:
        if outcome is not None:
            raise outcome
