"""The lease keeper: a thread that extends everything held here, one call a beat for each claim, whatever its size."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Protocol

from attrs import define

from batchstate.errors import BatchStateError, ClaimLostError, InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Kept", "LeaseKeeper"]

log = logging.getLogger("batchstate")


class Kept(Protocol):
    """Something held under a lease, such as a claim."""

    @property
    def lease_ms(self) -> int:
        """How long the lease is, in milliseconds."""

    def keep(self) -> bool:
        """Extend the lease by its length; answer whether anything is still held."""


@define
class _Entry:
    kept: Kept
    interval: float
    due: float
    failing: bool = False


class LeaseKeeper:
    """Extends what it is given, each at half its lease, until it is taken away again.

    A store that cannot be reached does not mean that a lease is lost: the extension is tried again at a tenth of the
    interval, and the trouble is logged once until it is over.

    Args:
        seconds: answers a steady time in seconds.
        threaded: whether to run a thread while something is held; without it, somebody calls `beat`.
    """

    def __init__(self, seconds: Callable[[], float] = time.monotonic, *, threaded: bool = True) -> None:
        self._seconds = seconds
        self._threaded = threaded
        self._entries: dict[int, _Entry] = {}
        self._changed = threading.Condition()
        self._beating = threading.RLock()
        self._thread: threading.Thread | None = None

    def hold(self, kept: Kept, *, interval_ms: int | None = None) -> None:
        """Extend `kept` from now on, every `interval_ms`, by default half its lease.

        Raises:
            InvalidValueError: the interval is not shorter than the lease, which would lapse before it.
        """
        interval = interval_ms if interval_ms is not None else max(1, kept.lease_ms // 2)
        if not 0 < interval < kept.lease_ms and not (interval_ms is None and kept.lease_ms == 1):
            msg = f"an interval of {interval} ms does not keep a lease of {kept.lease_ms} ms: it must be shorter"
            raise InvalidValueError(msg)
        with self._changed:
            self._entries[id(kept)] = _Entry(kept, interval / 1000, self._seconds() + interval / 1000)
            self._changed.notify()
            if self._threaded and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="batchstate-lease-keeper", daemon=True)
                self._thread.start()

    def drop(self, kept: Kept) -> None:
        """Extend `kept` no more; waits for an extension that is under way. Twice is harmless."""
        with self._changed:
            self._entries.pop(id(kept), None)
            self._changed.notify()
        with self._beating:
            pass

    def beat(self) -> float | None:
        """Extend what is due; answer in how many seconds the next is, `None` where nothing is held."""
        with self._changed:
            now = self._seconds()
            due = [entry for entry in self._entries.values() if entry.due <= now]
        for entry in due:
            self._extend(entry)
        with self._changed:
            return min((entry.due for entry in self._entries.values()), default=None) if self._entries else None

    def _extend(self, entry: _Entry) -> None:
        with self._beating:
            if id(entry.kept) not in self._entries:
                return
            begun = self._seconds()
            try:
                held = entry.kept.keep()
            except ClaimLostError:
                held = False
            except BatchStateError as error:
                if not entry.failing:
                    log.warning("a lease could not be extended, which is tried again: %s", error)
                entry.failing, entry.due = True, begun + entry.interval / 10
                return
            if entry.failing:
                log.warning("leases are extended again")
            entry.failing, entry.due = False, begun + entry.interval
            if not held:
                with self._changed:
                    self._entries.pop(id(entry.kept), None)

    def _run(self) -> None:
        while True:
            try:
                due = self.beat()
            except Exception:  # the thread must outlive a fault in one claim's callback
                log.exception("a lease could not be extended")
                due = self._seconds() + 1
            with self._changed:
                if not self._entries:
                    self._thread = None
                    return
                next_due = min(entry.due for entry in self._entries.values())
                self._changed.wait(max(0.0, min(next_due, due if due is not None else next_due) - self._seconds()))
