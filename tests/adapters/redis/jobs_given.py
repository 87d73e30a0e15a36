"""Jobs for the tests of the Redis adapter, every changing call, and a check that all that is stored agrees."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from batchstate.job_calls import Claimed, Claiming, NewJob, Settling
from batchstate.jobs import Job
from batchstate_redis.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from redis import Redis
    from redis.cluster import RedisCluster

    from batchstate_redis import RedisStorage

    Step: TypeAlias = Callable[[RedisStorage], Callable[[], object]]
    """Prepares a store, and answers the changing call and nothing but it."""

HOUR = 3_600_000
"""A delay that no test outlasts, on however busy a machine: the servers' own clock is at work here."""

PLACES = {"w": "waiting", "a": "active", "s": "scheduled", "d": "dead"}


def added(store: RedisStorage, names: Iterable[str], *, group: str = "", delay: int = 0) -> None:
    """Add jobs."""
    answers = store.add_jobs([NewJob(name, f'{{"of":"{name}"}}', group, delay=delay) for name in names])
    assert set(answers) == {"added"}


def taken(store: RedisStorage, limit: int = 100, *, claim: str | None = None, lease: int = 600_000) -> Claimed:
    """Claim, where something must be there to be claimed."""
    claimed = store.claim_jobs(Claiming(claim or str(uuid4()), limit, lease, uuid4().hex))
    assert claimed is not None
    return claimed


def all_of(claimed: Claimed, verdict: Any = "complete") -> list[Settling]:
    """Answer the settling of all jobs of a claim; those that come back do so in an hour."""
    return [Settling(job.id, verdict, "no", HOUR) for job in claimed.jobs]


def _held(store: RedisStorage) -> Claimed:
    added(store, "abcdefgh", group="g")
    return taken(store, 6, claim="claim")


def _add(store: RedisStorage) -> Callable[[], object]:
    added(store, "xy")
    return lambda: store.add_jobs([NewJob(name, "1", "g") for name in "ab"])


def _claim(store: RedisStorage) -> Callable[[], object]:
    added(store, "abc")
    return lambda: taken(store, 2, claim="claim")


def _extend(store: RedisStorage) -> Callable[[], object]:
    _held(store)
    return lambda: store.extend_claim("claim", 900_000)


def _extend_job(store: RedisStorage) -> Callable[[], object]:
    _held(store)
    return lambda: store.extend_job("claim", "b", 900_000)


def _settle(store: RedisStorage) -> Callable[[], object]:
    _held(store)
    verdicts = [
        Settling("a", "complete"),
        Settling("b", "retry", "no", 600_000),
        Settling("c", "retry", "no"),
        Settling("d", "delay", "", 600_000),
        Settling("e", "dead", "no"),
        Settling("f", "release"),
    ]
    return lambda: store.settle_jobs("claim", verdicts, keep_done=600_000)


def _sweep(store: RedisStorage) -> Callable[[], object]:
    added(store, "abc")
    taken(store, 3, claim="claim", lease=1)
    while not store.count_jobs().lapsed:
        pass
    return lambda: _swept(store)


def _swept(store: RedisStorage) -> None:
    assert store.sweep_jobs(100, max_stalls=1).returned == ("a", "b", "c")


def _revive(store: RedisStorage) -> Callable[[], object]:
    store.settle_jobs("claim", all_of(_held(store), "dead"), keep_done=0)
    return lambda: store.revive_jobs(["a", "b"])


def _remove(store: RedisStorage) -> Callable[[], object]:
    _held(store)
    return lambda: store.remove_jobs(["a", "h"], force=True)


def _move(store: RedisStorage) -> Callable[[], object]:
    added(store, "abc")
    return lambda: store.move_job("b", "g")


def _pause(store: RedisStorage) -> Callable[[], object]:
    added(store, "ab", group="g")
    return lambda: store.set_paused("g", "why")


def _ceiling(store: RedisStorage) -> Callable[[], object]:
    added(store, "ab", group="g")
    return lambda: store.set_ceiling("g", 1)


def _purge(store: RedisStorage) -> Callable[[], object]:
    store.settle_jobs("claim", all_of(_held(store), "dead"), keep_done=0)
    return lambda: store.purge_jobs(100, keep_dead=0)


def _hold(store: RedisStorage) -> Callable[[], object]:
    _held(store)
    return lambda: store.take_hold("claim", "token", 600_000)


def _extend_hold(store: RedisStorage) -> Callable[[], object]:
    _hold(store)()
    return lambda: store.extend_hold("claim", "token", 900_000)


def _release_hold(store: RedisStorage) -> Callable[[], object]:
    _hold(store)()
    return lambda: store.release_hold("claim", "token")


def _restore(store: RedisStorage) -> Callable[[], object]:
    added(store, ["a"])
    died = Job("dead", store.queue, place="dead", order=3, error="bad", dead_at=5)
    return lambda: store.restore_jobs([Job("b", store.queue, group="g", order=7), died])


