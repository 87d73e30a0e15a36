"""The process that cleans up after a test run, however the run ends.

Run as a program it reads lines from its standard input: `pid 123` (a server has started),
`gone 123` (it has ended and been waited for) and `folder /tmp/x`. When the input ends, because the
test run has ended or was killed, it kills what is left and removes the folders.

A parent-death signal would do half of this, on Linux only, and fires when the *thread* that started
a server ends, which a test that restarts servers from a thread would notice.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO

_LONGEST_CLEAN_UP = 10.0


class Reaper:
    """The test run's end of the pipe; the other end is this file, run as a program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,  # an interrupt from the keyboard must not end it first
        )
        if self._process.stdin is None:  # pragma: no cover - asked for above
            raise RuntimeError("the reaper has no standard input")
        self._pipe: IO[str] = self._process.stdin
        # A forked child would hold the pipe open beyond the end of the run.
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self.finish)

    def tell(self, word: str, what: object) -> None:
        """Send one line: `word` is pid, gone or folder."""
        with self._lock:
            self._pipe.write(f"{word} {what}\n")
            self._pipe.flush()

    def finish(self) -> None:
        """End the input and wait until everything is gone."""
        if self._pipe.closed:
            return
        self._pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_LONGEST_CLEAN_UP)

    def _forget(self) -> None:
        os.close(self._pipe.fileno())
        with contextlib.suppress(OSError):
            self._pipe.close()


_reapers: dict[int, Reaper] = {}
_roots: dict[int, Path] = {}


def reaper() -> Reaper:
    """Return this process's reaper, started when it is first asked for."""
    if os.getpid() not in _reapers:
        _reapers[os.getpid()] = Reaper()
    return _reapers[os.getpid()]


def new_folder(name: str) -> Path:
    """Make a folder for one server, removed with everything in it when the run ends."""
    if os.getpid() not in _roots:
        # Short and under the system's temporary folder: a Unix socket's path has at most 107 bytes.
        _roots[os.getpid()] = Path(tempfile.mkdtemp(prefix="servers-"))
        reaper().tell("folder", _roots[os.getpid()])
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=_roots[os.getpid()]))


def _reap(lines: IO[str]) -> None:
    pids: set[int] = set()
    folders: list[str] = []
    for line in lines:
        word, _, what = line.rstrip("\n").partition(" ")
        if word == "pid":
            pids.add(int(what))
        elif word == "gone":
            pids.discard(int(what))
        elif word == "folder":
            folders.append(what)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _reap(sys.stdin)
