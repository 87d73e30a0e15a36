"""Running the command as a person or a script does: as a process of its own, through its entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import pexpect
import pytest
from attrs import frozen

from tests.cli.warm import WarmStart

__all__ = ["COMMAND", "PATIENCE", "Command", "Ended", "at_terminal", "environment", "started", "wait_for", "warm_start"]

PATIENCE = 60
"""How many seconds a test waits for what must happen, on a slow machine."""

COMMAND = [sys.executable, "-c", "from batchstate.cli import main; main()"]


def environment(**more: str) -> dict[str, str]:
    """The environment in which the command finds the packages of this test run, and nothing else that is set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BATCHSTATE_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "120", **more}


@frozen
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read as JSON."""
        return json.loads(self.out)


@frozen
class Command:
    """The command, set up for one store and folder."""

    url: str
    folder: Path

    def __call__(self, *words: str, text: str | None = None, **more: str) -> Ended:
        """Run it to its end, from a warm start."""
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write((text or "").encode())
            given.seek(0)
            code = warm_start().run(
                words,
                environment(**{"BATCHSTATE_URL": self.url, **more}),
                self.folder,
                [stream.fileno() for stream in (given, out, err)],
                patience=100,
            )
            return Ended(code, *(_text(stream) for stream in (out, err)))

    def at_terminal(self, *words: str, **more: str) -> Ended:
        """Run it to its end at a terminal of 80 columns, which has what it printed and complained of in one."""
        ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (24, 80))
        given = {**environment(BATCHSTATE_URL=self.url), "TERM": "xterm-256color"}
        for name in ("COLUMNS", "NO_COLOR"):
            given.pop(name, None)
        with ThreadPoolExecutor(1) as pool:
            shown = pool.submit(_all_of, ours)
            code = warm_start().run(words, {**given, **more}, self.folder, [theirs] * 3, patience=100)
            os.close(theirs)
            return Ended(code, shown.result().replace("\r\n", "\n"), "")


def _all_of(terminal: int) -> str:
    """Answer what comes from a terminal until its other side is closed."""
    data = b""
    with suppress(OSError):  # which is how Linux says so
        while part := os.read(terminal, 1 << 16):
            data += part
    os.close(terminal)
    return data.decode()


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


@cache
def warm_start() -> WarmStart:
    """The process that commands are forked from; whoever uses it closes it."""
    return WarmStart(environment())


def started(on: Command, *words: str) -> subprocess.Popen[str]:
    """Start the command without a terminal, what it prints and complains of in two pipes."""
    return subprocess.Popen(
        [*COMMAND, *words],
        env=environment(BATCHSTATE_URL=on.url),
        cwd=on.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path) -> str:
    """Answer what a file holds, as soon as it holds something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if path.exists() and (text := path.read_text(encoding="utf-8")):
            return text
        time.sleep(0.02)
    pytest.fail(f"there is no {path.name}")


def at_terminal(on: Command, *words: str, **more: str) -> pexpect.spawn[str]:
    """Start the command in a pseudo-terminal of 80 columns."""
    given = {**environment(), "BATCHSTATE_URL": on.url, "TERM": "xterm-256color", "COLUMNS": "80"}
    given.pop("NO_COLOR", None)
    return pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *words],
        env={**given, **more},
        cwd=str(on.folder),
        encoding="utf-8",
        dimensions=(24, 80),
        timeout=PATIENCE,
    )
