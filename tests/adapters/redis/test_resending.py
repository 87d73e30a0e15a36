"""Commands that are sent again: a reply is lost, a connection is cut, and every write is applied once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from batchstate.creation import create_batch
from batchstate.errors import StorageUnavailableError
from batchstate.tidying import retire
from batchstate.transition import transition
from batchstate_redis import RedisStorage
from tests.adapters.redis.given import made, new
from tests.adapters.redis.writes import WRITES, contents

if TYPE_CHECKING:
    from tests.servers.proxy import DroppingProxy
    from tests.servers.redis_servers import RedisServer


@pytest.mark.parametrize("write", WRITES)
def test_a_lost_reply_applies_once(
    far_store: RedisStorage, store: RedisStorage, proxy: DroppingProxy, client: Redis, prefix: str, write: str
) -> None:
    """The reply to a write is lost, the adapter sends it again, and the store is as if it was sent once."""
    expected = RedisStorage(client, "q", prefix=f"{prefix}-expected")
    WRITES[write](expected)()

    call = WRITES[write](far_store)
    proxy.forget()
    proxy.drop_next_reply("EVALSHA")
    call()

    assert proxy.planned == 0
    assert proxy.names().count("EVALSHA") >= 2
    assert contents(store) == contents(expected)


@pytest.mark.parametrize("write", WRITES)
def test_a_client_that_sends_again_by_itself_applies_once(
    proxy: DroppingProxy, store: RedisStorage, valkey_server: RedisServer, client: Redis, prefix: str, write: str
) -> None:
    """The client library sends a write again unseen by the adapter, and the store is as if it was sent once."""
    expected = RedisStorage(client, "q", prefix=f"{prefix}-expected")
    WRITES[write](expected)()

    with Redis.from_url(proxy.through(valkey_server.url), retry=Retry(NoBackoff(), 3)) as retrying:
        call = WRITES[write](RedisStorage(retrying, "q", prefix=prefix, patience=0.001))
        proxy.drop_next_reply("EVALSHA")
        call()

    assert proxy.planned == 0
    assert contents(store) == contents(expected)


def test_a_transition_tells_of_the_row_it_made(far_store: RedisStorage, proxy: DroppingProxy) -> None:
    """A transition whose reply was lost answers with the batch, not with a lost race."""
    batch = made(far_store)
    proxy.drop_next_reply("EVALSHA")

    moved = transition(far_store, batch, "testing")

    assert far_store.get_batches(["b"]) == {"b": moved}
    assert moved.version == 2


def test_a_creation_tells_of_the_row_it_made(far_store: RedisStorage, proxy: DroppingProxy) -> None:
    """A creation whose reply was lost answers with the batch, not with an ID that is taken."""
    made(far_store, "another")
    proxy.drop_next_reply("EVALSHA")

    batch = create_batch(far_store, new())

    assert far_store.get_batches(["b"]) == {"b": batch}


def test_a_queue_is_counted_once(far_store: RedisStorage, proxy: DroppingProxy) -> None:
    """Creations and deletions that were sent twice are counted once: an emptied queue is listed no more."""
    made(far_store, "first")
    proxy.drop_next_reply("EVALSHA")
    batches = [made(far_store, "second")]
    batches.append(transition(far_store, made(far_store, "third"), "testing"))
    rows = far_store.get_batches(["first"])
    retired = [retire(far_store, batch) for batch in [*rows.values(), *batches]]  # type: ignore[arg-type]

    far_store.delete_batches(retired[1:], ["queued", "testing"])
    assert far_store.list_queues() == ["q"]
    proxy.drop_next_reply("EVALSHA")
    far_store.delete_batches(retired, ["queued", "testing"])

    assert far_store.list_queues() == []


def test_an_outage_is_an_error_that_says_so(proxy: DroppingProxy, valkey_server: RedisServer, prefix: str) -> None:
    """While the server cannot be reached, calls raise a retryable error that says where; afterwards they work again."""
    with Redis.from_url(proxy.through(valkey_server.url), retry=Retry(NoBackoff(), 0)) as client:
        store = RedisStorage(client, "q", prefix=prefix, patience=0.2)
        batch = made(store)
        with proxy.refusing(), pytest.raises(StorageUnavailableError, match=f":{proxy.port}") as outage:
            transition(store, batch, "testing")
        assert outage.value.retryable
        assert transition(store, batch, "testing").version == 2


def test_an_outage_shorter_than_the_patience_is_not_noticed(far_store: RedisStorage, proxy: DroppingProxy) -> None:
    """A connection that is cut before and after the server saw the command costs the caller nothing."""
    batch = made(far_store)
    proxy.drop_next_request("EVALSHA")
    proxy.drop_next_reply("EVALSHA")
    proxy.drop_next_request("EVALSHA")

    assert transition(far_store, batch, "testing").version == 2
    assert proxy.planned == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"-LOADING Redis is loading the dataset in memory\r\n",
        b"-BUSY Redis is busy running a script.\r\n",
        b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        b"-CLUSTERDOWN The cluster is down\r\n",
        b"-MASTERDOWN Link with MASTER is down\r\n",
        b"-NOREPLICAS Not enough good replicas to write.\r\n",
        b"-READONLY You can't write against a read only replica.\r\n",
        b"-ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write to a replica.\r\n",
        b"-NOSCRIPT No matching script. Please use EVAL.\r\n",
    ],
)
def test_what_passes_is_waited_for(far_store: RedisStorage, proxy: DroppingProxy, answer: bytes) -> None:
    """An answer that a failover or a restart gives for a while is waited for, and the write is done then."""
    batch = made(far_store)
    for _ in range(1 if b"NOSCRIPT" in answer else 3):
        proxy.answer_next(answer, "EVALSHA")

    assert transition(far_store, batch, "testing").version == 2
    assert proxy.planned == 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            b"-MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk.\r\n",
            "save to disk",
        ),
        (b"-OOM command not allowed when used memory > 'maxmemory'.\r\n", "memory is used up"),
        (b"-NOPERM this user has no permissions to run the 'evalsha' command\r\n", "may not do"),
        (b"-NOAUTH Authentication required.\r\n", "user name or the password"),
        (b"-MOVED 1234 127.0.0.1:7000\r\n", "redis\\+cluster"),
    ],
)
def test_what_does_not_pass_is_told_at_once(
    far_store: RedisStorage, proxy: DroppingProxy, answer: bytes, words: str
) -> None:
    """A refusal that waiting does not mend is raised at once, in words, and the batch may be tried again later."""
    batch = made(far_store)
    proxy.answer_next(answer, "EVALSHA")
    proxy.forget()

    with pytest.raises(StorageUnavailableError, match=words):
        transition(far_store, batch, "testing")

    assert proxy.names() == ["EVALSHA"]
    assert transition(far_store, batch, "testing").version == 2
