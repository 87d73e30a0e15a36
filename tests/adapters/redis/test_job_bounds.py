"""How much one script on jobs does at most, whatever is asked of it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from batchstate.job_calls import Claiming, NewJob
from batchstate.testing import ManualClock
from batchstate_redis import RedisStorage
from tests.adapters.redis.jobs_given import added, check_agreement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

    from batchstate.jobs import Job
    from tests.servers.redis_servers import RedisEndpoint

MOST = 10_000
"""How many arguments the commands of one script may have in all: a claim of five hundred jobs has the most."""

LONGEST = 150_000
"""Microseconds that a script may take on a machine that is busy with other things; unbounded ones take seconds."""


def test_no_script_does_much(redis7_server: RedisEndpoint, prefix: str) -> None:
    """With 100,000 due at once, 20,000 held and lapsed and thousands of groups, every script does a bounded part."""
    clock = ManualClock()
    with redis7_server.client() as client, redis7_server.client() as watcher:
        store = RedisStorage(client, "q", prefix=prefix, clock=clock)
        client.config_set("slowlog-log-slower-than", LONGEST)
        client.config_set("slowlog-max-len", 1_000)
        client.slowlog_reset()
        store.add_jobs([NewJob(f"due-{number}", "1", "due", delay=1_000) for number in range(100_000)])
        store.add_jobs([NewJob(f"group-{number}", "1", f"g-{number}", delay=1_000) for number in range(3_000)])
        added(store, [f"held-{number}" for number in range(20_000)], group="held")

        with watched(client, watcher) as scripts:
            for _ in range(40):
                assert len(_claim(store, 5_000, group="held")) == 500
            assert _claim(store, 5_000, group="held") == ()
            clock.advance("1h")
            served = {str(job.group) for _ in range(20) for job in _claim(store, 1)}
            assert len(served) == 20
            assert store.count_claimable(50) > 0
            first = store.sweep_jobs(5_000, max_stalls=3)
            assert (len(first.returned), first.more) == (5_000, True)
            swept = store.sweep_jobs(20_000, max_stalls=3)
            assert (len(swept.returned), swept.more) == (15_000, False)
            assert 250 <= len(_claim(store, 5_000, group="due")) <= 500
            store.set_ceiling(None, 9)
            assert len(_claim(store, 5_000, across=True)) == 100
            counts = store.count_jobs()
            assert counts.waiting + counts.scheduled + counts.active == 123_000
            store.remove_jobs([f"due-{number}" for number in range(10_000)])

        assert len(scripts) > 150
        assert max(scripts) <= MOST
        slow = [(entry["command"][:80], entry["duration"]) for entry in client.slowlog_get(100)]
        assert [entry for entry in slow if b"EVAL" in entry[0] or b"eval" in entry[0]] == []


@contextmanager
def watched(client: Redis, watcher: Redis) -> Iterator[list[int]]:
    """Answer, once the block is left, of each script that ran meanwhile how many arguments its commands had in all."""
    scripts: list[int] = []
    watching: Any = watcher.connection_pool.get_connection()  # `monitor` would take lines apart
    watching.send_command("MONITOR")
    assert watching.read_response() == b"OK"
    yield scripts
    client.echo("the end")
    while b'"the end"' not in (line := watching.read_response()):
        if b" lua] " in line:
            scripts[-1] += line.count(b'" "')
        elif b'"EVALSHA"' in line:
            scripts.append(0)
    watching.disconnect()


def _claim(store: RedisStorage, limit: int, *, group: str | None = None, across: bool = False) -> tuple[Job, ...]:
    claimed = store.claim_jobs(Claiming(str(uuid4()), limit, 1_000, uuid4().hex, group=group, across_groups=across))
    return () if claimed is None else claimed.jobs


def test_more_groups_due_than_one_step_wakes(store: RedisStorage, client: Redis, prefix: str) -> None:
    """A claim finds the one group that can be served though hundreds that cannot fell due before it."""
    clock = ManualClock()
    store = RedisStorage(client, "q", prefix=prefix, clock=clock)
    for number in range(350):
        store.set_paused(f"g-{number:03}", "not now")
    store.add_jobs([NewJob(f"j-{number}", "1", f"g-{number:03}", delay=1_000 + number) for number in range(350)])
    store.add_jobs([NewJob("free", "1", "free", delay=5_000)])
    clock.advance("5s")

    assert store.count_claimable(9) == 1
    assert [job.id for job in _claim(store, 9)] == ["free"]
    assert _claim(store, 9) == ()


def test_a_default_ceiling_reaches_more_groups_than_one_step_looks_at(
    store: RedisStorage, client: Redis, prefix: str
) -> None:
    """A change of the default ceiling that concerns hundreds of groups is finished by the claims that follow."""
    for number in range(350):
        store.set_ceiling(None, 1)
        added(store, [f"{number}-a", f"{number}-b"], group=f"g-{number:03}")
    for _ in range(350):
        assert len(_claim(store, 9)) == 1
    assert _claim(store, 9) == ()

    store.set_ceiling(None, None)

    assert [len(_claim(store, 9)) for _ in range(351)] == [1] * 350 + [0]
    check_agreement(client, prefix)
