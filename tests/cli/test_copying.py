"""`storage copy` through the entry point: to another backend and back, broken off and completed, refused."""

from __future__ import annotations

from itertools import count, pairwise
from os import getpid
from typing import TYPE_CHECKING, Any

import pytest

from batchstate import Dead, Lifecycle, Retry, Storage, open_queue, open_storage
from batchstate.claims.context import has_jobs
from batchstate.copying import copy_queue
from batchstate.testing import Crash, FaultStore, crash_before
from batchstate_dynamodb import create_table

if TYPE_CHECKING:
    from pathlib import Path

    from batchstate import BatchQueue
    from batchstate.jobs import Place
    from tests.cli.terminal import Command
    from tests.servers.dynamo_servers import DynamoEndpoint
    from tests.servers.redis_servers import RedisEndpoint

FLOW = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")
PLACES: tuple[Place, ...] = ("waiting", "active", "scheduled", "dead")
_numbers = count(1)


@pytest.fixture
def valkey(valkey_server: RedisEndpoint) -> str:
    """The URL of an empty store on Valkey."""
    return f"{valkey_server.url}?prefix=copy{getpid()}x{next(_numbers)}"


@pytest.fixture
def dynamodb(moto_server: DynamoEndpoint) -> str:
    """The URL of an empty table that keeps jobs."""
    table = f"copy-{getpid()}-{next(_numbers)}"
    create_table(moto_server.client(), table)
    return moto_server.url(table, transact="true", threads=1)  # moto mixes up what is written side by side


