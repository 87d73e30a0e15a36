"""What a process of `work` does: run a consumer with the handler that was named."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from attrs import frozen

from batchstate import BatchStateError, InvalidValueError, StorageUnavailableError
from batchstate.claims.handlers import check_handler
from batchstate.cli.output import complain
from batchstate.cli.tally import ENDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from batchstate import Claim, Settlement
    from batchstate.cli.settings import Target

__all__ = ["Task", "load_handler", "work_off"]

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


def load_handler(name: str) -> Callable[..., Any]:
    """Import the function `module:function`, from the current folder too.

    Raises:
        InvalidValueError: there is no such function, or its module cannot be imported, or it is a coroutine function.
    """
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        msg = f"name the handler as module:function, such as app:send_email, not {name!r}"
        raise InvalidValueError(msg)
    if "" not in sys.path and os.getcwd() not in sys.path:  # noqa: PTH109 - the entries of sys.path are texts
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - the same
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise InvalidValueError(_why_not_imported(module_name, error)) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        msg = f"module {module_name!r} has no function {function_name!r}"
        raise InvalidValueError(msg)
    check_handler(function)
    found: Callable[..., Any] = function
    return found


def _why_not_imported(module: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0]):
        return f"there is no module {module!r} here or on the path"
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{last.filename}, line {last.lineno}"
    return f"module {module!r} cannot be imported: {type(error).__name__}: {error} ({where}); --debug shows more"


def work_off(task: Task, reports: Connection) -> None:
    """Run a consumer until SIGTERM, or in a burst; what a worker process does.

    Args:
        task: what to do.
        reports: takes the size of each claim and how its jobs ended, and at last the exit code. A process that ends
            without having told it has crashed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group, and the parent drains
    logging.getLogger("stamina").addHandler(logging.NullHandler())  # an outage is told once, by the consumer
    code = 0

    def told(claim: Claim, settlement: Settlement) -> None:
        try:
            reports.send((len(claim), {name: len(getattr(settlement, name)) for name in ENDS}))
        except OSError:
            consumer.stop()  # the crew has gone, and nobody would look after this worker

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
        code = UNREACHABLE if isinstance(error, StorageUnavailableError) else BROKEN
    with suppress(OSError):
        reports.send(code)
    sys.exit(code)
