"""Waking who waits for work: one connection a storage listens for what the scripts publish.

A script that makes jobs claimable publishes once if somebody has found too little to do since the last time, so a busy
queue publishes nothing, and an idle one once. What is published is how many listen: each consumer is woken after a
random delay within as many tenths of a millisecond, so that one alone wakes at once and thousands do not all come
within the same moment. What is lost on the way costs a poll.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, Final

from redis import exceptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate_redis.clients import Client

__all__ = ["Listener"]

_ERRORS: Final = (exceptions.RedisError, exceptions.RedisClusterException, OSError)

SPREAD: Final = 0.0001
"""Seconds of delay for each of those that listen, the server's time for an empty claim many times over."""

LONGEST_SPREAD: Final = 0.5
TICK: Final = 0.5
"""Seconds until the thread looks whether it is still needed."""

LONGEST_PAUSE: Final = 10.0
"""Seconds between two tries to reach the server."""


class Listener:
    """Calls nudges when jobs may have become claimable.

    Its thread and its connection are there while somebody listens.

    Args:
        client: redis-py's.
        channel: what the scripts publish to.
    """

    def __init__(self, client: Client, channel: str) -> None:
        self._client = client
        self._channel = channel
        self._lock = threading.Lock()
        self._nudges: dict[object, Callable[[], None]] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._closed = threading.Event()
        self._random = Random()  # noqa: S311 - spreads load, guards no secret

    def listen(self, nudge: Callable[[], None]) -> Callable[[], None]:
        """Call `nudge` until the answer is called."""
        token = object()
        with self._lock:
            self._nudges[token] = nudge
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._run, name="batchstate-wake", daemon=True)
                self._thread.start()

        def forget() -> None:
            with self._lock:
                self._nudges.pop(token, None)

        return forget

    def close(self) -> None:
        """End the thread and its connection; who still listens is not called any more."""
        with self._lock:
            self._is_closed = True
            self._closed.set()
            thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=LONGEST_PAUSE)

    def _run(self) -> None:
        pause = 0.1
        while self._is_needed():
            try:
                self._listen()
                pause = 0.1
            except Exception:  # noqa: BLE001 - a client closed under us raises anything, and who waits has the poll
                self._closed.wait(pause * self._random.uniform(0.5, 1))
                pause = min(2 * pause, LONGEST_PAUSE)

    def _is_needed(self) -> bool:
        """Answer whether anybody listens; where nobody does, this thread is no longer the one that does the work."""
        with self._lock:
            if self._nudges and not self._is_closed:
                return True
            self._thread = None
            return False

    def _listen(self) -> None:
        connect: Any = self._client.pubsub
        subscription = connect()
        try:
            subscription.subscribe(self._channel)
            while self._wanted():
                message = subscription.get_message(timeout=TICK)
                if message is None:
                    continue
                # What was missed while there was no subscription is made up for by a nudge at its begin.
                count = int(message["data"]) if message["type"] == "message" else 1
                self._wake(count)
        finally:
            with suppress(*_ERRORS):
                subscription.close()

    def _wanted(self) -> bool:
        with self._lock:
            return bool(self._nudges) and not self._is_closed

    def _wake(self, count: int) -> None:
        """Give every nudge after a delay of its own."""
        with self._lock:
            nudges = list(self._nudges.values())
        spread = min(LONGEST_SPREAD, max(0, count + len(nudges) - 2) * SPREAD)
        begin = time.monotonic()
        delays = sorted(self._random.uniform(0, spread) for _ in nudges)
        self._random.shuffle(nudges)
        for delay, nudge in zip(delays, nudges, strict=True):
            left = begin + delay - time.monotonic()
            if left > 0:
                time.sleep(left)
            nudge()