STEPS: dict[str, Step] = {
    "add": _add,
    "restore": _restore,
    "claim": _claim,
    "extend": _extend,
    "extend a job": _extend_job,
    "settle": _settle,
    "sweep": _sweep,
    "revive": _revive,
    "remove": _remove,
    "move": _move,
    "pause": _pause,
    "set a ceiling": _ceiling,
    "purge": _purge,
    "hold": _hold,
    "extend a hold": _extend_hold,
    "release a hold": _release_hold,
}


def jobs_in(store: RedisStorage) -> dict[str, object]:
    """Answer all that can be seen of a queue's jobs, but for times, which differ from run to run."""
    jobs: list[tuple[object, ...]] = []
    for place in PLACES.values():
        for job in store.list_jobs(place).items:  # type: ignore[arg-type] # it is a place
            assert not isinstance(job, Exception)
            told = (job.id, job.place, job.order, job.group, job.deliveries, job.attempts, job.stalls, job.error)
            jobs.append((*told, job.claim))
    counts = store.count_jobs()
    claims = [row for row in store.get_batches(["claim"]).values() if not isinstance(row, Exception)]
    return {
        "jobs": jobs,
        "groups": [(g.group, g.waiting, g.active, g.scheduled, g.dead, g.ceiling, g.paused) for g in counts.groups],
        "claims": counts.claims,
        "batches": [(row.state, row.version, row.request_ids, len(row.history)) for row in claims],
        "outcomes": [store.list_associations(name) for name in "abcdefgh"],
    }


def check_agreement(client: Redis | RedisCluster, prefix: str, queue: str = "q") -> None:
    """Check that each job is in the place that its head says, that each claim holds what the heads say, and so on."""
    keys = Keys(prefix, queue)

    def part(name: str) -> str:
        return keys.job_part(name).decode()

    direct: Any = client
    jobs = direct.hgetall(part("jobs"))
    heads = {name.decode(): text.decode().split("\t") for name, text in jobs.items() if name[:1] != b"\t"}
    assert {name[1:].decode() for name in jobs if name[:1] == b"\t"} == set(heads)
    groups = {name.decode() for name in direct.zrange(part("groups"), 0, -1)}
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in heads}
    for group in groups | {head[3] for head in heads.values()}:
        for place in PLACES.values():
            for member, score in direct.zrange(part(f"{place}:{group}"), 0, -1, withscores=True):
                name = member.decode()
                if place == "scheduled":
                    assert int(name[:16]) == int(heads[name[16:]][8])
                    assert int(heads[name[16:]][7]) == score
                    name = name[16:]
                else:
                    assert int(heads[name][8]) == score
                found[name].append((place, group))
    for name, head in heads.items():
        assert found[name] == [(PLACES[head[1]], head[3])], name
        assert head[3] in groups
    scheduled = sum(head[1] == "s" for head in heads.values())
    assert int(direct.hget(part("queue"), "scheduled") or 0) == scheduled
    dead = {name for name, head in heads.items() if head[1] == "d"}
    assert {name.decode() for name in direct.zrange(part("dead"), 0, -1)} == dead
    assert {name.decode() for name in direct.zrange(part("died"), 0, -1)} == dead
    held = Counter(head[2] for head in heads.values() if head[1] == "a")
    stored = {name.decode(): text for name, text in direct.hgetall(part("claims")).items()}
    states = {name: int(text.split()[1]) for name, text in stored.items() if not name.startswith("\t")}
    assert states == dict(held)
    assert {name[1:] for name in stored if name.startswith("\t")} == set(states)
    assert {name.decode() for name in direct.zrange(part("leases"), 0, -1)} == set(states)
    _check_ring(direct, part, heads, groups)


def _check_ring(direct: Any, part: Callable[[str], str], heads: dict[str, list[str]], groups: set[str]) -> None:
    """Check that the ring has the groups that can be served by what waits, and no group that cannot be served."""
    ceilings = {name.decode(): int(text) for name, text in direct.hgetall(part("ceilings")).items()}
    pauses = {name.decode() for name in direct.hkeys(part("pauses"))}
    default = direct.hget(part("queue"), "ceiling")
    waiting = Counter(head[3] for head in heads.values() if head[1] == "w")
    due = Counter(head[3] for head in heads.values() if head[1] == "s")
    active = Counter(head[3] for head in heads.values() if head[1] == "a")
    ring = {name.decode() for name in direct.zrange(part("ring"), 0, -1)}
    for group in groups:
        ceiling = ceilings.get(group, int(default) if default else None)
        free = group not in pauses and (ceiling is None or active[group] < ceiling)
        if free and waiting[group]:
            assert group in ring
        if not free or not waiting[group] + due[group]:
            assert group not in ring
