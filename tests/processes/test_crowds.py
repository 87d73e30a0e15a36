"""Crowds of worker processes on every store that processes can share, some of them killed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from batchstate import JobStorage, open_storage
from batchstate.checking import check_batches
from batchstate.claims.context import has_jobs
from batchstate.job_checking import check_jobs
from batchstate_dynamodb import create_table
from tests.processes.crowd import Crowd, killed_again_and_again, killed_in_the_middle, two_of_many

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers.dynamo_servers import DynamoEndpoint
    from tests.servers.redis_servers import RedisEndpoint

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(params=["sqlite", "redis", "dynamodb"])
def crowd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crowd]:
    """Gather on a store."""
    name = f"crowd-{uuid4().hex}"
    match request.param:
        case "sqlite":
            url = f"sqlite:///{tmp_path / 'jobs.db'}"
        case "redis":
            valkey: RedisEndpoint = request.getfixturevalue("valkey_server")
            url = valkey.url
        case _:
            moto: DynamoEndpoint = request.getfixturevalue("moto_server")
            url = moto.url(name, transact="true")
            create_table(moto.client(), name)
    with open_storage(url, queue=name) as store:
        if not isinstance(store, JobStorage):
            pytest.skip(f"{request.param} keeps no jobs yet")
    crowd = Crowd(url, name, tmp_path)
    yield crowd
    crowd.dismiss()


@pytest.mark.parametrize("story", [two_of_many, killed_in_the_middle, killed_again_and_again])
def test_a_crowd(crowd: Crowd, story: Callable[[Crowd], None]) -> None:
    """Whatever happens to worker processes, no job is lost, none is worked on by two at once, none comes back done.

    And what is stored then is sound.
    """
    story(crowd)

    with crowd.queue() as q:
        assert has_jobs(q.store)
        assert [*check_batches(q.store, None, settled_for=0), *check_jobs(q.store)] == []
