"""The second act: the changes worked off as jobs, fifty to a claim, by workers that are killed with claims in hand."""

from __future__ import annotations

import multiprocessing
import signal
import time
from typing import TYPE_CHECKING

from attrs import define, frozen

from batchstate import Backoff, BatchQueue, Job, JobPolicy, JobSpec, open_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from multiprocessing.process import BaseProcess
    from random import Random

    from batchstate.cli.demo.changes import Change

__all__ = ["Worked", "open_jobs", "work_off"]

QUEUE = "publishing"
LEASE = "1s"
TOGETHER = 50
POLICY = JobPolicy(max_attempts=3, max_stalls=20, backoff=Backoff(first="50ms"))


@frozen
class Worked:
    """What came of the second act.

    Attributes:
        jobs: how many jobs there were.
        groups: in how many groups.
        done: how many of them exactly one claim completed.
        dead: the jobs that are dead.
        open: how many are still waiting, held or due.
        killed: how many workers were killed.
        stalled: how often a dead worker's job was swept back.
        claims: how many claims it took.
        seconds: how long it took.
    """

    jobs: int
    groups: int
    done: int
    dead: tuple[Job, ...]
    open: int
    killed: int
    stalled: int
    claims: int
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether every job was done once, but for the one that makes its handler raise, which is dead."""
        return self.done == self.jobs - 1 and len(self.dead) == 1 and self.open == 0


@define
class _Crew:
    """The worker processes."""

    url: str
    poison: str
    processes: list[BaseProcess]
    started: int = 0

    def start(self) -> BaseProcess:
        self.started += 1
        context = multiprocessing.get_context("forkserver")
        process = context.Process(target=_work, args=(self.url, f"publisher-{self.started}", self.poison), daemon=True)
        process.start()
        return process


def open_jobs(url: str, by: str) -> BatchQueue:
    """Open the queue of the second act."""
    return open_queue(QUEUE, url, by=by, policy=POLICY)


def work_off(
    url: str,
    changes: Sequence[Change],
    *,
    workers: int,
    kills: int,
    random: Random,
    on_tick: Callable[[int, int], None],
) -> Worked:
    """Add the changes as jobs, have them worked off, and kill workers on the way.

    Args:
        url: the store.
        changes: the changes; one of them makes its handler raise each time.
        workers: how many processes.
        kills: how many of them are killed.
        random: decides who is killed, and when.
        on_tick: called with how many jobs are left and how many workers were killed.
    """
    began = time.monotonic()
    crew = _Crew(url, changes[len(changes) // 2].id, [])
    killed = 0
    with open_jobs(url, "demo") as queue:
        queue.add_many(JobSpec(change.id, group=change.group) for change in changes)
        crew.processes = [crew.start() for _ in range(workers)]
        try:
            while (left := _left(queue)) > 0:
                if killed < kills and left < len(changes) * (kills - killed) / (kills + 1) and queue.counts().claims:
                    victim = random.randrange(workers)
                    crew.processes[victim].kill()
                    crew.processes[victim].join()
                    crew.processes[victim] = crew.start()
                    killed += 1
                on_tick(left, killed)
                time.sleep(0.05)
        finally:
            for process in crew.processes:
                process.terminate()
            for process in crew.processes:
                process.join(timeout=5)
        return _proof(queue, changes, killed, time.monotonic() - began)


def _left(queue: BatchQueue) -> int:
    counts = queue.counts()
    return counts.waiting + counts.active + counts.scheduled


def _work(url: str, name: str, poison: str) -> None:
    """Publish changes until told to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def publish(job: Job) -> None:
        time.sleep(0.001)  # the work
        if job.id == poison:
            raise ValueError("this change cannot be published")

    with open_jobs(url, name) as queue:
        queue.consumer(each=publish, max_size=TOGETHER, lease=LEASE, poll="50ms", tidy_every="500ms").run()


def _proof(queue: BatchQueue, changes: Iterable[Change], killed: int, seconds: float) -> Worked:
    """Ask the store what became of each change."""
    jobs, groups, done, stalled = 0, set(), 0, 0
    claims: set[str] = set()
    for change in changes:
        attempts = queue.attempts(change.id)
        outcomes = [attempt.outcome for attempt in attempts]
        claims.update(attempt.batch.id for attempt in attempts)
        groups.add(change.group)
        jobs += 1
        done += outcomes.count("completed") == 1 and outcomes.count("dead") == 0
        stalled += outcomes.count("swept")
    return Worked(
        jobs, len(groups), done, tuple(queue.jobs("dead")), _left(queue), killed, stalled, len(claims), seconds
    )