@pytest.fixture(params=["valkey", "dynamodb"])
def other(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store on each other backend."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture
def full(sqlite: Command) -> Command:
    """A paused store that has something of everything: live and retired batches, outcomes, jobs, ceilings, pauses."""
    with open_queue("merges", sqlite.url, lifecycle=FLOW, by="setup") as queue:
        for number in range(10):
            queue.create(f"batch-{number}", requests=[f"pr-{number}", "shared"], attributes={"n": 10**30, "x": 1.5})
        for number in range(4):
            queue.advance(f"batch-{number}", "testing", source="queued")
        queue.advance("batch-0", "failed", source="testing", why="red")
        queue.retire("batch-0")
        for number in range(12):
            queue.add(f"job-{number}", {"n": number}, group=f"g{number % 3}" if number % 4 else None, max_attempts=2)
        queue.add("later", delay="1h")
        claim = queue.claim(3)
        assert claim is not None
        first, second, *rest = [job.id for job in claim]
        claim.settle({first: Dead("bad\nvery"), second: Retry("again"), **{name: Retry("x", "2h") for name in rest}})
        queue.set_ceiling(5)
        queue.set_ceiling(2, group="g1")
        queue.pause(reason="moving")
        queue.pause("g2", reason="broken")
    return sqlite


def contents(url: str) -> dict[str, Any]:
    """Answer all that a queue has, in a form that can be compared."""
    with open_storage(url, queue="merges") as store:
        assert has_jobs(store)
        counts = store.count_jobs()
        return {
            "batches": sorted((b for b in everything(store, "batches")), key=lambda b: b.id),
            "marks": sorted((b.id, b.marks) for b in everything(store, "batches")),
            "records": sorted(everything(store, "records"), key=lambda r: (r.state, r.batch_id)),
            "associations": sorted(everything(store, "associations"), key=lambda a: (a.request_id, a.batch_id)),
            "retired": [getattr(batch, "id", "") for batch in store.list_retired().items],
            "jobs": [job for place in PLACES for job in store.list_jobs(place).items],
            "counts": (counts.groups, counts.paused, counts.ceiling, counts.claims),
        }


def everything(store: Storage, kind: Any) -> list[Any]:
    """Answer all rows of a kind."""
    found = list((page := store.scan(kind)).items)
    while page.cursor is not None:
        page = store.scan(kind, page.cursor)
        found += page.items
    return list(dict.fromkeys(found))


def test_through_all_backends_and_back(full: Command, valkey: str, dynamodb: str, tmp_path: Path) -> None:
    """From SQLite to Valkey, to DynamoDB, to Valkey and into another file, a queue is what it was, to the last mark."""
    back = f"sqlite:///{tmp_path / 'back.db'}"
    before = contents(full.url)
    way = [full.url, valkey, dynamodb, f"{valkey}b", back]
    for source, target in pairwise(way):
        said = full("storage", "copy", source, target, "--queue", "merges")
        assert (said.code, said.err) == (0, "")
        assert "All is as it was" in said.out
        assert contents(target) == before
    with open_queue("merges", back, lifecycle=FLOW) as queue:
        queue.resume()
        assert queue.advance("batch-1", "merging", source="testing").outcome == "moved"
        assert queue.claim(1) is not None


def test_a_second_time_changes_nothing(full: Command, valkey: str) -> None:
    """What is there already counts as done: copied again, nothing changes, and the dry run says that all is there."""
    assert full("storage", "copy", full.url, valkey).code == 0
    before = contents(valkey)
    [said] = full("storage", "copy", full.url, valkey, "--dry-run", "--json").json["queues"]
    assert (said["batches_present"], said["jobs_present"]) == (said["batches"], said["jobs"])
    [said] = full("storage", "copy", full.url, valkey, "--json").json["queues"]
    assert (said["differing"], said["faults"]) == ([], [])
    assert contents(valkey) == before


def test_a_dry_run_writes_nothing(full: Command, other: str) -> None:
    """A dry run says what there is to copy, and writes nothing."""
    said = full("storage", "copy", full.url, other, "--dry-run", "--json")
    assert (said.code, said.json["queues"][0]["jobs"]) == (0, 13)
    with open_storage(other, queue="merges") as store:
        assert store.list_queues() == []


def test_a_dry_run_makes_no_store(full: Command, moto_server: DynamoEndpoint) -> None:
    """A dry run makes neither a file nor a table, and says what would be copied into the file, or that no table is."""
    table = f"none-{getpid()}"
    before = contents(full.url)
    [said] = full("storage", "copy", full.url, "sqlite:///new.db", "--dry-run", "--json").json["queues"]
    assert (said["batches"], said["batches_present"], said["jobs_present"]) == (11, 0, 0)
    assert not (full.folder / "new.db").exists()
    told = full("storage", "copy", full.url, moto_server.url(table, transact="true", create="true"), "--dry-run")
    assert (told.code, "batchstate storage init" in told.err) == (3, True)
    assert table not in moto_server.client().list_tables()["TableNames"]
    assert contents(full.url) == before


def test_broken_off_it_is_completed_by_copying_again(full: Command, other: str) -> None:
    """Wherever a copy was broken off, again and again, copying once more completes it."""
    for step in ("put_associations", "create_batches", "put_records", "restore_jobs", "set_ceiling"):
        with (
            open_storage(full.url, queue="merges") as source,
            open_storage(other, queue="merges") as target,
            pytest.raises(Crash),
        ):
            copy_queue(source, FaultStore(target, crash_before(1, on=[step])))
    assert full("storage", "copy", full.url, other).code == 0
    assert contents(other) == contents(full.url)


def test_a_target_that_keeps_no_jobs_is_refused(full: Command, dynamodb: str) -> None:
    """Jobs are not left behind in silence where the target's backend keeps none: how it would is told."""
    said = full("storage", "copy", full.url, dynamodb.replace("transact=true", "transact=false"))
    assert (said.code, "transact=true" in said.err) == (1, True)


def test_a_source_at_work_is_refused(full: Command, valkey: str) -> None:
    """A source that is not paused, or has claims in flight, is refused with the command to run."""
    with open_queue("merges", full.url) as queue:
        queue.resume()
    said = full("storage", "copy", full.url, valkey)
    assert (said.code, "batchstate pause --queue merges" in said.err) == (1, True)
    with open_queue("merges", full.url) as queue:
        claim = queue.claim(2)
        assert claim is not None
        queue.pause(reason="moving")
        said = full("storage", "copy", full.url, valkey)
        assert (said.code, "1 claims in flight" in said.err) == (1, True)
        claim.release()
    with open_storage(valkey, queue="merges") as store:
        assert store.list_queues() == []
    assert full("storage", "copy", full.url, valkey).code == 0


def test_others_in_the_target_are_refused(full: Command, valkey: str) -> None:
    """Where the target has another batch of an ID, or jobs of its own, nothing is written."""
    with open_queue("merges", valkey, lifecycle=FLOW) as queue:
        queue.create("batch-7", requests=["another"])
        said = full("storage", "copy", full.url, valkey)
        assert (said.code, "another batch 'batch-7'" in said.err) == (1, True)
        assert [batch.id for batch in queue.iter_by_states(["queued", "testing"])] == ["batch-7"]
        assert counted(queue) == 0
    with open_queue("merges", other := f"{valkey}b") as queue:
        queue.add("mine")
        said = full("storage", "copy", full.url, other)
        assert (said.code, "1 jobs of its own" in said.err) == (1, True)
        assert counted(queue) == 1


def counted(queue: BatchQueue) -> int:
    """Answer how many jobs a queue has."""
    counts = queue.counts()
    return counts.waiting + counts.scheduled + counts.dead


def test_passwords_are_not_printed(full: Command) -> None:
    """A URL's password is in no output, also when its server cannot be reached."""
    said = full("storage", "copy", full.url, "redis://me:secret@localhost:1/0?patience=0.1")
    assert said.code != 0
    assert "secret" not in said.out + said.err
