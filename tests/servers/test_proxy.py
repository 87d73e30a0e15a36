"""The proxy that cuts, counts, delays and answers."""

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import redis
from botocore.config import Config
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.servers.dynamo_servers import DynamoEndpoint
from tests.servers.fixtures import StartRedis
from tests.servers.proxy import DroppingProxy
from tests.servers.redis_servers import RedisEndpoint, RedisServer
from tests.servers.test_dynamo_servers import create_table

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


@pytest.fixture
def server(start_redis: StartRedis) -> RedisServer:
    """A server of this test's own."""
    return start_redis("valkey")


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[DroppingProxy]:
    """A proxy in front of it."""
    with DroppingProxy(*server.address) as proxy:
        yield proxy


@pytest.fixture
def client(server: RedisServer, proxy: DroppingProxy) -> Iterator[redis.Redis]:
    """A client through the proxy that re-sends nothing."""
    endpoint = RedisEndpoint(proxy.through(server.url))
    with endpoint.impatient_client(decode_responses=True) as client:
        yield client


def test_dropped_reply_is_of_a_request_that_was_applied(
    server: RedisServer, proxy: DroppingProxy, client: redis.Redis
) -> None:
    """The server has applied the request whose reply is dropped; the next reply gets through."""
    proxy.drop_next_reply()
    with pytest.raises(redis.ConnectionError):
        client.incrby("a")
    with server.client() as beside:
        assert beside.get("a") == b"1"
    assert proxy.planned == 0
    assert client.incrby("a") == 2


def test_retrying_client_applies_twice_when_a_reply_is_dropped(server: RedisServer, proxy: DroppingProxy) -> None:
    """A client that re-sends by itself shows that exactly one reply was dropped."""
    retry = Retry(NoBackoff(), 3)
    with redis.Redis.from_url(proxy.through(server.url), retry=retry) as client:
        proxy.drop_next_reply("INCRBY")
        client.set("b", 1)
        assert client.incrby("a") == 2
    assert proxy.names() == ["SET", "INCRBY", "INCRBY"]


def test_lost_request_is_not_applied(server: RedisServer, proxy: DroppingProxy, client: redis.Redis) -> None:
    """A request that is lost never reaches the server."""
    proxy.drop_next_request("INCRBY")
    with pytest.raises(redis.ConnectionError):
        client.incrby("a")
    with server.client() as beside:
        assert beside.get("a") is None


def test_proxy_answers_in_the_servers_stead(proxy: DroppingProxy, client: redis.Redis) -> None:
    """A made-up answer comes once, over a connection that stays."""
    proxy.answer_next(b"-LOADING wait\r\n", "GET")
    with pytest.raises(redis.BusyLoadingError):
        client.get("a")
    assert client.get("a") is None


def test_each_command_is_a_round_trip_and_a_pipeline_is_one(proxy: DroppingProxy, client: redis.Redis) -> None:
    """Round trips are counted as a client waits for them, connecting not included."""
    client.set("a", 1)
    client.get("a")
    assert proxy.round_trips == 2
    proxy.forget()
    with client.pipeline(transaction=False) as pipeline:
        for number in range(20):
            pipeline.set(f"key-{number}", number)
        pipeline.execute()
    assert proxy.round_trips == 1
    assert len(proxy.requests) == 20


@pytest.mark.parametrize("protocol", [2, 3])
def test_large_replies_come_through_whole(server: RedisServer, proxy: DroppingProxy, protocol: int) -> None:
    """Requests and replies longer than any buffer pass unchanged, in both protocols."""
    large = bytes(range(256)) * 8_000
    with redis.Redis.from_url(proxy.through(server.url), protocol=protocol) as client:
        client.mset({"a": large, "b": large})
        proxy.forget()
        assert client.mget("a", "b", "c") == [large, large, None]
    assert (proxy.round_trips, proxy.names()) == (1, ["MGET"])


def test_refused_connections_are_accepted_again(proxy: DroppingProxy, client: redis.Redis) -> None:
    """While the proxy refuses, the server seems to be gone; afterwards all is as before."""
    assert client.ping()
    with proxy.refusing(), pytest.raises(redis.ConnectionError):
        client.ping()
    assert client.ping()


def test_cut_ends_what_is_open_alone(proxy: DroppingProxy, client: redis.Redis) -> None:
    """A cut ends the open connections; a new one is made at once."""
    client.ping()
    assert proxy.accepted == 1
    proxy.cut()
    assert client.ping()
    assert proxy.accepted == 2


def test_replies_are_delayed_side_by_side(proxy: DroppingProxy, client: redis.Redis) -> None:
    """Each reply takes at least the delay, and those of several connections take it together."""
    client.ping()
    proxy.delay = 0.1
    began = time.monotonic()
    client.ping()
    assert time.monotonic() - began >= 0.1
    began = time.monotonic()
    threads = [threading.Thread(target=client.ping) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One after another they would take 1.6 s, and fifteen connections are made besides.
    assert time.monotonic() - began < 1.6


@pytest.mark.parametrize("fixture", ["moto_server", "dynalite_server"])
def test_dynamodb_write_is_applied_though_its_reply_is_dropped(fixture: str, request: pytest.FixtureRequest) -> None:
    """Over HTTP, too, the dropped reply is of an applied write, which boto3 sends again."""
    emulator: DynamoEndpoint = request.getfixturevalue(fixture)
    host, _, port = emulator.endpoint.removeprefix("http://").partition(":")
    beside = emulator.client()
    create_table(beside, "dropped")
    with DroppingProxy(host, int(port)) as proxy:
        through = DynamoEndpoint(proxy.through(emulator.endpoint))
        client = through.client(Config(retries={"total_max_attempts": 2}))
        proxy.drop_next_reply("UpdateItem")
        add_one(client, "dropped")
        assert proxy.names() == ["UpdateItem", "UpdateItem"]
        assert proxy.round_trips == 2
    item = beside.get_item(TableName="dropped", Key={"pk": {"S": "a"}, "sk": {"S": "b"}})["Item"]
    assert item["number"] == {"N": "2"}
    beside.delete_table(TableName="dropped")


def add_one(client: "DynamoDBClient", table: str) -> None:
    """Add one to a number, which a second application shows."""
    client.update_item(
        TableName=table,
        Key={"pk": {"S": "a"}, "sk": {"S": "b"}},
        UpdateExpression="ADD #n :one",
        ExpressionAttributeNames={"#n": "number"},
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
