"""Waiting for work: woken by the backend where it can, else until it is time to look again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from batchstate.job_storage import Wakeable

if TYPE_CHECKING:
    from batchstate.claims.context import JobStore

__all__ = ["wait"]


def wait(store: JobStore, milliseconds: int, stop: threading.Event | None = None) -> None:
    """Wait until there may be work, for so long at most, or until `stop` is set by whoever calls `store.wake()`."""
    if stop is not None and stop.is_set():
        return
    if isinstance(store, Wakeable):
        store.wait_for_jobs(milliseconds / 1000)
    else:
        (stop or threading.Event()).wait(milliseconds / 1000)
