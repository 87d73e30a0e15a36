"""Workers share a file: each job is leased once, and one that is killed leaves no half of a step."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from batchstate import open_queue
from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate_sqlite import SQLiteStorage

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from batchstate import BatchQueue


VERDICTS = ("complete", "retry", "dead", "release")

CLAIM_ALL = """
import sys
from uuid import uuid4
from batchstate.job_calls import Claiming
from batchstate_sqlite import SQLiteStorage

with SQLiteStorage(sys.argv[1], "q", synchronous="NORMAL", timeout="60s") as store:
    while True:
        claimed = store.claim_jobs(Claiming(str(uuid4()), (1, 7)[len(sys.argv[2]) % 2], 600_000, uuid4().hex))
        if claimed is None:
            break
        sys.argv[2] += "."
        print(*(job.id for job in claimed.jobs))
"""

DIE = """
import os, signal, sys
from batchstate.job_calls import Claiming, Settling
from batchstate_sqlite import SQLiteStorage

store = SQLiteStorage(sys.argv[1], "q", clock=lambda: 1_000)
left = int(sys.argv[3])

def die(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

store.database.read(lambda cursor: cursor.connection.set_trace_callback(die))
if sys.argv[2] == "claim":
    store.claim_jobs(Claiming("c1", 4, 30_000, "m"))
elif sys.argv[2] == "settle":
    verdicts = ("complete", "retry", "dead", "release")
    store.settle_jobs("c0", [Settling(f"held-{v}", v, "no", 5) for v in verdicts], keep_done=1_000)
else:
    SQLiteStorage(store.database, "q", clock=lambda: 99_000).sweep_jobs(100, max_stalls=1)
"""

WORK = """
import os, sys, time
from batchstate import open_queue

log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND)

def note(*words):
    os.write(log, (" ".join(map(str, words)) + chr(10)).encode())

with open_queue("q", f"sqlite:///{sys.argv[1]}?timeout=60s&synchronous=normal") as q:
    while True:
        for claim in q.claims(7, lease="5s"):
            with claim:
                for job in claim:
                    with claim.attempt(job):
                        note("begins", os.getpid(), job.id)
                        time.sleep(0.005)
                        note("ends", os.getpid(), job.id)
                        if job.payload == "bad":
                            raise ValueError("bad")
        counts = q.counts()
        if counts.waiting + counts.active + counts.scheduled == 0:
            break
        time.sleep(0.05)
