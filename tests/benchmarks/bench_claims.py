"""Claiming and settling one by one and by 50 from short and long lines, extending a claim of 500, sweeping 10,000."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batchstate import BatchQueue, Done, JobPolicy, JobSpec
from batchstate_memory import MemoryStorage
from batchstate_sqlite import SQLiteStorage
from tests.benchmarks.racing import Contestant, Race, race
from tests.benchmarks.sqlite_job_floor import SQLiteJobFloor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batchstate.storage import Storage

__all__ = ["LINES", "memory", "sqlite", "work"]

NOW = 1_800_000_000_000
LINES = (1_000, 10_000, 100_000)
ROUNDS = 9
JOBS_A_ROUND = 100


def sqlite() -> Iterator[Race]:
    """SQLite, on a file, with `synchronous=FULL`."""
    for waiting in LINES:
        for together in (1, 50):
            with tempfile.TemporaryDirectory() as folder:
                yield _against_the_floor(Path(folder), waiting, together)
    with tempfile.TemporaryDirectory() as folder:
        yield _extending(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield _sweeping("sqlite", lambda n: SQLiteStorage(Path(folder) / f"{n}.db", "bench", clock=lambda: NOW))


def memory() -> Iterator[Race]:
    """Memory, beside itself: what a longer line costs."""
    for together in (1, 50):
        queues = [_filled(MemoryStorage("bench", clock=lambda: NOW), waiting) for waiting in LINES]
        yield race(
            f"memory: claim and settle by {together}",
            JOBS_A_ROUND,
            [
                Contestant(f"{waiting:,} waiting", lambda _, queue=queue, n=together: work(queue, n))  # type: ignore[misc]
                for waiting, queue in zip(LINES, queues, strict=True)
            ],
            rounds=ROUNDS,
        )
    yield _sweeping("memory", lambda _: MemoryStorage("bench", clock=lambda: NOW))


def _filled(store: Storage, waiting: int) -> BatchQueue:
    queue = BatchQueue(store, by="bench", policy=JobPolicy(max_stalls=100))
    queue.add_many(JobSpec(f"job-{n:06}", {"n": n, "path": "kombu/transport/base.py"}) for n in range(waiting))
    return queue


def work(queue: BatchQueue, together: int, jobs: int = JOBS_A_ROUND) -> None:
    """Claim so many at a time and settle them as done, `jobs` in all."""
    for _ in range(jobs // together):
        claim = queue.claim(together)
        if claim is None:
            raise AssertionError
        if len(claim.settle({job.id: Done() for job in claim}).completed) != together:
            raise AssertionError


def _against_the_floor(folder: Path, waiting: int, together: int) -> Race:
    reserve = JOBS_A_ROUND * (ROUNDS + 2)
    with SQLiteStorage(folder / "floor.db", "bench", clock=lambda: NOW) as made:
        _filled(made, waiting + reserve)
    store = SQLiteStorage(folder / "ours.db", "bench", clock=lambda: NOW)
    queue = _filled(store, waiting + reserve)
    floor = SQLiteJobFloor(folder / "floor.db", "bench", waiting + reserve)

    def by_hand(_: object) -> None:
        for _round in range(JOBS_A_ROUND // together):
            claim_id, ids, _payloads = floor.claim(together, NOW)
            floor.settle(claim_id, ids, NOW)

    result = race(
        f"sqlite: claim and settle by {together}, {waiting:,} waiting",
        JOBS_A_ROUND,
        [Contestant("floor", by_hand), Contestant("batchstate", lambda _: work(queue, together))],
        rounds=ROUNDS,
    )
    floor.close()
    store.close()
    return result


def _extending(folder: Path) -> Race:
    store = SQLiteStorage(folder / "ours.db", "bench", clock=lambda: NOW)
    claim = _filled(store, 500).claim(500)
    if claim is None:
        raise AssertionError
    with SQLiteStorage(folder / "floor.db", "bench", clock=lambda: NOW) as made:
        _filled(made, 500)
    floor = SQLiteJobFloor(folder / "floor.db", "bench", 500)
    claim_id, _, _ = floor.claim(500, NOW)
    result = race(
        "sqlite: extend a claim of 500",
        20,
        [
            Contestant("floor", lambda _: _times(lambda: floor.extend(claim_id, NOW))),
            Contestant("batchstate", lambda _: _times(claim.extend)),
        ],
    )
    floor.close()
    store.close()
    return result


def _times(work: Callable[[], object]) -> None:
    for _ in range(20):
        work()


def _sweeping(name: str, make: Callable[[int], Storage]) -> Race:
    """Sweeping ten thousand lapsed jobs at once, and a hundred: what a job costs in either."""
    made = 0

    def lapsed(count: int) -> BatchQueue:
        nonlocal made
        made += 1
        queue = _filled(make(made), count)
        while queue.claim(500, lease="1ms") is not None:
            pass
        store: Any = queue.store
        store.clock = lambda: NOW + 1_000
        return queue

    def swept(queue: object, count: int) -> None:
        if not isinstance(queue, BatchQueue) or len(queue.sweep().returned) != count:
            raise AssertionError
        queue.close()

    few, many = 1_000, 10_000
    return race(
        f"{name}: sweep",
        1_000,
        [
            Contestant("1,000 lapsed", lambda queue: swept(queue, few), lambda: lapsed(few)),
            Contestant("10,000 lapsed", lambda queue: swept(queue, many), lambda: lapsed(many), many),
        ],
        rounds=3,
    )
