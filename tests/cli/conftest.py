"""The stores that commands are tried on: each backend that several processes can share."""

from __future__ import annotations

from itertools import count
from os import getpid
from typing import TYPE_CHECKING

import pytest

from batchstate import open_queue
from batchstate_dynamodb import create_table
from tests.cli.terminal import Command, warm_start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.dynamo_servers import DynamoEndpoint
    from tests.servers.redis_servers import RedisEndpoint

_numbers = count(1)


@pytest.fixture(scope="session", autouse=True)
def _warm() -> Iterator[None]:
    """End the process that commands are forked from."""
    yield
    if warm_start.cache_info().currsize:
        warm_start().close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Command:
    """The command on a SQLite file."""
    return Command(f"sqlite:///{tmp_path / 'store.db'}", tmp_path)


@pytest.fixture(params=["sqlite", "valkey", "moto"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Command:
    """The command on each backend, in a store of its own."""
    if request.param == "sqlite":
        return Command(f"sqlite:///{tmp_path / 'store.db'}", tmp_path)
    if request.param == "valkey":
        server: RedisEndpoint = request.getfixturevalue("valkey_server")
        return Command(f"{server.url}?prefix=cli{getpid()}x{next(_numbers)}", tmp_path)
    moto: DynamoEndpoint = request.getfixturevalue("moto_server")
    table = f"cli-{getpid()}-{next(_numbers)}"
    create_table(moto.client(), table)
    return Command(moto.url(table, transact="true", threads=1), tmp_path)  # moto mixes up what is written side by side


def test_the_stores_are_apart(anywhere: Command) -> None:
    """Each test has a store of its own."""
    with open_queue("q", anywhere.url) as queue:
        assert queue.store.list_queues() == []
