"""The crew of `work`: starts worker processes, watches them, replaces those that crash, and ends them."""

from __future__ import annotations

import multiprocessing
import signal
import time
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from batchstate.cli.restarts import Restarts
from batchstate.cli.worker import work_off

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from batchstate.cli.tally import Tally
    from batchstate.cli.worker import Task

__all__ = ["CRASHING", "GRACE_RAN_OUT", "Crew"]

GRACE_RAN_OUT = 4
"""The exit code where jobs were left to their leases."""

CRASHING = 5
"""The exit code where workers crashed again and again without getting anywhere."""

LOOK = 0.2
"""How many seconds pass at most until a signal, or a worker whose time has come, is looked at."""


class Worker:
    """A worker process as its crew sees it."""

    def __init__(self, process: BaseProcess, reports: Connection) -> None:
        self.process = process
        self.reports = reports
        self.begun = time.monotonic()
        self.told: int | None = None
        """The exit code, as soon as it has told that it ends."""


class Crew:
    """Runs a task in several processes, starts a new one where one crashes, and drains them when told to end.

    Args:
        task: what each is to do.
        size: how many.
        grace: for how many seconds the jobs in hand may be finished.
        restarts: how many crashes in a row are borne, see `Restarts`.
        tally: is told what happens.
    """

    def __init__(self, task: Task, size: int, grace: float, restarts: int, tally: Tally) -> None:
        self._task = task
        self._size = size
        self._grace = grace
        self._restarts = Restarts(restarts)
        self._tally = tally
        self._context = multiprocessing.get_context("spawn")
        self._told_to_end = 0
        self._gave_up = False
        self._working: list[Worker] = []
        self._due: list[float] = []
        """When to start the workers that stand in for crashed ones."""
        self._codes: list[int] = []

    def run(self) -> int:
        """Work until the end; answer the exit code."""
        with self._signals(), self._tally:
            try:
                for _ in range(self._size):
                    self._start()
                while (self._working or self._due) and not self._told_to_end and not self._gave_up:
                    self._look_after()
                    self._start_due()
                if self._working:
                    self._tally.draining(self._grace)
                code = self._drain()
                self._tally.ended(code)
            finally:
                self._terminate()  # whoever is left, where nobody reads what is told
        return code

    def _start(self) -> None:
        """Start a worker, with a pipe of its own: a lock that is shared would be lost with whoever is killed."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=work_off, args=(self._task, theirs))
        process.start()
        theirs.close()
        self._working.append(Worker(process, ours))

    def _start_due(self) -> None:
        now = time.monotonic()
        for due in [due for due in self._due if due <= now]:
            self._due.remove(due)
            self._start()

    def _look_after(self) -> None:
        """Wait for a moment; count what the workers report, and see who has ended."""
        signs = [sign for worker in self._working for sign in (worker.reports, worker.process.sentinel)]
        wait(signs, timeout=LOOK)
        for worker in list(self._working):
            has_ended = worker.process.exitcode is not None
            self._read(worker)
            if has_ended:
                self._working.remove(worker)
                worker.reports.close()
                self._bury(worker)

    def _read(self, worker: Worker) -> None:
        try:
            while worker.reports.poll():
                said = worker.reports.recv()
                if isinstance(said, int):
                    worker.told = said
                else:
                    self._restarts.got_somewhere()
                    self._tally.settled(worker.process.pid or 0, *said)
        except (EOFError, OSError):
            pass  # it has ended, perhaps in the middle of a report

    def _bury(self, worker: Worker) -> None:
        """Note how a worker ended; where it crashed, see to it that another one takes its place."""
        code = worker.process.exitcode or 0
        if worker.told is not None:
            self._codes.append(worker.told)
        elif not self._told_to_end and not self._gave_up:
            now = time.monotonic()
            again = self._restarts.crashed(now - worker.begun)
            self._tally.crashed(worker.process.pid or 0, code, again)
            if again is None:
                self._gave_up = True
            else:
                self._due.append(now + again)
        elif code > 0:  # below, it was told to end before it had begun
            self._codes.append(code)

    def _terminate(self) -> None:
        for worker in self._working:
            worker.process.terminate()

    def _drain(self) -> int:
        """Let the workers finish what they have in hand, for as long as the grace lasts."""
        self._terminate()
        end = time.monotonic() + self._grace
        while self._working and time.monotonic() < end and self._told_to_end <= 1:
            self._look_after()
        late, self._working = self._working, []
        for worker in late:
            worker.process.kill()
            worker.process.join()
        if late:
            self._tally.late(len(late))
            return GRACE_RAN_OUT
        return CRASHING if self._gave_up else max(self._codes, default=0)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def end(*_: object) -> None:
            self._told_to_end += 1

        before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
