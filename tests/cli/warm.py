"""Processes that start warm: what the command consists of and stands on takes most of its start, so it loads once.

A child is forked for each command, which runs its entry point and ends as any other process does. What has read the
environment when it was loaded is made anew in it. Cold starts are tried wherever a test starts a process itself.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["WarmStart", "serve"]

PARTS = ("batchstate.cli.app", "batchstate_sqlite", "batchstate_redis", "batchstate_dynamodb", "rich.markdown")
STREAMS = 3
LENGTH = struct.Struct("!I")
PROGRAM = "from tests.cli.warm import serve; serve()"


class WarmStart:
    """Starts the command in forks of a process that has its libraries loaded; one command at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(theirs.fileno())], env=environment, pass_fds=[theirs.fileno()]
            )

    def run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        streams: Sequence[int],
        patience: float,
    ) -> int:
        """Run the command with these words to its end and answer its exit code; a negative one names a signal."""
        request = json.dumps([list(words), dict(environment), str(folder)]).encode()
        socket.send_fds(self._ours, [LENGTH.pack(len(request))], streams)
        self._ours.sendall(request)
        self._ours.settimeout(patience)
        try:
            return int(json.loads(_received(self._ours, LENGTH.unpack(_received(self._ours, LENGTH.size))[0])))
        except TimeoutError:
            self.close()
            raise

    def close(self) -> None:
        """End it, and whatever command it runs."""
        self._ours.close()
        with suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()


def serve() -> None:
    """Fork a child for each request; in the child, become the command."""
    for name in PARTS:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what all children share is neither looked through nor copied by them
    with socket.socket(fileno=int(sys.argv[1])) as theirs:
        os.setpgid(0, 0)  # so that all that runs can be ended together
        while True:
            first, streams, _, _ = socket.recv_fds(theirs, LENGTH.size, STREAMS)
            if not first:
                return
            words, environment, folder = json.loads(_received(theirs, LENGTH.unpack(first)[0]))
            child = os.fork()
            if not child:
                break
            for stream in streams:
                os.close(stream)
            _, status = os.waitpid(child, 0)
            answer = json.dumps(os.waitstatus_to_exitcode(status)).encode()
            theirs.sendall(LENGTH.pack(len(answer)) + answer)
    _become(words, environment, folder, streams)


def _become(words: list[str], environment: dict[str, str], folder: str, streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv[:] = ["batchstate", *words]

    from batchstate.cli import main, output  # noqa: PLC0415 - whoever starts a child does not need them

    fresh = runpy.run_path(output.__file__)
    for name in ("out", "errors"):  # they know the environment and the terminal
        vars(getattr(output, name)).update(vars(fresh[name]))
    main()


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data
