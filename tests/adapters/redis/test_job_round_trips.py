"""How often a call on jobs goes to the server and back, counted on the wire, and how much it writes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.job_calls import NewJob, Settling
from batchstate.queue import BatchQueue
from tests.adapters.redis.jobs_given import STEPS, added, all_of, taken

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from redis import Redis

    from batchstate_redis import RedisStorage
    from tests.servers.proxy import DroppingProxy

    Count: TypeAlias = Callable[[Callable[[], object]], int]


@pytest.fixture
def counted(far_store: RedisStorage, proxy: DroppingProxy) -> Count:
    """Count the round trips of a call, once the queue is known."""
    added(far_store, ["first"])
    taken(far_store)

    def count(call: Callable[[], object]) -> int:
        proxy.forget()
        call()
        return proxy.round_trips

    return count


@pytest.fixture(autouse=True)
def _warm(store: RedisStorage) -> None:
    """Have all scripts in the server's cache."""
    for number, step in enumerate(STEPS.values()):
        queue = type(store)(store._runner.client, f"warm-{number}", prefix=store._prefix)
        step(queue)()
        queue.get_claims(["claim"])
        queue.list_jobs("waiting")
        queue.count_claimable(5)


@pytest.mark.parametrize("step", STEPS)
def test_every_step_is_one(store: RedisStorage, far_store: RedisStorage, counted: Count, step: str) -> None:
    """Every changing call on jobs is one round trip."""
    call = STEPS[step](type(far_store)(far_store._runner.client, "other", prefix=store._prefix))
    assert counted(call) == 1


def test_the_first_addition_makes_the_queue_known(store: RedisStorage, far_store: RedisStorage, counted: Count) -> None:
    """The first addition of a storage looks at the server and makes the queue known, with a round trip for each."""
    fresh = type(far_store)(far_store._runner.client, "fresh", prefix=store._prefix)
    assert counted(lambda: added(fresh, ["a"])) == 3
    assert counted(lambda: added(fresh, ["b"])) == 1


def test_fifty_are_one(far_store: RedisStorage, counted: Count) -> None:
    """Adding fifty is one round trip, claiming them with batch, record, associations and lease one, settling one."""
    names = [f"job-{number}" for number in range(50)]
    assert counted(lambda: added(far_store, names)) == 1
    claims = []
    assert counted(lambda: claims.append(taken(far_store, 50))) == 1
    [claim] = claims
    assert [job.id for job in claim.jobs] == names
    assert counted(lambda: far_store.extend_claim(claim.batch.id, 1_000)) == 1
    assert counted(lambda: far_store.extend_job(claim.batch.id, "job-7", 1_000)) == 1
    assert counted(lambda: far_store.get_claims([claim.batch.id])) == 1
    assert counted(lambda: far_store.settle_jobs(claim.batch.id, all_of(claim), keep_done=1_000)) == 1


def test_a_queues_own_calls_add_none(far_store: RedisStorage, counted: Count) -> None:
    """Through the front door a claim of fifty that is worked and settled is two round trips in all."""
    q = BatchQueue(far_store)
    added(far_store, [f"job-{number}" for number in range(50)])

    def work() -> None:
        claim = q.claim(50)
        assert claim is not None
        with claim:
            for job in claim:
                with claim.attempt(job):
                    pass

    assert counted(work) == 2


def test_looking_is_one_each(far_store: RedisStorage, counted: Count) -> None:
    """Counting is one round trip, counting what can be claimed one, loading five hundred jobs one, listing them two."""
    names = [f"job-{number}" for number in range(500)]
    added(far_store, names)
    assert counted(far_store.count_jobs) == 1
    assert counted(lambda: far_store.count_claimable(50)) == 1
    assert counted(lambda: far_store.get_jobs(names)) == 1
    assert counted(lambda: far_store.list_jobs("waiting")) == 2


def test_a_whole_claim_is_extended_by_one_write(store: RedisStorage, client: Redis) -> None:
    """Extending a claim of five hundred jobs is a single write."""
    added(store, [f"job-{number}" for number in range(500)])
    claim = taken(store, 500)
    assert len(claim.jobs) == 500
    before = _calls(client)

    assert store.extend_claim(claim.batch.id, 900_000).held == 500

    after = _calls(client)
    changed = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
    assert {name for name in changed if name not in READING} == {"hset"}
    assert changed["hset"] == 1


READING = {"evalsha", "time", "hget", "hmget", "zscore", "info"}


def _calls(client: Redis) -> dict[str, int]:
    found = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): entry["calls"] for name, entry in found.items()}


def test_thousands_are_some(far_store: RedisStorage, counted: Count) -> None:
    """Thousands are added, settled, revived, removed and swept in chunks, none of which takes long."""
    jobs = [NewJob(f"job-{number}", "1") for number in range(2_000)]
    assert 5 <= counted(lambda: far_store.add_jobs(jobs)) <= 12
    claim = taken(far_store, 2_000)
    assert len(claim.jobs) == far_store.max_claim == 500
    settlings = [Settling(job.id, "complete") for job in claim.jobs]
    assert counted(lambda: far_store.settle_jobs(claim.batch.id, settlings, keep_done=0)) == 2
    dead = taken(far_store, 500)
    names = [job.id for job in dead.jobs]
    assert counted(lambda: far_store.settle_jobs(dead.batch.id, all_of(dead, "dead"), keep_done=0)) == 2
    assert counted(lambda: far_store.revive_jobs(names)) == 2
    assert counted(lambda: far_store.remove_jobs(names)) == 2
    assert len(taken(far_store, 500, lease=1).jobs) == 500
    while not far_store.count_jobs().lapsed:
        pass
    assert counted(lambda: far_store.sweep_jobs(500, max_stalls=3)) == 2
