"""`JobMethods`: the part of the front door that has to do with jobs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from attrs import frozen

from batchstate.claims.claiming import claim, claim_of, claims, group_name
from batchstate.claims.consumer import BatchConsumer
from batchstate.claims.context import JobContext
from batchstate.claims.holds import hold
from batchstate.claims.shaper import Shape
from batchstate.claims.upkeep import sweep, tidy
from batchstate.errors import BatchStateError, InvalidValueError, NotFoundError
from batchstate.job_calls import NewJob
from batchstate.listing import HYDRATED
from batchstate.names import check_name
from batchstate.three_steps import ThreeSteps
from batchstate.times import Duration, milliseconds
from batchstate.values import encode_json
from batchstate.wire import check_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from batchstate.claims.claim import Claim
    from batchstate.claims.handlers import BatchHandler, JobHandler
    from batchstate.claims.holds import Hold
    from batchstate.claims.policy import JobPolicy
    from batchstate.claims.upkeep import Tidied
    from batchstate.entities import Batch
    from batchstate.job_calls import Added, QueueCounts, Swept
    from batchstate.jobs import Group, Job, Place, Settlement
    from batchstate.lifecycle import Lifecycle
    from batchstate.storage import Outcome, Storage
    from batchstate.times import Clock

__all__ = ["Attempt", "JobMethods", "JobSpec"]


@frozen
class JobSpec:
    """A job to add, as `BatchQueue.add_many` takes it.

    Attributes:
        id: its ID.
        payload: a JSON value.
        group: the jobs it takes turns with as one.
        delay: how long from now until it is due.
        at: instead of `delay`, the instant it is due, in milliseconds since the epoch.
        max_attempts: with how many failures it is dead; by default the queue's.
        again: whether to add it though it was done a short while ago.
    """

    id: str
    payload: object = None
    group: str | None = None
    delay: Duration = 0
    at: int | None = None
    max_attempts: int | None = None
    again: bool = False


class Attempt(NamedTuple):
    """One attempt at a request.

    Attributes:
        batch: the attempt.
        outcome: what became of the request in it, `""` while that is not known.
    """

    batch: Batch
    outcome: str


class JobMethods:
    """The part of `BatchQueue` that has to do with jobs."""

    store: Storage
    lifecycle: Lifecycle
    by: str
    policy: JobPolicy
    _clock: Clock

    @cached_property
    def jobs_context(self) -> JobContext:
        """What the calls of the claim half know; raises `InvalidValueError` where the storage keeps no jobs."""
        # The job half has no three steps: each of its calls is one step of the backend.
        store = self.store.whole if isinstance(self.store, ThreeSteps) else self.store
        return JobContext.of(store, self.lifecycle, self.policy, self.by, self._clock)

    def add(
        self,
        job_id: str,
        payload: object = None,
        *,
        group: str | None = None,
        delay: Duration = 0,
        at: int | None = None,
        max_attempts: int | None = None,
        again: bool = False,
    ) -> bool:
        """Add a job behind all that are there; arguments as in `JobSpec`.

        Returns:
            Whether it was added: `False` for an ID that is known in any place, or was done a short while ago; then
                nothing was changed.

        Raises:
            InvalidValueError: a name, the payload or a number cannot be stored. Nothing was added.
            StorageUnavailableError: the store could not be reached; add it again, which is safe.
        """
        [answer] = self.add_many([JobSpec(job_id, payload, group, delay, at, max_attempts, again)])
        if isinstance(answer, BatchStateError):
            raise answer
        return answer == "added"

    def add_many(self, jobs: Iterable[JobSpec]) -> list[Added | BatchStateError]:
        """Add many jobs, each for itself, in the order given.

        Returns:
            For each job `"added"`, `"duplicate"`, or the error why it was refused, which costs the others nothing.
        """
        answers: list[Added | BatchStateError] = []
        places: list[int] = []
        sound: list[NewJob] = []
        for place, spec in enumerate(jobs):
            try:
                sound.append(self._new_job(spec))
                places.append(place)
                answers.append("added")
            except BatchStateError as error:
                answers.append(error)
        for place, answer in zip(places, self.jobs_context.store.add_jobs(sound), strict=True):
            answers[place] = answer
        return answers

    def claim(
        self,
        limit: int,
        *,
        lease: Duration = "30s",
        group: Group | None = None,
        across_groups: bool = False,
        state: str | None = None,
        attributes: Mapping[str, object] | None = None,
        claim_id: str | None = None,
        on_lost: Callable[[Claim, Sequence[str]], None] | None = None,
        by: str | None = None,
    ) -> Claim | None:
        """Claim up to `limit` jobs together; `None` where nothing can be served. See `claiming.claim`."""
        return claim(
            self.jobs_context,
            limit,
            lease=lease,
            group=group,
            across_groups=across_groups,
            state=state,
            attributes=attributes,
            claim_id=claim_id,
            on_lost=on_lost,
            by=by,
        )

    def claims(
        self,
        limit: int,
        *,
        lease: Duration = "30s",
        group: Group | None = None,
        across_groups: bool = False,
        state: str | None = None,
        follow: bool = False,
        poll: Duration = "1s",
        on_lost: Callable[[Claim, Sequence[str]], None] | None = None,
    ) -> Iterator[Claim]:
        """Claim again and again until nothing can be served, or with `follow=True` for ever. See `claim`."""
        return claims(
            self.jobs_context,
            limit,
            lease=lease,
            group=group,
            across_groups=across_groups,
            state=state,
            follow=follow,
            poll=poll,
            on_lost=on_lost,
        )

    def claim_of(
        self,
        batch_id: str,
        *,
        lease: Duration = "30s",
        on_lost: Callable[[Claim, Sequence[str]], None] | None = None,
    ) -> Claim:
        """Take up a claim of another process; raises `ClaimLostError` where it holds nothing any more."""
        return claim_of(self.jobs_context, batch_id, lease=lease, on_lost=on_lost)

    def consumer(  # noqa: PLR0913 - each is a knob of the loop, and has a default
        self,
        *,
        each: JobHandler | None = None,
        batch: BatchHandler | None = None,
        min_size: int = 1,
        max_size: int = 50,
        timeout: Duration = "1s",
        lease: Duration = "30s",
        bisect: bool = False,
        poll: Duration = "1s",
        group: Group | None = None,
        across_groups: bool = False,
        tidy_every: Duration = "10s",
        on_settled: Callable[[Claim, Settlement], None] | None = None,
    ) -> BatchConsumer:
        """Answer a worker's loop over this queue; the sizes and `timeout` as in `Shape`. See `BatchConsumer`."""
        return BatchConsumer(
            self.jobs_context,
            each=each,
            batch=batch,
            shape=Shape(min_size, max_size, timeout),
            lease=lease,
            bisect=bisect,
            poll=poll,
            group=group,
            across_groups=across_groups,
            tidy_every=tidy_every,
            on_settled=on_settled,
        )

    def hold(self, batch_id: str, lease: Duration = "30s", *, token: str | None = None) -> Hold | None:
        """Hold a batch without jobs; `None` where another holds it. See `batchstate.claims.holds.hold`."""
        return hold(self.jobs_context, batch_id, lease, token=token)

    def sweep(self, *, limit: int | None = None, by: str | None = None) -> Swept:
        """Take back the jobs whose lease has lapsed. See `batchstate.claims.upkeep.sweep`."""
        return sweep(self.jobs_context, limit=limit, by=by)

    def tidy(self) -> Tidied:
        """Sweep, reconcile and purge, once each."""
        return tidy(self.jobs_context)

    def counts(self) -> QueueCounts:
        """Count the jobs of every group by place."""
        return self.jobs_context.store.count_jobs()

    def get_job(self, job_id: str) -> Job:
        """Load a job; raises `NotFoundError` where there is none (done jobs are gone), or why it cannot be read."""
        job = self.jobs_context.store.get_jobs([check_name("job", job_id)]).get(job_id)
        if job is None:
            msg = f"there is no job {job_id!r} in queue {self.store.queue!r}; find_by_request_id finds its attempts"
            raise NotFoundError(msg)
        if isinstance(job, BatchStateError):
            raise job
        return job

    def jobs(
        self,
        place: Place,
        *,
        group: Group | None = None,
        error: str | None = None,
        older_than: Duration | None = None,
    ) -> Iterator[Job]:
        """Go through the jobs in a place, a page in memory.

        Args:
            place: `"waiting"`, `"active"`, `"scheduled"` or `"dead"`.
            group: only those of this group.
            error: only those whose error contains this text.
            older_than: only those added at least so long ago.

        Raises:
            InvalidValueError: there is no such place.
            CorruptRowError: a row cannot be read.
        """
        if place not in ("waiting", "active", "scheduled", "dead"):
            msg = f"a job is waiting, active, scheduled or dead, not {place!r}"
            raise InvalidValueError(msg)
        store = self.jobs_context.store
        name = None if group is None else group_name(group)
        before = None if older_than is None else store.now() - milliseconds(older_than, "older_than", zero=True)
        return self._jobs(place, name, error, before)

    def _jobs(self, place: Place, group: str | None, error: str | None, before: int | None) -> Iterator[Job]:
        cursor: str | None = None
        while True:
            page = self.jobs_context.store.list_jobs(place, group, cursor)
            for job in page.items:
                if isinstance(job, BatchStateError):
                    raise job
                if (error is None or error in job.error) and (before is None or job.added_at <= before):
                    yield job
            cursor = page.cursor
            if cursor is None:
                return

    def attempts(self, request_id: str) -> list[Attempt]:
        """Find every attempt at a request, ordered by batch ID, with what became of the request in it."""
        outcomes = {
            association.batch_id: association.outcome
            for association in self.store.list_associations(check_name("request", request_id))
        }
        ids = sorted(outcomes)
        found: list[Attempt] = []
        for start in range(0, len(ids), HYDRATED):
            for row in self.store.get_batches(ids[start : start + HYDRATED]).values():
                if isinstance(row, BatchStateError):
                    raise row
                if request_id in row.request_ids:
                    found.append(Attempt(row, outcomes[row.id]))
        return sorted(found, key=lambda attempt: attempt.batch.id)

    def revive(self, job_ids: Sequence[str]) -> list[Outcome]:
        """Take dead jobs back to their places, attempts and stalls cleared; answers per job, `None` for done."""
        return self.jobs_context.store.revive_jobs([check_name("job", job_id) for job_id in job_ids])

    def remove(self, job_ids: Sequence[str], *, force: bool = False, by: str | None = None) -> list[Outcome]:
        """Remove jobs from whatever place they are in, a held one only with `force`; answers per job."""
        ids = [check_name("job", job_id) for job_id in job_ids]
        return self.jobs_context.store.remove_jobs(ids, force=force, by=self.by if by is None else by)

    def move_job(self, job_id: str, group: Group) -> None:
        """Put a job that is not held into another group, in the place its order has there.

        Raises:
            NotFoundError: there is no such job.
            InvalidTransitionError: it is held.
        """
        outcome = self.jobs_context.store.move_job(check_name("job", job_id), group_name(group))
        if outcome is not None:
            raise outcome

    def pause(self, group: Group | None = None, *, reason: str = "paused") -> None:
        """Serve nothing of a group, or of the queue, until `resume`; what is held goes on. The reason is kept."""
        if not reason:
            msg = "say why it is paused, for whoever finds it so"
            raise InvalidValueError(msg)
        self.jobs_context.store.set_paused(None if group is None else group_name(group), reason)

    def resume(self, group: Group | None = None) -> None:
        """Serve a group, or the queue, again; harmless where it is not paused."""
        self.jobs_context.store.set_paused(None if group is None else group_name(group), None)

    def set_ceiling(self, ceiling: int | None, *, group: Group | None = None) -> None:
        """Set how many jobs of a group may be held at once, or of each group that has no ceiling of its own.

        Args:
            ceiling: 1 or more; `None` takes it away. To serve nothing, pause.
            group: the group; without one, the queue's default.

        Raises:
            InvalidValueError: the ceiling is not positive.
        """
        if ceiling is not None:
            check_version(ceiling, "a ceiling (to serve nothing, pause)")
        self.jobs_context.store.set_ceiling(None if group is None else group_name(group), ceiling)

    def _new_job(self, spec: JobSpec) -> NewJob:
        if spec.group is not None:
            check_name("group", spec.group)
        if spec.at is not None and (type(spec.at) is not int or spec.delay not in (0, None)):
            msg = "at must be an int, in milliseconds since the epoch, and without a delay"
            raise InvalidValueError(msg)
        return NewJob(
            check_name("job", spec.id),
            encode_json(spec.payload, "payload"),
            spec.group or "",
            spec.max_attempts if spec.max_attempts is not None else self.policy.max_attempts,
            milliseconds(spec.delay, "delay", zero=True),
            spec.at,
            spec.again,
        )
