"""The scripts: their heads, their cache, their keys."""

from __future__ import annotations

import random
import re
from importlib import resources
from typing import TYPE_CHECKING

import pytest
from redis.crc import key_slot

from batchstate.errors import InvalidNameError
from batchstate_redis import RedisStorage
from batchstate_redis.keys import Keys
from batchstate_redis.scripts import in_chunks, script
from tests.adapters.redis.given import made
from tests.adapters.redis.writes import WRITES, contents

if TYPE_CHECKING:
    from redis import Redis

    from tests.servers.redis_servers import RedisEndpoint

FOLDER = resources.files("batchstate_redis").joinpath("lua")
NAMES = sorted(path.name.removesuffix(".lua") for path in FOLDER.iterdir() if path.name.endswith(".lua"))


@pytest.mark.parametrize("name", NAMES)
def test_every_script_says_what_it_is_told_and_answers(name: str) -> None:
    """The head of each script says what it does, then its keys, its arguments and its answer."""
    head = script(name).text.decode().split("\n\n")[0] + "\n"
    parts = [head.index(f"\n-- {part} ") for part in ("KEYS  ", "ARGV  ", "answer")]
    assert parts == sorted(parts)
    assert head.startswith("-- ")


@pytest.mark.parametrize("name", NAMES)
def test_no_script_reads_the_users_json(name: str) -> None:
    """No script decodes JSON: that would change large numbers and empty lists."""
    assert b"cjson" not in script(name).text


@pytest.mark.parametrize("write", WRITES)
def test_a_flush_of_the_script_cache_costs_nothing(store: RedisStorage, client: Redis, prefix: str, write: str) -> None:
    """When the server has lost its scripts before every command, every write is still applied, and once."""
    expected = RedisStorage(client, "q", prefix=f"{prefix}-expected")
    WRITES[write](expected)()

    call = WRITES[write](store)
    client.script_flush()
    call()

    client.script_flush()
    assert contents(store) == contents(expected)


def test_all_keys_of_a_queue_are_in_one_slot() -> None:
    """Whatever the queue is called, a cluster keeps all its keys in one slot."""
    chance = random.Random(17)
    alphabet = "ab{}%:*?[]\\ é\u200b日😀.~/-"
    names = {"".join(chance.choices(alphabet, k=chance.randint(1, 12))) for _ in range(1_000)} | {"{}", "}{", "{", "}"}
    slots = set()
    for name in names:
        keys = Keys("batchstate", name)
        every = [keys.count, keys.retired]
        for inner in ("a", "{x}", "}", "}b{c}", name):
            every += [keys.batch(inner), keys.state(inner), keys.request(inner)]
        assert len({key_slot(key) for key in every}) == 1, name
        slots |= {key_slot(keys.count)}
    assert len(slots) > 500


def test_no_two_names_share_a_key() -> None:
    """Queues, states, batches and requests of any name have each their own key."""
    names = ["a", "b", "a:b", "a:b:c", "{a}", "a}", "}:b:a", "%7Ba%7D", "a%", "n", "r", "queues", " ", "A"]
    keys = [
        key
        for queue in names
        for made_by in [Keys("p", queue)]
        for key in [
            made_by.count,
            made_by.retired,
            *[make(name) for name in names for make in (made_by.batch, made_by.state, made_by.request)],
        ]
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("prefix", ["", "a{b", "a}b", "a\nb"])
def test_a_prefix_is_a_name_without_braces(prefix: str, client: Redis) -> None:
    """A prefix that would move the hash tag, or is no name, is refused."""
    with pytest.raises(InvalidNameError):
        RedisStorage(client, "q", prefix=prefix)


@pytest.mark.parametrize("write", WRITES)
def test_scripts_touch_declared_keys_alone(redis7_server: RedisEndpoint, prefix: str, write: str) -> None:
    """Every key that a script touches was declared to the server, which in a cluster then checks that it is there."""
    with redis7_server.client() as client, redis7_server.client() as watcher, watcher.monitor() as monitor:
        for name in NAMES:
            client.script_load(script(name).text)
        store = RedisStorage(client, "q", prefix=prefix)
        WRITES[write](store)()
        contents(store)
        client.echo("the end")
        declared: set[str] = set()
        touched = 0
        for line in monitor.listen():
            command = _words(line["command"])
            if command[0] == "ECHO":
                break
            if command[0] == "EVALSHA":
                declared = set(command[3 : 3 + int(command[2])])
            elif line["client_type"] == "lua" and command[0] not in ("INFO", "SCAN"):
                assert command[1] in declared, command
                touched += 1
    assert touched > 0


def _words(command: str) -> list[str]:
    """Read a line of MONITOR, whose keys have no spaces here."""
    return re.split(r" (?=\S)", command)


def test_no_key_expires(store: RedisStorage, client: Redis, prefix: str) -> None:
    """Nothing that batchstate stores has an expiry: a server that evicts what expires evicts nothing of it."""
    for write in WRITES.values():
        write(store)()
    made(store, "another")
    keys = list(client.scan_iter(f"{prefix}:*"))
    assert len(keys) >= 5
    assert {client.ttl(key) for key in keys} == {-1}


def test_chunks_are_bounded_and_whole() -> None:
    """Chunks keep the order and lose nothing; an item that is too much for one goes alone."""
    costs = [1, 1_999, 1, 5_000, 1, 1, 2_000]
    chunks = list(in_chunks(costs, lambda cost: cost))
    assert [cost for chunk in chunks for cost in chunk] == costs
    assert chunks == [[1, 1_999], [1], [5_000], [1, 1], [2_000]]
