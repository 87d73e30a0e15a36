"""What a server is looked at for: whether it evicts, how its rows read, what is large."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

import pytest

from batchstate.creation import create_batch, create_many
from batchstate.entities import Association, Batch, MembershipRecord
from batchstate.errors import (
    AlreadyExistsError,
    CorruptRowError,
    InvalidValueError,
    TooLargeError,
    UnsupportedFormatError,
)
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.tidying import retire
from batchstate.transition import transition, transition_many
from batchstate.urls import open_storage
from batchstate_redis import RedisStorage
from batchstate_redis.keys import Keys
from batchstate_redis.rows import MAX_ROW
from batchstate_redis.scripts import MOST_AT_ONCE
from tests.adapters.redis.given import STATES, made, new
from tests.servers.ports import wait_until
from tests.servers.redis_servers import Make

if TYPE_CHECKING:
    from redis import Redis

    from tests.servers.fixtures import StartRedis
    from tests.servers.proxy import DroppingProxy
    from tests.servers.redis_servers import RedisEndpoint


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_evicts_is_warned_about(start_redis: StartRedis, policy: str) -> None:
    """A server that deletes data when its memory is used up is warned about, once a storage."""
    server = start_redis(Make.VALKEY)
    with server.client() as client:
        client.config_set("maxmemory-policy", policy)
        with pytest.warns(RuntimeWarning, match=f"{policy}.*noeviction"):
            open_storage(server.url, queue="q").close()
        store = RedisStorage(client, "q")
        with pytest.warns(RuntimeWarning, match=policy):
            made(store)
        with warnings.catch_warnings(action="error"):
            made(store, "another")


def test_a_user_who_may_not_ask_is_not_warned(start_redis: StartRedis) -> None:
    """A user who may not read the server's set-up works all the same."""
    server = start_redis(Make.REDIS7)
    with server.client() as client:
        client.execute_command(
            "ACL", "SETUSER", "worker", "on", ">pw", "~batchstate:*", "+@all", "-@admin", "-@dangerous"
        )
        client.config_set("maxmemory-policy", "allkeys-lru")
        with open_storage(f"redis://worker:pw@{server.host}:{server.port}", queue="q") as store:
            batch = transition(store, made(store), "testing")
            assert list_by_states(store, ["testing"]) == [batch]
            assert [item.batch_id for item in store.list_records("testing").items] == ["b"]
            assert list(store.scan("batches").items) == [batch]


def test_a_decoding_and_a_plain_client_share_a_store(valkey_server: RedisEndpoint, prefix: str) -> None:
    """Two storages, on a client that decodes replies and on one that does not, mean the same on the same data."""
    with (
        valkey_server.client(decode_responses=True, protocol=3, encoding="latin-1") as decoding,
        valkey_server.client(protocol=2) as plain,
    ):
        one = RedisStorage(decoding, "q-é", prefix=prefix)
        other = RedisStorage(plain, "q-é", prefix=prefix)
        batch = create_batch(one, Batch("b-日", "q-é", "待つ", request_ids=("r-ß",), attributes={"k": "\x80\uffff\0"}))
        moved = transition(other, batch, "läuft")
        for store in (one, other):
            assert store.get_batches(["b-日"]) == {"b-日": moved}
            assert list_by_states(store, ["läuft"]) == [moved]
            assert find_by_request_id(store, "r-ß") == ((moved,), 0)
            assert store.list_queues() == ["q-é"]
            assert _scanned(store) == [moved]


def _scanned(store: RedisStorage) -> list[object]:
    """Go through all rows; most of the server's keys are other tests'."""
    page = store.scan("batches")
    found = list(page.items)
    while page.cursor is not None:
        page = store.scan("batches", page.cursor)
        found += page.items
    return found


