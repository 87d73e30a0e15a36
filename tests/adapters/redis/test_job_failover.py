"""Claims held across failovers: on a cluster, behind sentinels, and by workers that are killed meanwhile."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from redis.crc import key_slot

from batchstate.claims.methods import JobSpec
from batchstate.queue import open_queue
from batchstate.urls import open_storage
from batchstate_redis import RedisStorage
from batchstate_redis.keys import DEFAULT_PREFIX, Keys
from tests.adapters.redis.jobs_given import added, all_of, check_agreement, taken
from tests.processes.crowd import Crowd, killed_again_and_again, none_twice_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from batchstate_redis.clients import Client
    from tests.servers.cluster import ClusterEndpoint, ValkeyCluster
    from tests.servers.redis_servers import RedisServer
    from tests.servers.sentinel import RedisSentinel

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def crowd_of_cluster(our_valkey_cluster: ValkeyCluster, tmp_path: Path) -> Iterator[Crowd]:
    """Gather worker processes on the cluster."""
    crowd = Crowd(f"{our_valkey_cluster.url}?patience=60s", f"crowd-{uuid4().hex}", tmp_path)
    yield crowd
    crowd.dismiss()


def test_queues_of_jobs_live_on_every_primary(valkey_cluster: ClusterEndpoint, prefix: str) -> None:
    """Queues spread over the primaries, and each works where it is, also when that primary alone lost its scripts."""
    with valkey_cluster.client() as client:
        stores = [RedisStorage(client, f"q-{number}", prefix=prefix) for number in range(12)]
        for store in stores:
            added(store, "abc")
        for primary in client.get_primaries():
            client.get_redis_connection(primary).script_flush()
            for store in stores:
                claim = taken(store, 1)
                assert store.extend_claim(claim.batch.id, 1_000).held == 1
                assert store.settle_jobs(claim.batch.id, all_of(claim), keep_done=0).finished
        for store in stores:
            assert store.count_jobs().groups == ()
            check_agreement(client, prefix, store.queue)


def test_a_claim_is_held_across_a_failover_of_a_cluster(breakable_cluster: ValkeyCluster, prefix: str) -> None:
    """When the queue's primary dies, its claims are extended and settled with the replica, once each."""
    with open_storage(f"{breakable_cluster.url}?prefix={prefix}&patience=60s", queue="q") as store:
        assert isinstance(store, RedisStorage)
        client = store._runner.client
        added(store, [f"{number:02}" for number in range(60)])
        claim = taken(store, 50)
        key = Keys(prefix, "q").jobs.decode()
        with breakable_cluster.primary_of(key).client() as direct:
            assert direct.wait(1, 10_000) == 1
        breakable_cluster.wait_until_whole()
        breakable_cluster.kill_primary_of(key)

        assert store.extend_claim(claim.batch.id, 900_000).held == 50
        assert store.get_claims([claim.batch.id])[claim.batch.id].jobs[0].id == "00"
        settled = store.settle_jobs(claim.batch.id, all_of(claim), keep_done=0)

        assert (set(settled.outcomes), settled.finished) == ({"completed"}, True)
        assert len(taken(store).jobs) == 10
        check_agreement(client, prefix)


def test_a_claim_is_held_across_a_failover_behind_sentinels(breakable_sentinel: RedisSentinel, prefix: str) -> None:
    """When the primary dies, claims are extended and settled with the server that the sentinels name."""
    with open_storage(f"{breakable_sentinel.url}?prefix={prefix}&patience=60s", queue="q") as store:
        assert isinstance(store, RedisStorage)
        added(store, "abc")
        claim = taken(store, 2)
        with breakable_sentinel.primary().client() as direct:
            assert direct.wait(1, 10_000) == 1
        breakable_sentinel.wait_until_whole()
        breakable_sentinel.primary().kill()

        assert store.extend_claim(claim.batch.id, 900_000).held == 2
        assert store.settle_jobs(claim.batch.id, all_of(claim, "retry"), keep_done=0).outcomes == ("retried",) * 2
        assert [job.id for job in taken(store).jobs] == ["c"]


def test_workers_on_a_cluster_are_killed_again_and_again(
    crowd_of_cluster: Crowd, our_valkey_cluster: ValkeyCluster
) -> None:
    """Workers on a cluster that are killed again and again leave every job done or dead, and what is stored agrees."""
    killed_again_and_again(crowd_of_cluster, kills=6, jobs=120)
    with our_valkey_cluster.client() as client:
        check_agreement(client, DEFAULT_PREFIX, crowd_of_cluster.name)


