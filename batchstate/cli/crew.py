"""The crew of `work`: processes that run a consumer each, and the one that starts, watches and ends them."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from attrs import frozen

from batchstate import BatchStateError, HandlerContractError, InvalidValueError
from batchstate.cli.output import complain, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.process import BaseProcess

    from batchstate import Claim, Settlement
    from batchstate.cli.settings import Target

__all__ = ["GRACE_RAN_OUT", "Crew", "Task", "load_handler"]

GRACE_RAN_OUT = 4
"""The exit code where jobs were left to their leases."""

BROKEN = 1
"""The exit code where the handler broke its contract, or a worker could not work."""


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
        self._ending = False

    def run(self) -> int:
        """Work until the end; answer the exit code."""
        with self._signals():
            working = [self._start() for _ in range(self._size)]
            codes: list[int] = []
            while working and not self._ending:
                wait([process.sentinel for process in working], timeout=0.2)
                for process in [process for process in working if process.exitcode is not None]:
                    working.remove(process)
                    code = process.exitcode or 0
                    if code < 0 and not self._ending:  # killed from outside: its jobs come back, and so does a worker
                        errors.print(f"worker {process.pid} was killed by signal {-code}; another takes its place")
                        working.append(self._start())
                    else:
                        codes.append(code)
            return self._drain(working, codes)

    def _start(self) -> BaseProcess:
        process = self._context.Process(target=_work, args=(self._task,))
        process.start()
        return process

    def _drain(self, working: list[BaseProcess], codes: list[int]) -> int:
        """Let the workers finish what they have in hand, for as long as the grace lasts."""
        for process in working:
            process.terminate()
        end = time.monotonic() + self._grace
        for process in working:
            process.join(max(0.0, end - time.monotonic()))
        late = [process for process in working if process.exitcode is None]
        for process in late:
            process.kill()
            process.join()
        if late:
            errors.print(
                f"{len(late)} workers did not finish within the grace; their jobs come back when the leases lapse"
            )
            return GRACE_RAN_OUT
        return max([*codes, *(process.exitcode or 0 for process in working)], default=0)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def end(*_: object) -> None:
            self._ending = True

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


def _work(task: Task) -> None:
    """Run a consumer until SIGTERM, or in a burst; what a worker process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group, and the parent drains
    totals: Counter[str] = Counter()

    def told(claim: Claim, settlement: Settlement) -> None:
        totals.update(
            {name: len(getattr(settlement, name)) for name in ("completed", "retried", "delayed", "dead", "lost")}
        )
        said = ", ".join(f"{count:,} {name}" for name, count in totals.items() if count)
        errors.print(f"worker {os.getpid()}: a claim of {len(claim)}; so far {said}")

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
    except HandlerContractError as error:
        complain(str(error))
        sys.exit(BROKEN)
    except BatchStateError as error:
        complain(str(error))
        sys.exit(BROKEN)
