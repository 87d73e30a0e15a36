"""Calls on jobs whose reply is lost, or that meet a server whose scripts are gone: each is applied once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from batchstate.job_calls import NewJob
from batchstate_redis import RedisStorage
from tests.adapters.redis.jobs_given import STEPS, added, all_of, check_agreement, jobs_in, taken

if TYPE_CHECKING:
    from tests.servers.proxy import DroppingProxy
    from tests.servers.redis_servers import RedisServer


@pytest.mark.parametrize("step", STEPS)
def test_a_lost_reply_applies_once(
    far_store: RedisStorage, store: RedisStorage, proxy: DroppingProxy, client: Redis, prefix: str, step: str
) -> None:
    """The reply to a call is lost, the adapter sends it again, and the store is as if it was sent once."""
    expected = RedisStorage(client, "q", prefix=f"{prefix}-expected")
    STEPS[step](expected)()

    call = STEPS[step](far_store)
    proxy.forget()
    proxy.drop_next_reply("EVALSHA")
    call()

    assert proxy.planned == 0
    assert jobs_in(store) == jobs_in(expected)
    check_agreement(client, prefix)


@pytest.mark.parametrize("step", STEPS)
def test_a_client_that_sends_again_by_itself_applies_once(
    proxy: DroppingProxy, store: RedisStorage, valkey_server: RedisServer, client: Redis, prefix: str, step: str
) -> None:
    """The client library sends a call again unseen by the adapter, and the store is as if it was sent once."""
    expected = RedisStorage(client, "q", prefix=f"{prefix}-expected")
    STEPS[step](expected)()

    with Redis.from_url(proxy.through(valkey_server.url), retry=Retry(NoBackoff(), 3)) as retrying:
        call = STEPS[step](RedisStorage(retrying, "q", prefix=prefix, patience=0.001))
        proxy.drop_next_reply("EVALSHA")
        call()

    assert proxy.planned == 0
    assert jobs_in(store) == jobs_in(expected)


@pytest.mark.parametrize("step", STEPS)
def test_a_flush_of_the_script_cache_costs_nothing(store: RedisStorage, client: Redis, prefix: str, step: str) -> None:
    """When the server has lost its scripts, every call is still applied, and once."""
    expected = RedisStorage(client, "q", prefix=f"{prefix}-expected")
    STEPS[step](expected)()

    call = STEPS[step](store)
    client.script_flush()
    call()

    assert jobs_in(store) == jobs_in(expected)
    check_agreement(client, prefix)


def test_a_claim_is_answered_though_its_reply_was_lost(far_store: RedisStorage, proxy: DroppingProxy) -> None:
    """A claim whose reply was lost comes with the jobs it took, and no other claim's are touched."""
    added(far_store, "abcd")
    first = taken(far_store, 1)
    proxy.drop_next_reply("EVALSHA")

    claimed = taken(far_store, 2)

    assert [(job.id, job.deliveries) for job in claimed.jobs] == [("b", 1), ("c", 1)]
    assert far_store.get_claims([claimed.batch.id]) == {claimed.batch.id: claimed}
    assert far_store.settle_jobs(first.batch.id, all_of(first), keep_done=0).outcomes == ("completed",)


def test_a_retry_is_charged_once(far_store: RedisStorage, proxy: DroppingProxy) -> None:
    """A retry whose reply was lost charges one attempt, and says that the claim has ended."""
    added(far_store, "a")
    claim = taken(far_store)
    proxy.drop_next_reply("EVALSHA")

    settled = far_store.settle_jobs(claim.batch.id, all_of(claim, "retry"), keep_done=0)

    assert (settled.outcomes, settled.finished) == (("retried",), True)
    [job] = far_store.get_jobs(["a"]).values()
    assert not isinstance(job, Exception)
    assert job.attempts == 1


def test_an_addition_that_is_sent_again_finds_the_job(far_store: RedisStorage, proxy: DroppingProxy) -> None:
    """An addition whose reply was lost is answered as a duplicate, and the job is there once."""
    added(far_store, "a")
    proxy.drop_next_reply("EVALSHA")

    assert far_store.add_jobs([NewJob("b", "1")]) == ["duplicate"]
    assert [job.id for job in taken(far_store).jobs] == ["a", "b"]


def test_an_outage_in_the_middle_of_many_is_told_job_by_job(
    far_store: RedisStorage, proxy: DroppingProxy, client: Redis, prefix: str
) -> None:
    """When the server goes away between two chunks, the jobs of the first are settled, and the others say why not."""
    added(far_store, [f"job-{number:03}" for number in range(400)])
    claim = taken(far_store, 400)
    impatient = RedisStorage(far_store._runner.client, "q", prefix=prefix, patience=0.1)
    original = impatient._jobs
    sent = 0

    def failing(name: str, *arguments: bytes | str | int) -> object:
        nonlocal sent
        sent += name == "settle_jobs"
        if sent == 2:
            proxy.refuse()
        return original(name, *arguments)

    impatient._jobs = failing  # type: ignore[assignment]
    settled = impatient.settle_jobs(claim.batch.id, all_of(claim), keep_done=0)
    proxy.accept()

    done = [outcome for outcome in settled.outcomes if outcome == "completed"]
    assert len(done) == 250
    assert all(isinstance(outcome, Exception) for outcome in settled.outcomes[250:])
    assert not settled.finished
    assert far_store.settle_jobs(claim.batch.id, all_of(claim), keep_done=0).finished
    check_agreement(client, prefix)
