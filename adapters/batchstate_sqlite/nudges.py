"""Who in this process waits for jobs in which database. What other processes do is not told: who waits looks, too."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Nudges", "nudges_of"]


class Nudges:
    """Those who are to be told when jobs may have become claimable in one database."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []

    def listen(self, nudge: Callable[[], None]) -> Callable[[], None]:
        """Call `nudge` from now on, until the answer is called."""
        self._listeners.append(nudge)

        def forget() -> None:
            self._listeners.remove(nudge)

        return forget

    def __call__(self) -> None:
        """Tell all of them."""
        for nudge in tuple(self._listeners):
            nudge()


_of_files: WeakValueDictionary[str, Nudges] = WeakValueDictionary()
_lock = Lock()


def nudges_of(path: str) -> Nudges:
    """Answer those of a file, the same however often it is opened."""
    with _lock:
        return _of_files.setdefault(os.path.realpath(path), Nudges())
