"""What every server of ours can: be started, stopped, killed, restarted, paused."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.servers.ports import LOCALHOST, free_port
from tests.servers.process import ServerDiedError, ServerProcess

_START_ATTEMPTS = 5
_PORT_TAKEN = "address already in use"


class ControlledServer(ABC):
    """A server that this process runs. As a context manager it runs within the block.

    Args:
        name: What the server is called in its folder's name and in errors.

    """

    def __init__(self, name: str) -> None:
        self.host = LOCALHOST
        self.port = free_port()
        self.process = ServerProcess(name)

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """Return the program and its arguments, for the present port."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it is this very server that answers on the port."""

    def prepare(self) -> None:  # noqa: B027 - most servers need none
        """Write what the server reads when it starts for the first time on a port."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port

    def start(self) -> Self:
        """Start the server and wait until it answers; on another port if another took ours.

        Raises:
            ServerDiedError: It ended by itself, for another reason than its port.
            TimeoutError: It does not answer.

        """
        for attempt in range(1, _START_ATTEMPTS + 1):
            self.prepare()
            try:
                self.process.start(self.command(), self.answers)
            except ServerDiedError as error:
                if attempt == _START_ATTEMPTS or _PORT_TAKEN not in str(error).lower():
                    raise
                self.port = free_port()
            else:
                break
        return self

    def stop(self) -> None:
        """End the server politely."""
        self.process.stop()

    def kill(self) -> None:
        """End the server as a crash would."""
        self.process.kill()

    def restart(self) -> None:
        """Stop it if it runs, and start it on the same port."""
        # Not prepared anew: a sentinel and a cluster's node keep notes in their files.
        self.stop()
        self.process.start(self.command(), self.answers)

    def pause(self) -> None:
        """Leave every connection open and answer nothing."""
        self.process.pause()

    def resume(self) -> None:
        """End a pause."""
        self.process.resume()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()
