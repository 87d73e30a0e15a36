"""Crowds of worker processes on every store that processes can share, some of them killed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from batchstate import JobStorage, open_storage
from tests.processes.crowd import Crowd, killed_again_and_again, killed_in_the_middle, two_of_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.redis_servers import RedisEndpoint

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(params=["sqlite", "redis"])
def crowd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crowd]:
    """Gather on a store."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'jobs.db'}"
    else:
        server: RedisEndpoint = request.getfixturevalue("valkey_server")
        url = server.url
    name = f"crowd-{uuid4().hex}"
    with open_storage(url, queue=name) as store:
        if not isinstance(store, JobStorage):
            pytest.skip(f"{request.param} keeps no jobs yet")
    crowd = Crowd(url, name, tmp_path)
    yield crowd
    crowd.dismiss()


@pytest.mark.parametrize("story", [two_of_many, killed_in_the_middle, killed_again_and_again])
def test_a_crowd(crowd: Crowd, story: Callable[[Crowd], None]) -> None:
    """Whatever happens to worker processes, no job is lost, none is worked on by two at once, none comes back done."""
    story(crowd)