def test_workers_are_killed_and_the_primary_too(crowd_of_cluster: Crowd, breakable_cluster: ValkeyCluster) -> None:
    """With workers killed and the queue's primary failing over among them, no job is lost, and none is done twice.

    The workers stand still while the replica catches up: what an acknowledged write is worth beyond that is a matter
    of the server's replication.
    """
    crowd = crowd_of_cluster
    names = crowd.add(150)
    workers = [crowd.hire() for _ in range(3)]
    killed: set[int] = set()
    key = Keys(DEFAULT_PREFIX, crowd.name).jobs.decode()
    for turn in range(4):
        time.sleep(random.uniform(0.4, 0.8))
        if turn == 1:
            for worker in workers:
                os.kill(worker.pid, signal.SIGSTOP)
            with breakable_cluster.primary_of(key).client() as direct:
                direct.set(key.replace("queue", "sign"), 1)
                assert direct.wait(1, 10_000) == 1
            breakable_cluster.wait_until_whole()
            breakable_cluster.kill_primary_of(key)
            for worker in workers:
                os.kill(worker.pid, signal.SIGCONT)
        victim = workers.pop(0)
        victim.kill()
        victim.wait()
        killed.add(victim.pid)
        workers.append(crowd.hire())
    crowd.wait()

    with crowd.queue() as q:
        counts = q.counts()
        assert (counts.waiting, counts.active, counts.scheduled, counts.claims) == (0, 0, 0, 0)
        dead = {job.id for job in q.jobs("dead")}
        for name in names:
            outcomes = [attempt.outcome for attempt in q.attempts(name)]
            assert outcomes.count("completed") == (0 if name in dead else 1), (name, outcomes)
        store = q.store
        assert isinstance(store, RedisStorage)
        client: Client = store._runner.client
        check_agreement(client, DEFAULT_PREFIX, crowd.name)
    none_twice_at_once(crowd.lines("held", "done"), killed)


def test_a_slot_that_moves_keeps_its_claims(breakable_cluster: ValkeyCluster) -> None:
    """While a cluster moves a queue's slot key by key, calls wait or are done whole, and the claims go along."""
    name = f"moving-{uuid4().hex}"
    url = f"{breakable_cluster.url}?patience=60s"
    with open_queue(name, url) as q:
        q.add_many([JobSpec(f"job-{number}", group=f"g{number % 3}") for number in range(60)])
        claim = q.claim(10)
        assert claim is not None
        keys = Keys(DEFAULT_PREFIX, name)
        store = q.store
        assert isinstance(store, RedisStorage)
        with _half_moved(breakable_cluster, keys) as finish:
            impatient = RedisStorage(store._runner.client, name, patience=0.2)
            for call in (
                lambda: impatient.extend_claim(claim.id, 1_000),
                lambda: impatient.settle_jobs(claim.id, [], keep_done=0),
                lambda: taken(impatient),
            ):
                with pytest.raises(Exception, match=r"on its way|of no use now"):
                    call()
            finish()
        assert claim.extend("10m").held == 10
        claim.release()
        again = q.claim(50)
        assert again is not None
        check_agreement(store._runner.client, DEFAULT_PREFIX, name)


@contextmanager
def _half_moved(cluster: ValkeyCluster, keys: Keys) -> Iterator[Callable[[], None]]:
    """Move every other key of a queue's slot to another primary, and answer what moves the rest."""
    port = cluster.primary_of(keys.jobs.decode()).port
    source = next(node for node in cluster.nodes if node.port == port)
    target = next(node for node in cluster.nodes if _is_primary(node) and node is not source)
    slot = key_slot(keys.jobs)
    names = [str(node.tell("MYID")) for node in (source, target)]
    target.tell("SETSLOT", slot, "IMPORTING", names[0])
    source.tell("SETSLOT", slot, "MIGRATING", names[1])
    with source.client() as direct:

        def migrate(found: list[bytes]) -> None:
            direct.execute_command("MIGRATE", target.host, target.port, "", 0, 5_000, "KEYS", *found)

        migrate(sorted(direct.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10_000))[::2])

        def finish() -> None:
            migrate(direct.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10_000))
            for node in (target, source, *cluster.nodes):
                if _is_primary(node):
                    node.tell("SETSLOT", slot, "NODE", names[1])

        yield finish


def _is_primary(node: RedisServer) -> bool:
    with node.client(decode_responses=True) as client:
        return bool(client.info("replication")["role"] == "master")
