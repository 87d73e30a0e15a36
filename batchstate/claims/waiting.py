"""Waiting for work: woken by the backend where it can, else until it is time to look again."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from batchstate.job_storage import Wakeable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batchstate.claims.context import JobStore

__all__ = ["Nudge", "listening"]


class Nudge:
    """Wakes one thread that waits on it; a nudge that comes while nobody waits is kept for the next wait.

    It may be given from any thread and from a signal handler: a `SimpleQueue` is written so that putting into it can
    interrupt anything, which conditions and events are not.
    """

    def __init__(self) -> None:
        self._given: SimpleQueue[None] = SimpleQueue()

    def __call__(self) -> None:
        """End the present wait, or the next one."""
        if self._given.empty():
            self._given.put(None)

    def wait(self, milliseconds: float) -> None:
        """Wait for a nudge, so long at most."""
        with suppress(Empty):
            self._given.get(timeout=milliseconds / 1000)


@contextmanager
def listening(store: JobStore, nudge: Nudge) -> Iterator[None]:
    """Have `nudge` given whenever jobs may have become claimable, where the backend can tell."""
    if not isinstance(store, Wakeable):
        yield
        return
    forget = store.listen(nudge)
    try:
        yield
    finally:
        forget()
