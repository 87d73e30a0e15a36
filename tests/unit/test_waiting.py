"""Waiting for work."""

from __future__ import annotations

import os
import signal
import threading
import time

from batchstate.claims.waiting import Nudge, listening
from batchstate.queue import BatchQueue
from batchstate_memory import MemoryStorage

SOON = 20.0
LONG = 60_000


def test_a_nudge_ends_the_present_wait_or_the_next() -> None:
    """A nudge that came before is kept for the next wait, and several are one."""
    nudge = Nudge()
    nudge()
    nudge()
    nudge.wait(LONG)
    begun = time.monotonic()
    nudge.wait(20)
    assert time.monotonic() - begun >= 0.015

    waiting = threading.Thread(target=nudge.wait, args=(LONG,), daemon=True)
    waiting.start()
    nudge()
    waiting.join(SOON)
    assert not waiting.is_alive()


def test_a_nudge_from_a_signal() -> None:
    """A signal's handler may nudge the very thread that it interrupts."""
    nudge = Nudge()
    before = signal.signal(signal.SIGUSR1, lambda *_: nudge())
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        begun = time.monotonic()
        nudge.wait(LONG)
        assert time.monotonic() - begun < SOON
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_memory_tells_who_listens() -> None:
    """Who listens is nudged when jobs are added by anybody on the store, and no more after that."""
    store = MemoryStorage("q")
    told: list[int] = []

    class Counting(Nudge):
        def __call__(self) -> None:
            told.append(1)

    with listening(store, Counting()):
        BatchQueue(MemoryStorage("q", store.store)).add("a")
    assert told
    told.clear()
    BatchQueue(store).add("b")
    assert not told
