"""The scripts on jobs: their heads, their keys, what they store."""

from __future__ import annotations

import random
import re
import time
from importlib import resources
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from redis.crc import key_slot

from batchstate import BatchQueue, Done, JobSpec, Lifecycle
from batchstate.errors import CorruptRowError, UnsupportedFormatError
from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate.jobs import Job
from batchstate.testing import ManualClock
from batchstate_memory import MemoryStorage
from batchstate_redis import RedisStorage
from batchstate_redis.job_scripts import job_script
from batchstate_redis.keys import Keys
from tests.adapters.redis.jobs_given import STEPS, added, check_agreement, jobs_in, taken

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from redis import Redis

    from tests.servers.redis_servers import RedisEndpoint

    Verdict: TypeAlias = Literal["complete", "retry", "delay", "dead", "release"]

LUA = resources.files("batchstate_redis").joinpath("lua", "jobs")
NAMES = sorted(path.name.removesuffix(".lua") for path in LUA.iterdir() if path.name.endswith(".lua"))
SHARED = sorted(path.name for path in LUA.joinpath("shared").iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_every_script_says_what_it_is_told_and_answers(name: str) -> None:
    """The head of each script says what it does, what it shares, then its keys, its arguments and its answer."""
    head = LUA.joinpath(f"{name}.lua").read_text().split("\nlocal ")[0] + "\n"
    parts = [head.index(f"\n-- {part} ") for part in ("uses  ", "KEYS  ", "ARGV  ", "answer")]
    assert parts == sorted(parts)
    assert head.startswith("-- ")


@pytest.mark.parametrize("name", NAMES)
def test_no_script_reads_the_users_json(name: str) -> None:
    """No script decodes JSON: that would change large numbers and empty lists."""
    assert b"cjson" not in job_script(name).text


@pytest.mark.parametrize("name", NAMES)
def test_shared_pieces_stand_where_they_are_named(name: str) -> None:
    """A script is its own text, and before it, or where a block names them, the pieces it needs, whole and in order."""
    texts = _texts(name)
    rest = job_script(name).text.decode()
    assert rest.startswith("-- What every script on jobs begins with")
    for parts, own in texts:
        before, found, rest = rest.partition(own)
        assert found
        pieces = before.strip("\n").split("\n\n")
        shared = [
            piece for part in parts for piece in LUA.joinpath("shared", f"{part}.lua").read_text().strip().split("\n\n")
        ]
        assert pieces == [piece for piece in shared if piece in pieces]
    assert rest == ""
    assert len(texts) == {"claim_jobs": 3, "settle_jobs": 2}.get(name, 1)


def test_pieces_that_a_script_does_not_need_are_left_out() -> None:
    """Reading the clock takes no more than the clock, extending looks at no group, and no piece is needed by nobody."""
    assert len(job_script("read_clock").text) < 2_200
    assert b"function refresh" not in job_script("extend_claim").text
    everything = b"".join(job_script(name).text for name in NAMES)
    for part in SHARED:
        for piece in LUA.joinpath("shared", part).read_bytes().strip().split(b"\n\n"):
            assert piece in everything


def test_every_shared_part_is_used() -> None:
    """No shared part stands about unused."""
    used = {f"{part}.lua" for name in NAMES for parts, _ in _texts(name) for part in parts}
    assert used == set(SHARED)


def _texts(name: str) -> list[tuple[list[str], str]]:
    """Answer the script's own text, cut where shared pieces are put, and the parts that these are of."""
    own = LUA.joinpath(f"{name}.lua").read_text()
    head, *blocks = re.finditer(r"^ *-- uses    (.+)\n", own, re.MULTILINE)
    cuts = [0, *[block.end() for block in blocks], len(own)]
    parts = [uses[1].split(", ") for uses in (head, *blocks)]
    return [(part, own[first:last]) for part, first, last in zip(parts, cuts, cuts[1:], strict=False)]


def test_all_keys_are_in_the_queues_slot_and_none_expires(redis7_server: RedisEndpoint, prefix: str) -> None:
    """Whatever a script on jobs touches stands under the queue's own braces, and nothing has an expiry."""
    chance = random.Random(23)
    alphabet = "ab{}%:*?[]\\é日😀.~/-"
    with redis7_server.client() as client, redis7_server.client() as watcher, watcher.monitor() as monitor:
        for name in NAMES:
            client.script_load(job_script(name).text)
        for step in STEPS.values():
            queue = "".join(chance.choices(alphabet, k=9))
            store = RedisStorage(client, queue, prefix=f"{prefix}-{uuid4().hex}")
            step(store)()
            jobs_in(store)
        client.echo("the end")
        home: set[int] = set()
        touched = 0
        for line in monitor.listen():
            command = re.findall(r"\S+", line["command"])
            if command[0] == "ECHO":
                break
            if command[0] == "EVALSHA" and line["client_type"] != "lua" and int(command[2]) > 0:
                home = {key_slot(key.encode()) for key in _keys(command)}
                assert len(home) == 1
            elif line["client_type"] == "lua" and command[0] not in ("TIME", "PUBLISH", "PUBSUB", "INFO"):
                assert key_slot(command[1].encode()) in home, command
                touched += 1
        assert touched > 500
        keys = list(client.scan_iter(f"{prefix}*", count=5_000))
        assert len(keys) > 50
        assert {client.ttl(key) for key in keys} == {-1}


def _keys(command: list[str]) -> list[str]:
    return command[3 : 3 + int(command[2])]


def test_a_slot_on_its_way_is_told_before_anything_is_written() -> None:
    """Every script names a key that never exists, by which a cluster tells that the slot is not all there."""
    keys = Keys("p", "q")
    assert keys.absent != keys.jobs
    for name in NAMES:
        assert keys.absent.rpartition(b":")[2].decode() not in LUA.joinpath(f"{name}.lua").read_text()


def test_the_servers_clock_counts(store: RedisStorage, client: Redis) -> None:
    """Without a clock of its own the storage goes by the server's, whatever this machine's says."""
    seconds, microseconds = client.time()
    assert abs(store.now() - (seconds * 1000 + microseconds // 1000)) < 5_000
    added(store, "a")
    claim = taken(store, lease=1)
    time.sleep(0.01)
    assert store.sweep_jobs(10, max_stalls=1).returned == ("a",)
    assert claim.expires_at <= store.now()


def test_times_are_whole_numbers_however_large(store: RedisStorage, client: Redis, prefix: str) -> None:
    """Leases of a thousand years and counters beyond fourteen digits are stored digit by digit."""
    clock = ManualClock(1_700_000_000_123)
    store = RedisStorage(client, "q", prefix=prefix, clock=clock)
    client.hset(Keys(prefix, "q").jobs.decode(), "added", 2**52)
    added(store, "ab")
    claim = taken(store, 1, lease=2**45 + 1)
    assert claim.expires_at == 1_700_000_000_123 + 2**45 + 1
    assert claim.jobs[0].order == 2**52 + 1
    store.settle_jobs(claim.batch.id, [Settling("a", "delay", "", 2**45 + 7)], keep_done=0)
    [job] = store.list_jobs("scheduled").items
    assert isinstance(job, Job)
    assert (job.due_at, job.order) == (1_700_000_000_123 + 2**45 + 7, 2**52 + 1)


@pytest.mark.parametrize("moves", [0, 5, 6, 7, 8, 17, 18, 19, 20, 40])
def test_the_end_of_a_claim_is_written_as_any_move_is(store: RedisStorage, moves: int) -> None:
    """However often its batch moved before, its end keeps as many moves and marks as Python keeps, names quoted."""
    here, there = 'a"b', 'c\\"d'
    moves_of_flow = [(here, there), (there, here), (here, "end"), (there, "end")]
    flow = Lifecycle([here, there, "end"], moves_of_flow, settled="end", abandoned="end")
    ends: list[tuple[object, ...]] = []
    for queue in (BatchQueue(store, flow), BatchQueue(MemoryStorage("q"), flow)):
        queue.add_many([JobSpec(name) for name in ('j"1', "j\\2", "é")])
        claim = queue.claim(3, state=here)
        assert claim is not None
        batch = claim.batch
        for number in range(moves):
            batch = queue.transition(batch, here if number % 2 else there, why=f"{number}")
        claim.settle({job.id: Done() for job in claim})
        end = queue.get(claim.id)
        told = [(move.source, move.to, move.version, move.why) for move in end.history]
        ends.append((end.state, end.version, end.request_ids, told, end.marks.count(":")))
    assert ends[0] == ends[1]
    assert (ends[0][0], ends[0][1]) == ("end", moves + 2)


def test_a_job_whose_head_cannot_be_read_is_put_aside(store: RedisStorage, client: Redis, prefix: str) -> None:
    """A job that somebody spoilt is dead, where it is seen and can be removed, and those behind it are served."""
    added(store, "abc")
    store.add_jobs([NewJob("d", "1", delay=1)])
    heads = Keys(prefix, "q").job_part("jobs").decode()
    client.hset(heads, "a", "1\tw\tnonsense")
    client.hset(heads, "d", "")
    time.sleep(0.01)

    assert [job.id for job in taken(store).jobs] == ["b", "c"]

    dead = [job for job in store.list_jobs("dead").items if isinstance(job, Job)]
    assert [(job.id, "nonsense" in job.error) for job in dead] == [("a", True), ("d", False)]
    check_agreement(client, prefix)
    assert store.remove_jobs(["a", "d"]) == [None, None]
    check_agreement(client, prefix)


def test_a_job_whose_payload_cannot_be_read_is_put_aside(store: RedisStorage, client: Redis, prefix: str) -> None:
    """A job whose payload is no JSON is dead, and costs its neighbours in the claim nothing."""
    added(store, "abc")
    client.hset(Keys(prefix, "q").job_part("jobs").decode(), "\tb", b"\xff{")

    claim = taken(store)

    assert [job.id for job in claim.jobs] == ["a", "c"]
    [dead] = store.list_jobs("dead").items
    assert isinstance(dead, CorruptRowError)
    assert dead.key == "b"
    check_agreement(client, prefix)
    assert store.remove_jobs(["b"]) == [None]
    assert store.settle_jobs(claim.batch.id, [Settling(n, "complete") for n in "ac"], keep_done=0).finished


def test_jobs_of_a_newer_program_are_left_to_it(store: RedisStorage, client: Redis, prefix: str) -> None:
    """Where a newer program stores jobs in another way, every call says so and changes nothing."""
    added(store, "a")
    client.hset(Keys(prefix, "q").jobs.decode(), "format", 2)
    before = client.hgetall(Keys(prefix, "q").job_part("jobs").decode())

    with pytest.raises(UnsupportedFormatError, match="format 2"):
        store.add_jobs([NewJob("b", "1")])
    with pytest.raises(UnsupportedFormatError, match="upgrade batchstate"):
        taken(store)
    assert client.hgetall(Keys(prefix, "q").job_part("jobs").decode()) == before


GROUPS = ("", "g", "h", "i")
NUMBERS = [f"j-{number}" for number in range(40)]


class Chances:
    """Calls at random on one queue."""

    def __init__(self, store: RedisStorage, clock: ManualClock, seed: int) -> None:
        self.chance = random.Random(seed)
        self._store = store
        self._clock = clock
        self._claims = ["none"]

    def add(self) -> None:
        """Add some, or try to."""
        delays = [0, 0, 90]
        self._store.add_jobs(
            [
                NewJob(name, "1", self.chance.choice(GROUPS), delay=self.chance.choice(delays))
                for name in self.chance.sample(NUMBERS, 6)
            ]
        )

    def claim(self) -> None:
        """Claim, by turn, by name or across groups."""
        self._claims.append(uuid4().hex)
        group = self.chance.choice([None, None, *GROUPS])
        across = group is None and self.chance.random() < 0.3
        limit = self.chance.randint(1, 9)
        self._store.claim_jobs(Claiming(self._claims[-1], limit, 100, "m", group=group, across_groups=across))

    def settle(self) -> None:
        """Settle some of a late claim's jobs, and some that are not its own."""
        verdicts: list[Verdict] = ["complete", "retry", "delay", "dead", "release"]
        settlings = [
            Settling(name, self.chance.choice(verdicts), "no", self.chance.choice([0, 80]))
            for name in self.chance.sample(NUMBERS, 15)
        ]
        self._store.settle_jobs(self.chance.choice(self._claims[-4:]), settlings, keep_done=self.chance.choice([0, 50]))

    def sweep(self) -> None:
        """Let time pass, and sweep."""
        self._clock.advance(f"{self.chance.randint(1, 120)}ms")
        self._store.sweep_jobs(self.chance.randint(1, 9), max_stalls=2)

    def extend(self) -> None:
        """Extend the last claim, and one job of it."""
        self._store.extend_claim(self._claims[-1], self.chance.choice([10, 150]))
        self._store.extend_job(self._claims[-1], self.chance.choice(NUMBERS), 300)

    def change(self) -> None:
        """Revive, remove and move."""
        self._store.revive_jobs(self.chance.sample(NUMBERS, 9))
        self._store.remove_jobs(self.chance.sample(NUMBERS, 2), force=self.chance.random() < 0.5)
        self._store.move_job(self.chance.choice(NUMBERS), self.chance.choice(GROUPS))

    def limit(self) -> None:
        """Pause, resume, set ceilings."""
        self._store.set_ceiling(self.chance.choice([None, *GROUPS]), self.chance.choice([None, 1, 3]))
        self._store.set_paused(self.chance.choice(GROUPS), self.chance.choice([None, None, "why"]))

    def purge(self) -> None:
        """Forget."""
        self._store.purge_jobs(3, keep_dead=self.chance.choice([None, 200]))


@pytest.mark.parametrize("seed", range(4))
def test_all_that_is_stored_agrees(client: Redis, prefix: str, seed: int) -> None:
    """After any calls in any order each job is in one place, each claim holds what it holds, the ring is right."""
    clock = ManualClock()
    chances = Chances(RedisStorage(client, "q", prefix=prefix, clock=clock), clock, seed)
    calls = [chances.add, chances.claim, chances.settle] * 2
    calls += [chances.sweep, chances.extend, chances.change, chances.limit, chances.purge]
    for _ in range(250):
        chances.chance.choice(calls)()
        check_agreement(client, prefix)
