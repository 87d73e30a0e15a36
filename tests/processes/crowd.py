"""What any store that processes share must do with crowds of workers, some of which are killed. Takes a URL."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from batchstate import BatchQueue, JobSpec, open_queue

ROOT = Path(__file__).parents[2]
LONGEST = 90.0
"""Seconds after which a crowd must have come to its end."""


class Line(NamedTuple):
    """One line of a worker's log."""

    what: str
    job: str
    claim: str
    pid: int
    at: int


class Crowd:
    """Worker processes on one queue.

    Args:
        url: the store.
        name: the queue, which nobody else uses.
        folder: where the log is kept.
    """

    def __init__(self, url: str, name: str, folder: Path) -> None:
        self.url = url
        self.name = name
        self.log = folder / f"{name}.log"
        self._workers: list[subprocess.Popen[bytes]] = []

    def add(self, number: int) -> list[str]:
        """Add so many jobs, in three groups, and answer their IDs."""
        names = [f"job-{place:04}" for place in range(number)]
        with self.queue() as q:
            answers = q.add_many(JobSpec(name, group=f"g{place % 3}") for place, name in enumerate(names))
        assert set(answers) == {"added"}
        return names

    def queue(self) -> BatchQueue:
        """Open the queue."""
        return open_queue(self.name, self.url)

    def hire(self, mode: str = "drain", *, lease: str = "3s", limit: int = 7) -> subprocess.Popen[bytes]:
        """Start a worker."""
        path = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
        worker = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/processes/worker.py"), self.url, self.name, self.log, mode, lease,
             str(limit)],
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        self._workers.append(worker)
        return worker

    def lines(self, *kinds: str) -> list[Line]:
        """Answer what the workers noted, in the order of time; of these kinds, if any are named."""
        text = self.log.read_text() if self.log.exists() else ""
        found = [line.split(" ") for line in text.splitlines()]
        lines = [Line(what, job, claim, int(pid), int(at)) for what, job, claim, pid, at in found]
        return sorted((line for line in lines if not kinds or line.what in kinds), key=lambda line: line.at)

    def wait_for(self, kind: str) -> Line:
        """Wait until a worker has noted something of this kind."""
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline:
            if found := self.lines(kind):
                return found[0]
            time.sleep(0.05)
        raise TimeoutError(f"no worker noted {kind!r}")

    def wait(self) -> None:
        """Wait until all workers that are left have come to their end, without a fault."""
        deadline = time.monotonic() + LONGEST
        for worker in self._workers:
            assert worker.wait(max(1, deadline - time.monotonic())) in (0, -signal.SIGKILL)

    def dismiss(self) -> None:
        """Kill whoever is left."""
        for worker in self._workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()


def none_twice_at_once(lines: list[Line], killed: set[int]) -> None:
    """Check that between a worker's holding a job and its being done with it, no other worker held it.

    A worker that was killed was done with its jobs when it died, whenever that was.
    """
    holding: dict[str, Line] = {}
    for line in lines:
        other = holding.get(line.job)
        if line.what == "held":
            assert other is None or other.pid in killed, f"{line} while {other}"
            holding[line.job] = line
        elif line.what == "done" and other is not None and other.claim == line.claim:
            del holding[line.job]


def two_of_many(crowd: Crowd) -> None:
    """Several processes that claim at once get each job once, and miss none."""
    names = crowd.add(120)
    for limit in (7, 1, 7):
        crowd.hire(limit=limit, lease="60s")
    crowd.wait()

    assert Counter(line.job for line in crowd.lines("held")) == dict.fromkeys(names, 1)
    assert Counter(line.job for line in crowd.lines("worked")) == dict.fromkeys(names, 1)


def killed_in_the_middle(crowd: Crowd) -> None:
    """Of a worker killed in the middle of a claim of fifty, the unsettled jobs come back, the settled ones do not."""
    with crowd.queue() as q:
        names = [f"{place:02}" for place in range(50)]
        q.add_many(JobSpec(name) for name in names)
        worker = crowd.hire("halt", lease="1s", limit=50)
        claim = crowd.wait_for("halted").claim
        worker.kill()
        worker.wait()
        returned: list[str] = []
        deadline = time.monotonic() + LONGEST
        while len(returned) < 30 and time.monotonic() < deadline:
            returned += q.sweep().returned
            time.sleep(0.05)

        assert returned == names[20:]
        again = q.claim(50)
        assert again is not None
        assert [(job.id, job.deliveries, job.stalls) for job in again] == [(name, 2, 1) for name in names[20:]]
        assert q.get(claim).state == "abandoned"
        assert {attempt.outcome for name in names[:20] for attempt in q.attempts(name)} == {"completed"}


def killed_again_and_again(crowd: Crowd, *, kills: int = 8, jobs: int = 150) -> None:
    """Workers killed again and again end with every job done or dead, and none was held by two at once."""
    names = crowd.add(jobs)
    workers = [crowd.hire() for _ in range(3)]
    killed: set[int] = set()
    for _ in range(kills):
        time.sleep(random.uniform(0.2, 0.6))
        victim = random.choice(workers)
        victim.kill()
        victim.wait()
        killed.add(victim.pid)
        workers.remove(victim)
        workers.append(crowd.hire())
    crowd.wait()

    with crowd.queue() as q:
        counts = q.counts()
        assert (counts.waiting, counts.active, counts.scheduled, counts.claims) == (0, 0, 0, 0)
        dead = {job.id for job in q.jobs("dead")}
        outcomes = defaultdict(list)
        for name in names:
            outcomes[name] = [attempt.outcome for attempt in q.attempts(name)]
        for name in names:
            assert outcomes[name].count("completed") == (0 if name in dead else 1), (name, outcomes[name])
            assert set(outcomes[name]) <= {"completed", "swept"}
    none_twice_at_once(crowd.lines("held", "done"), killed)
