"""The crew of `work`: processes that run a consumer each, and the one that starts, watches and ends them."""

from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
import signal
import sys
import time
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from attrs import frozen

from batchstate import BatchStateError, InvalidValueError, StorageUnavailableError
from batchstate.cli.output import complain
from batchstate.cli.safe import many
from batchstate.cli.tally import ENDS, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from batchstate import Claim, Settlement
    from batchstate.cli.settings import Target

__all__ = ["GRACE_RAN_OUT", "Crew", "Task", "load_handler"]

GRACE_RAN_OUT = 4
"""The exit code where jobs were left to their leases."""

BROKEN = 1
"""The exit code where the handler broke its contract, or a worker could not work."""

UNREACHABLE = 3
"""The exit code where the store could not be reached for longer than a worker waits."""


@frozen
class Task:
    """What a worker process is to do.

    Attributes:
        chosen: the store and the queue.
        handler: `module:function`.
        batch: whether it is called with all jobs of a claim.
        options: of the consumer.
        burst: whether to end when nothing is left.
    """

    chosen: Target
    handler: str
    batch: bool
    options: dict[str, Any]
    burst: bool


class Crew:
    """Runs a task in several processes, starts a new one where one dies, and drains them when told to end.

    Args:
        task: what each is to do.
        size: how many.
        grace: for how many seconds the jobs in hand may be finished.
    """

    def __init__(self, task: Task, size: int, grace: float) -> None:
        self._task = task
        self._size = size
        self._grace = grace
        self._context = multiprocessing.get_context("spawn")
        self._told_to_end = 0
        self._working: dict[BaseProcess, Connection] = {}
        self._codes: list[int] = []
        self._tally = Tally()

    def run(self) -> int:
        """Work until the end; answer the exit code."""
        with self._signals(), self._tally:
            for _ in range(self._size):
                self._start()
            while self._working and not self._told_to_end:
                self._look_after()
            if self._working:
                self._tally.says(f"finishing what is in hand, for up to {self._grace:g} s; once more ends it at once")
            return self._drain()

    def _start(self) -> None:
        """Start a worker, with a pipe of its own: a lock that is shared would be lost with whoever is killed."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_work, args=(self._task, theirs))
        process.start()
        theirs.close()
        self._working[process] = ours

    def _look_after(self) -> None:
        """Wait for a moment; count what the workers report, and see who has ended."""
        wait([*self._working.values(), *(process.sentinel for process in self._working)], timeout=0.2)
        for process, reports in list(self._working.items()):
            ended = process.exitcode is not None
            self._count(process, reports)
            if not ended:
                continue
            del self._working[process]
            reports.close()
            code = process.exitcode or 0
            if code < 0 and not self._told_to_end:  # killed from outside: its jobs come back, and so does a worker
                self._tally.says(f"worker {process.pid} was killed by signal {-code}; another takes its place")
                self._start()
            else:
                self._codes.append(code)

    def _count(self, process: BaseProcess, reports: Connection) -> None:
        try:
            while reports.poll():
                size, ends = reports.recv()
                self._tally.count(process.pid or 0, size, ends)
        except (EOFError, OSError):
            pass  # it has ended, perhaps in the middle of a report

    def _drain(self) -> int:
        """Let the workers finish what they have in hand, for as long as the grace lasts."""
        for process in self._working:
            process.terminate()
        end = time.monotonic() + self._grace
        while self._working and time.monotonic() < end and self._told_to_end <= 1:
            self._look_after()
        late = list(self._working)
        for process in late:
            process.kill()
            process.join()
        if late:
            workers = many(len(late), "worker")
            self._tally.says(f"{workers} did not finish within the grace; their jobs come back when the leases lapse")
            return GRACE_RAN_OUT
        return max((code for code in self._codes if code > 0), default=0)

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


def load_handler(name: str) -> Callable[..., Any]:
    """Import the function `module:function`, from the current folder too.

    Raises:
        InvalidValueError: there is no such function. Its module's own errors are told as they are.
    """
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        msg = f"name the handler as module:function, such as app:send_email, not {name!r}"
        raise InvalidValueError(msg)
    if "" not in sys.path and os.getcwd() not in sys.path:  # noqa: PTH109 - the entries of sys.path are texts
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - the same
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0] and error.name != module_name:
            raise
        msg = f"there is no module {module_name!r} here or on the path"
        raise InvalidValueError(msg) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        msg = f"module {module_name!r} has no function {function_name!r}"
        raise InvalidValueError(msg)
    found: Callable[..., Any] = function
    return found


def _work(task: Task, reports: Connection) -> None:
    """Run a consumer until SIGTERM, or in a burst; what a worker process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group, and the parent drains
    logging.getLogger("stamina").addHandler(logging.NullHandler())  # an outage is told once, by the consumer

    def told(claim: Claim, settlement: Settlement) -> None:
        with suppress(OSError):  # the parent has gone; what is in hand is finished all the same
            reports.send((len(claim), {name: len(getattr(settlement, name)) for name in ENDS}))

    try:
        function = load_handler(task.handler)
        with task.chosen.queue() as opened:
            consumer = opened.consumer(
                batch=function if task.batch else None,
                each=None if task.batch else function,
                on_settled=told,
                **task.options,
            )
            consumer.run(burst=task.burst)
    except BatchStateError as error:
        complain(str(error))
        sys.exit(UNREACHABLE if isinstance(error, StorageUnavailableError) else BROKEN)