def test_a_row_is_text_that_can_be_read(store: RedisStorage, client: Redis, prefix: str) -> None:
    """A row is lines of fields, so that a person with redis-cli sees what is stored."""
    batch = transition(store, made(store), "testing", by="me")
    raw = client.get(Keys(prefix, "q").batch("b"))
    assert isinstance(raw, bytes)
    first, second, attributes, *moves = raw.decode().split("\n")
    assert first.split("\t")[:4] == ["1", "2", "", batch.mark]
    assert second.split("\t") == [str(batch.created_at), '["r-1","r-2"]']
    assert json.loads(attributes) == batch.attributes
    assert len(moves) == 2


@pytest.mark.parametrize(
    "raw",
    [b"", b"\xff\xfe", b"1", b"1\t1", b"1\t1\t\tMARK\t1", b"hello\nworld", b"1\tx\t\tm\t1\t1\tqueued\t\n1\t[]\n{}\n"],
)
def test_what_is_no_row_is_named(store: RedisStorage, client: Redis, prefix: str, raw: bytes) -> None:
    """A key of ours that holds anything else is an error that names the batch, and nothing writes over it."""
    batch = made(store)
    key = Keys(prefix, "q").batch("b")
    raw = raw.replace(b"MARK", batch.mark.encode())
    client.set(key, raw)

    assert isinstance(store.get_batches(["b"])["b"], CorruptRowError)
    with pytest.raises(CorruptRowError):
        transition(store, batch, "testing")
    with pytest.raises(CorruptRowError):
        made(store)
    assert client.get(key) == raw


def test_a_row_of_the_future_is_left_alone(store: RedisStorage, client: Redis, prefix: str) -> None:
    """A row of a later format, however it looks, is an error that says so, and nothing writes over it."""
    batch = made(store)
    key = Keys(prefix, "q").batch("b")
    client.set(key, b"2\tand then something else")

    with pytest.raises(UnsupportedFormatError):
        transition(store, batch, "testing")
    assert isinstance(store.get_batches(["b"])["b"], UnsupportedFormatError)
    assert client.get(key) == b"2\tand then something else"


def test_a_key_of_another_kind_is_named(store: RedisStorage, client: Redis, prefix: str) -> None:
    """A key of ours that somebody else uses for another kind of value is an error, and no outage."""
    client.lpush(Keys(prefix, "q").batch("b"), "x")
    with pytest.raises(CorruptRowError):
        made(store)


def test_a_row_that_is_too_large_is_refused(far_store: RedisStorage, proxy: DroppingProxy) -> None:
    """A row of more than 64 MiB is refused before anything is sent."""
    batch = made(far_store)
    proxy.forget()
    with pytest.raises(TooLargeError, match="67,108,864"):
        transition(far_store, batch, "testing", update={"large": "x" * MAX_ROW})
    assert proxy.names() == []


def test_versions_beyond_a_score_are_refused(store: RedisStorage) -> None:
    """A version that a sorted set cannot hold exactly is refused before any write."""
    batch = made(store)
    [exact] = store.put_records([_record(batch, 2**53)])
    [refused] = store.put_records([_record(batch, 2**53 + 1)])
    assert exact is None
    assert isinstance(refused, InvalidValueError)
    assert [item.version for item in store.list_records("queued").items] == [2**53]


def _record(batch: Batch, version: int) -> MembershipRecord:
    return MembershipRecord("q", batch.state, batch.id, version)


def test_a_batch_of_very_many_requests(far_store: RedisStorage, proxy: DroppingProxy) -> None:
    """A batch of 20,000 requests is created, found and deleted, in calls of bounded size each."""
    requests = [f"r-{number}" for number in range(20_000)]
    batch = create_batch(far_store, new("b", requests))
    assert find_by_request_id(far_store, requests[-1]) == ((batch,), 0)
    assert list_by_states(far_store, ["queued"]) == [batch]

    retired = retire(far_store, batch)
    assert far_store.delete_batches([retired], STATES) == [None]

    assert far_store.get_batches(["b"]) == {}
    assert far_store.list_associations(requests[0]) == []
    assert far_store.list_associations(requests[-1]) == []
    assert (
        max(_keys_of(request.arguments) for request in proxy.requests if request.name == "EVALSHA") <= 2 * MOST_AT_ONCE
    )


