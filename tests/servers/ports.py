"""Ports for servers, and waiting for what they do."""

import secrets
import socket
import time
from collections.abc import Callable

# Below the range from which the kernel takes a client's own port. A server that is killed and
# restarted finds its port free again, and a client that tries to reach it meanwhile cannot be
# connected to itself.
_LOWEST = 11_000
_COUNT = 20_000
_ATTEMPTS = 1_000
_PAUSE = 0.005

LOCALHOST = "127.0.0.1"

_given: set[int] = set()


def free_port() -> int:
    """Return a port on which nothing listens, and which this process was not given before."""
    for _ in range(_ATTEMPTS):
        port = _LOWEST + secrets.randbelow(_COUNT)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind((LOCALHOST, port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise RuntimeError(f"no free port among {_ATTEMPTS} tried from {_LOWEST} on")


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 10.0) -> float:
    """Ask `condition` until it holds; return the seconds that took.

    Args:
        condition: Cheap, and free of effects.
        what: What is waited for, as the error says it.
        seconds: The longest wait.

    Raises:
        TimeoutError: It did not hold in time.

    """
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"waited {seconds} s in vain for: {what}")
        time.sleep(_PAUSE)
    return time.monotonic() - began