"""


@pytest.mark.timeout(180)
def test_threads_and_processes_lease_each_job_once(
    path: Path, start: Callable[..., subprocess.Popen[str]], check_jobs: Callable[[Path], None]
) -> None:
    """Eight threads and four processes claim one or seven at a time from 1,000 jobs: none is missed, none twice."""
    names = [f"job-{number}" for number in range(1_000)]
    leased: list[str] = []
    with SQLiteStorage(path, "q", synchronous="NORMAL", timeout="60s") as store:
        store.add_jobs([NewJob(name, "null") for name in names])
        processes = [start(CLAIM_ALL, path, "." * number) for number in range(4)]

        def claim_all(thread: int) -> None:
            count = thread
            while claimed := store.claim_jobs(Claiming(f"t-{thread}-{count}", (1, 7)[count % 2], 600_000, "m")):
                leased.extend(job.id for job in claimed.jobs)
                count += 1

        threads = [threading.Thread(target=claim_all, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for process in processes:
            printed, complaints = process.communicate(timeout=60)
            assert process.returncode == 0, complaints
            leased += printed.split()
    assert sorted(leased) == sorted(names)
    check_jobs(path)


@pytest.fixture
def in_hand(path: Path) -> Iterator[SQLiteStorage]:
    """Make a queue in which four jobs are held by claim `c0`, and six more wait or are due."""
    with SQLiteStorage(path, "q", clock=lambda: 1_000) as store:
        store.add_jobs([NewJob(f"held-{verdict}", "1") for verdict in VERDICTS])
        store.claim_jobs(Claiming("c0", 10, 30_000, "m"))
        store.add_jobs([NewJob(f"new-{number}", "1", "g" * (number % 2)) for number in range(4)])
        earlier = SQLiteStorage(store.database, "q", clock=lambda: 900)
        earlier.add_jobs([NewJob(f"due-{number}", "1", delay=50) for number in range(2)])
        yield store


def everything(store: SQLiteStorage) -> object:
    """Answer what a queue holds."""
    ids = [f"{kind}-{name}" for kind in ("held", "new", "due") for name in (*VERDICTS, *"0123")]
    associations = [store.list_associations(job_id) for job_id in ids]
    return store.count_jobs(), store.get_jobs(ids), store.get_batches(["c0", "c1"]), associations


@pytest.mark.parametrize("step", ["claim", "settle", "sweep"])
@pytest.mark.parametrize("statement", [3, 5, 8, 11, 14, 17, 20])
def test_a_worker_killed_within_a_step_has_not_done_it(
    path: Path,
    in_hand: SQLiteStorage,
    start: Callable[..., subprocess.Popen[str]],
    check_jobs: Callable[[Path], None],
    step: str,
    statement: int,
) -> None:
    """Whichever statement of a step it was killed at, nothing of the step is there, and others go on at once."""
    before = everything(in_hand)
    with start(DIE, path, step, statement) as process:
        complaints = process.communicate(timeout=60)[1]
    if process.returncode == 0:
        pytest.skip(f"{step} has fewer statements")
    assert process.returncode == -signal.SIGKILL, complaints
    assert everything(in_hand) == before
    check_jobs(path)
    assert in_hand.claim_jobs(Claiming("c2", 10, 30_000, "m")) is not None
    settled = in_hand.settle_jobs("c0", [Settling("held-complete", "complete")], keep_done=0)
    assert settled.outcomes == ("completed",)
    check_jobs(path)


@pytest.mark.timeout(180)
def test_workers_killed_again_and_again_do_every_job_and_none_twice_at_once(
    path: Path, tmp_path: Path, start: Callable[..., subprocess.Popen[str]], check_jobs: Callable[[Path], None]
) -> None:
    """Every job is done or dead in the end, and no worker begins one while another is alive that has not ended it."""
    choose = random.Random(7)
    log = tmp_path / "log"
    log.touch()
    with open_queue("q", f"sqlite:///{path}?timeout=60s") as q:
        for number in range(300):
            q.add(f"job-{number}", "bad" if number % 50 == 0 else "good", group=f"g{number % 3}", max_attempts=1)
        workers = [start(WORK, path, log) for _ in range(3)]
        for _ in range(6):
            time.sleep(1)  # lets them work; nothing depends on how far they come
            victim = workers.pop(choose.randrange(3))
            victim.kill()
            victim.communicate()
            with log.open("a") as lines:
                lines.write(f"killed {victim.pid}\n")
            workers.append(start(WORK, path, log))
        for worker in workers:
            complaints = worker.communicate(timeout=120)[1]
            assert worker.returncode == 0, complaints
        counts = q.counts()
        assert (counts.waiting, counts.active, counts.scheduled) == (0, 0, 0)
        dead = {job.id for job in q.jobs("dead")}
        outcomes = {f"job-{number}": _last(q, number) for number in range(300)}
    assert dead >= {f"job-{number}" for number in range(0, 300, 50)}
    assert {job_id for job_id, outcome in outcomes.items() if outcome == "completed"} == set(outcomes) - dead
    check_jobs(path)
    _none_twice_at_once(log.read_text().splitlines())


def _last(q: BatchQueue, number: int) -> str:
    return q.attempts(f"job-{number}")[-1].outcome


def _none_twice_at_once(lines: list[str]) -> None:
    """Fail where a worker began a job that another had begun, who had neither ended it nor been killed."""
    busy: dict[str, str] = {}
    begun: Counter[str] = Counter()
    for line in lines:
        what, pid, *rest = line.split()
        if what == "killed":
            busy = {job: worker for job, worker in busy.items() if worker != pid}
        elif what == "begins":
            assert rest[0] not in busy, f"{rest[0]} is begun by {pid} while {busy[rest[0]]} is at it"
            busy[rest[0]] = pid
            begun[rest[0]] += 1
        else:
            del busy[rest[0]]
    assert len(begun) == 300
    assert not busy