def _keys_of(arguments: tuple[bytes, ...]) -> int:
    return int(arguments[1])


def test_a_large_batch_that_is_there_already_is_refused(store: RedisStorage) -> None:
    """A creation of very many requests that meets another batch of its ID writes nothing."""
    made(store)
    requests = [f"new-{number}" for number in range(MOST_AT_ONCE + 1)]
    with pytest.raises(AlreadyExistsError):
        create_batch(store, new("b", requests))
    assert store.list_associations(requests[0]) == []


def test_a_half_deleted_batch_is_deleted_by_the_next_purge(store: RedisStorage, client: Redis, prefix: str) -> None:
    """The row goes last: a deletion of very many requests that stopped half-way is found and finished by the next."""
    requests = [f"r-{number}" for number in range(2 * MOST_AT_ONCE)]
    batch = retire(store, create_batch(store, new("b", requests)))
    client.delete(*[Keys(prefix, "q").request(request) for request in requests[:MOST_AT_ONCE]])
    assert [row.id for row in store.list_retired().items if isinstance(row, Batch)] == ["b"]
    assert store.delete_batches([batch], STATES) == [None]
    assert list(client.scan_iter(f"{prefix}:*")) == [f"{prefix}:queues".encode()]


def test_snapshots_end_where_they_would_take_too_long(store: RedisStorage) -> None:
    """Up to 10,000 records are read as of one instant; more are to be paged through."""
    batches = [new(f"b-{number}", ()) for number in range(10_000)]
    stored = [row for row in create_many(store, batches) if isinstance(row, Batch)]
    found = store.list_records_of(["queued", "testing"])
    assert found is not None
    assert len(found) == 10_000

    made(store, "one-more")
    transition_many(store, stored[:10], "testing")

    assert store.list_records_of(["queued", "testing"]) is None
    assert len(list_by_states(store, ["queued", "testing"])) == 10_001


def test_an_attempt_is_found_among_very_many(store: RedisStorage) -> None:
    """All of 5,000 attempts at one request are listed, over several pages."""
    store.put_associations([Association("q", "r", f"b-{number}", "done") for number in range(5_000)])
    found = store.list_associations("r")
    assert {item.batch_id for item in found} == {f"b-{number}" for number in range(5_000)}
    assert {item.outcome for item in found} == {"done"}


def test_a_listing_goes_on_over_a_failover(start_redis: StartRedis) -> None:
    """A page asked of a server that did not give the cursor begins anew, so that nothing is missed."""
    primary, replica = start_redis(Make.VALKEY), start_redis(Make.VALKEY)
    with primary.client() as client, replica.client() as other:
        batches = [new(f"b-{number}", ()) for number in range(1_000)]
        create_many(RedisStorage(client, "q"), batches)
        first = RedisStorage(client, "q").list_records("queued", limit=100)
        scanned = RedisStorage(client, "q").scan("batches", limit=100)
        other.replicaof(primary.host, primary.port)
        wait_until(lambda: other.dbsize() == client.dbsize(), "the replica to be in step")
        other.replicaof("NO", "ONE")

        after = RedisStorage(other, "q")
        seen = {item.batch_id for item in first.items}
        cursor = first.cursor
        while cursor is not None:
            page = after.list_records("queued", cursor, limit=100)
            seen |= {item.batch_id for item in page.items}
            cursor = page.cursor
        rows = {row.id for row in scanned.items if isinstance(row, Batch)}
        cursor = scanned.cursor
        while cursor is not None:
            more = after.scan("batches", cursor, limit=100)
            rows |= {row.id for row in more.items if isinstance(row, Batch)}
            cursor = more.cursor
        assert seen == rows == {batch.id for batch in batches}


def test_a_cursor_that_is_none(store: RedisStorage) -> None:
    """A cursor of another listing, or of nobody, is refused."""
    for cursor in ("", "x", "[1]", "{}"):
        with pytest.raises(InvalidValueError, match="cursor"):
            store.list_records("queued", cursor)
        with pytest.raises(InvalidValueError, match="cursor"):
            store.list_retired(cursor)
