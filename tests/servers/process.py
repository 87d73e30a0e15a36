"""One server process with a folder and a log of its own."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.measuring import TRACING
from tests.servers.ports import wait_until
from tests.servers.reaper import new_folder, reaper

_LONGEST_START = 15.0
_LONGEST_STOP = 5.0
_LOG_SHOWN = 2_000


class ServerDiedError(RuntimeError):
    """The server ended before it was ready; the message ends with the end of its log."""


class ServerProcess:
    """A server as a child process: started, stopped, killed, paused.

    Making the object makes the server's folder, and starts nothing. Whatever is still running when
    the test run ends is killed, even when the run itself was killed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = new_folder(name)
        self._log = self.folder / "log"
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the process exists (a paused one does)."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int:
        """The process's ID."""
        if self._child is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._child.pid

    @property
    def log(self) -> str:
        """What the server wrote, from all its starts."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self, command: Sequence[str | Path], ready: Callable[[], bool], *, cwd: Path | None = None) -> None:
        """Start `command` in the server's folder and wait until `ready` says so.

        Raises:
            ServerDiedError: It ended by itself.
            TimeoutError: It runs and did not become ready; it is killed.

        """
        if self.running:
            raise RuntimeError(f"{self.name} runs already")
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                [str(part) for part in command],
                cwd=cwd or self.folder,
                env={name: value for name, value in os.environ.items() if name not in TRACING},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        reaper().tell("pid", self._child.pid)
        try:
            wait_until(lambda: self._ended() or ready(), f"{self.name} to answer", _LONGEST_START)
        except BaseException:
            self.kill()
            raise
        if self._ended():
            raise ServerDiedError(f"{self.name} ended while starting:\n{self.log[-_LOG_SHOWN:]}")

    def stop(self) -> None:
        """Ask the process to end, insist after five seconds. Nothing happens if it has ended."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stop the process's clock: connections stay open, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)  # the signal alone returns before it acts

    def resume(self) -> None:
        """Let a paused process go on."""
        if self.running:
            os.kill(self.pid, signal.SIGCONT)

    def _ended(self) -> bool:
        return not self.running

    def _end(self, how: signal.Signals) -> None:
        child = self._child
        if child is None:
            return
        if child.poll() is None:
            child.send_signal(how)
            self.resume()  # a paused process would only then see a polite signal
            try:
                child.wait(_LONGEST_STOP)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        reaper().tell("gone", child.pid)
