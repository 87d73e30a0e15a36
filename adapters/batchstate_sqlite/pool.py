"""Connections: opened when needed, used by one thread at a time, kept for the next, closed before a fork.

SQLite must not be used across a fork: a child that inherits an open database believes that it holds
the locks of its parent. So all idle connections are closed before this process forks, those in use
are waited for, and both sides open new ones afterwards. What was in use beyond that is never
touched by the child, and not closed either.
"""

from __future__ import annotations

import ctypes
import os
from threading import Condition, Lock, get_ident
from time import monotonic
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from batchstate.errors import StorageUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection

__all__ = ["Pool"]

FORK_PATIENCE: Final = 5.0
"""How many seconds a fork waits at most for other threads to finish what they do in a store."""


class Pool:
    """The connections to one database.

    Args:
        name: what to call the database in an error.
        connect: opens one more connection.
        most: how many are open at most.
        shared: whether a child process can open the same database; a database in memory it cannot.
    """

    def __init__(self, name: str, connect: Callable[[], Connection], *, most: int, shared: bool) -> None:
        self._name = name
        self._connect = connect
        self._most = most
        self._shared = shared
        self._changed = Condition(Lock())
        self._idle: list[Connection] = []
        self._used: dict[Connection, int] = {}
        """Which thread uses it, by its identifier."""
        self._ended = ""
        self.writing = Lock()
        """Held by the thread of this process that writes, so that the others need not ask SQLite again and again."""
        _pools.add(self)

    def borrow(self, deadline: float) -> Connection:
        """Answer a connection for this thread alone, to be given back.

        Raises:
            StorageUnavailableError: the pool is closed, or all connections stayed in use until
                `deadline`, as `time.monotonic` tells the time.
            sqlite3.Error: no further one can be opened.
        """
        with self._changed:
            if not self._idle and not self._ended and len(self._used) >= self._most:
                self._changed.wait_for(
                    lambda: self._idle or self._ended or len(self._used) < self._most, deadline - monotonic()
                )
            if self._ended:
                msg = f"{self._name} {self._ended}; nothing of this step was written"
                raise StorageUnavailableError(msg)
            if self._idle:
                connection = self._idle.pop()
            elif len(self._used) < self._most:
                connection = self._connect()
            else:
                msg = (
                    f"all {self._most} connections to {self._name} stayed in use until the timeout; "
                    "nothing of this step was written"
                )
                raise StorageUnavailableError(msg)
            self._used[connection] = get_ident()
            return connection

    def give_back(self, connection: Connection) -> None:
        """Take a borrowed connection back; one that is still in a transaction is closed, which undoes it."""
        with self._changed:
            if self._used.pop(connection, None) is None:
                return  # it was borrowed before a fork, in the parent
            if self._ended or connection.in_transaction:
                connection.close()
            else:
                self._idle.append(connection)
            self._changed.notify()

    def close(self) -> None:
        """Close all idle connections, and those in use as they come back. Twice is harmless."""
        with self._changed:
            self._ended = self._ended or "is closed"
            self._close_idle()
            self._changed.notify_all()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def before_fork(self) -> None:
        """Hold the pool, with no connection open as far as that can be had."""
        self._changed.acquire()
        if self._shared:
            me = get_ident()
            deadline = monotonic() + FORK_PATIENCE
            while any(thread != me for thread in self._used.values()) and monotonic() < deadline:
                self._changed.wait(deadline - monotonic())
            self._close_idle()

    def after_fork_in_parent(self) -> None:
        """Let the pool go."""
        self._changed.release()

    def after_fork_in_child(self) -> None:
        """Begin anew, with nothing that is the parent's."""
        for connection in (*self._idle, *self._used):
            _keep_for_ever(connection)
        self._idle.clear()
        self._used.clear()
        self._changed = Condition(Lock())
        self.writing = Lock()
        if not self._shared:
            self._ended = "is in the memory of the process that opened it, and this is a child of that one: use a file"


def _keep_for_ever(connection: Connection) -> None:
    """Take a reference that nobody ever gives back: also at its end, the child must not close what is the parent's."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


_pools: WeakSet[Pool] = WeakSet()
_held: list[Pool] = []


def _before_fork() -> None:
    for pool in list(_pools):
        pool.before_fork()
        _held.append(pool)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().after_fork_in_parent()


def _after_fork_in_child() -> None:
    while _held:
        _held.pop().after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
