"""Checks of a store on which workers move batches and work jobs meanwhile, the same whatever the store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from batchstate import Done, Lifecycle, Retry
from batchstate.checking import Fault, check_batches
from batchstate.claims.context import has_jobs
from batchstate.job_checking import check_jobs
from batchstate.queue import BatchQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.storage import Storage

FLOW = Lifecycle.parse("queued > testing > merged")


def found_beside_workers(opened: Callable[[], Storage], *, workers: int, steps: int) -> list[Fault]:
    """Answer what checks find while so many threads take so many steps each, and what one finds after them.

    Args:
        opened: opens the store; each thread has a storage of its own.
        workers: how many threads.
        steps: how many batches each of them makes, moves, and claims jobs beside.
    """

    def work(name: str) -> None:
        with BatchQueue(opened(), FLOW, by=name) as queue:
            for step in range(steps):
                _work(queue, name, step)

    with ThreadPoolExecutor(workers) as pool, opened() as store:
        running = [pool.submit(work, f"w{number}") for number in range(workers)]
        found = _faults_of(store, "1m")
        while not all(worker.done() for worker in running):
            found += _faults_of(store, "1m")
        for worker in running:
            worker.result()
        return found + _faults_of(store, "0s")


def _faults_of(store: Storage, settled_for: str) -> list[Fault]:
    assert has_jobs(store)
    return [*check_batches(store, FLOW, settled_for=settled_for), *check_jobs(store)]


def _work(queue: BatchQueue, name: str, step: int) -> None:
    """Move a batch through its lifecycle, add three jobs, and work a claim off."""
    batch = queue.create(f"{name}-{step}", requests=[f"r-{step}", name])
    queue.transition(queue.transition(batch, "testing"), "merged")
    for number in range(3):
        queue.add(f"{name}-{step}-{number}", group=name if number % 2 else None)
    claim = queue.claim(3)
    if claim is not None:
        claim.settle({job.id: Done() if place else Retry("x", 0) for place, job in enumerate(claim)})
