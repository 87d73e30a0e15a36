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
    interval, and the trouble is logged once until it is over. So is whatever else goes wrong in one extension, such as
    in a callback of yours; it costs the other leases nothing.

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
        """Extend `kept` from now on, every `interval_ms`, by default half its lease; again, the interval begins anew.

        Raises:
            InvalidValueError: the interval is not shorter than the lease, which would lapse before it.
        """
        lease = kept.lease_ms
        interval = lease / 2 if interval_ms is None else interval_ms
        if not 0 < interval < lease:
            msg = f"an interval of {interval} ms does not keep a lease of {lease} ms: it must be shorter"
            raise InvalidValueError(msg)
        with self._changed:
            self._entries[id(kept)] = _Entry(kept, interval / 1000, self._seconds() + interval / 1000)
            self._changed.notify()
            if self._threaded and (self._thread is None or not self._thread.is_alive()):  # a fork has no thread
                self._thread = threading.Thread(target=self._run, name="batchstate-lease-keeper", daemon=True)
                self._thread.start()

    def changed(self, kept: Kept) -> None:
        """Go by the new length of its lease, if `kept` is held here."""
        with self._changed:
            if id(kept) in self._entries:
                self.hold(kept)

    def drop(self, kept: Kept) -> None:
        """Extend `kept` no more; waits for an extension that is under way. Twice is harmless."""
        with self._changed:
            self._entries.pop(id(kept), None)
            self._changed.notify()
        with self._beating:
            pass

    def beat(self) -> float | None:
        """Extend what is due; answer when the next is, by the steady time, `None` where nothing is held."""
        with self._changed:
            now = self._seconds()
            due = [entry for entry in self._entries.values() if entry.due <= now]
        for entry in due:
            self._extend(entry)
        with self._changed:
            return min((entry.due for entry in self._entries.values()), default=None)

    def _extend(self, entry: _Entry) -> None:
        with self._beating:
            if self._entries.get(id(entry.kept)) is not entry:
                return
            begun = self._seconds()
            entry.due = begun + entry.interval
            try:
                held = entry.kept.keep()
            except ClaimLostError:
                held = False
            except Exception as error:  # a fault in one lease's callback must not cost the others theirs
                entry.due = begun + entry.interval / 10
                if not entry.failing:
                    expected = isinstance(error, BatchStateError)
                    log.warning("a lease could not be extended, which is tried again: %s", error, exc_info=not expected)
                entry.failing = True
                return
            if entry.failing:
                log.warning("the lease is extended again")
            entry.failing = False
            if not held:
                with self._changed:
                    if self._entries.get(id(entry.kept)) is entry:
                        del self._entries[id(entry.kept)]

    def _run(self) -> None:
        while True:
            self.beat()
            with self._changed:
                due = min((entry.due for entry in self._entries.values()), default=None)
                if due is None:
                    self._thread = None
                    return
                self._changed.wait(max(0.0, due - self._seconds()))
