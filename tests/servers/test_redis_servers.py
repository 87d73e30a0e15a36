"""The Redis and Valkey servers that the tests stand on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from tests.servers.fixtures import StartRedis
from tests.servers.ports import wait_until
from tests.servers.redis_servers import Make, RedisEndpoint, RedisServer
from tests.servers.tls import make_certificates

VERSIONS = {Make.VALKEY: ("valkey_version", "9."), Make.REDIS7: ("redis_version", "7.")}
VERSIONS[Make.REDIS62] = ("redis_version", "6.2.")
RIGHT = "right"
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("make", Make)
def test_server_answers_and_is_gone_after_its_stop(make: Make, start_redis: StartRedis) -> None:
    """A started server is of the make that was asked for, keeps data, and ends when stopped."""
    server = start_redis(make)
    field, version = VERSIONS[make]
    with server.impatient_client(decode_responses=True) as client:
        client.set("name", "value")
        assert client.get("name") == "value"
        assert client.info("server")[field].startswith(version)
        server.stop()
        assert not server.process.running
        with pytest.raises(redis.ConnectionError):
            client.ping()


def test_durable_server_keeps_its_data_over_a_crash(start_redis: StartRedis) -> None:
    """A durable server that was killed has its data when it is back, on the same port."""
    server = start_redis("valkey", durable=True)
    port = server.port
    with server.client() as client:
        client.set("name", "value")
        server.kill()
        server.restart()
        assert server.port == port
        assert client.get("name") == b"value"


def test_plain_server_is_empty_after_a_restart(start_redis: StartRedis) -> None:
    """A server that is not durable forgets everything, its scripts too."""
    server = start_redis("valkey")
    with server.client() as client:
        client.set("name", "value")
        server.restart()
        assert client.dbsize() == 0


def test_paused_server_answers_when_it_goes_on(start_redis: StartRedis) -> None:
    """A paused server leaves its clients without an answer, and serves them when resumed."""
    server = start_redis("valkey")
    with server.impatient_client(socket_timeout=0.1) as client:
        client.set("name", "value")
        server.pause()
        with pytest.raises(redis.TimeoutError):
            client.get("name")
        server.resume()
        assert client.get("name") == b"value"


def test_server_with_a_password_refuses_another(start_redis: StartRedis) -> None:
    """Only the right password opens the server; its URL carries it."""
    server = start_redis("valkey", password=RIGHT)
    with server.impatient_client() as client:
        assert client.ping()
    stranger = RedisEndpoint(server.url.replace(RIGHT, "wrong"))
    with (
        stranger.impatient_client() as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


def test_server_with_tls_is_trusted_by_its_authority_alone(start_redis: StartRedis) -> None:
    """The URL of a TLS server names the authority, and no other authority will do."""
    server = start_redis("redis7", tls=make_certificates())
    with server.impatient_client() as client:
        assert client.ping()
    other = make_certificates().authority
    stranger = RedisEndpoint(server.url.partition("?")[0] + f"?ssl_ca_certs={other}")
    with (
        stranger.impatient_client() as client,
        pytest.raises(redis.ConnectionError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        client.ping()


def test_taken_port_is_replaced(start_redis: StartRedis) -> None:
    """A server whose port was taken meanwhile starts on another."""
    first = start_redis("valkey")
    second = RedisServer("valkey")
    second.port = first.port
    with second, second.client() as client:
        assert second.port != first.port
        assert client.ping()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_servers_do_not_outlive_a_run_that_was_killed(how: signal.Signals) -> None:
    """When the test run is killed, its servers end and their folders go."""
    program = (
        "from tests.servers.redis_servers import RedisServer\n"
        "server = RedisServer('valkey').start()\n"
        "server.pause()\n"
        "print(server.process.pid, server.process.folder, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        pid, folder = run.stdout.readline().split()
        os.kill(int(pid), 0)
        run.send_signal(how)
    wait_until(lambda: not Path(folder).exists(), "the server's folder to go")
    wait_until(lambda: _is_gone(int(pid)), "the server to go")


def test_plain_server_starts_quickly() -> None:
    """A server takes a fraction of a second to start, so a test may take one of its own."""
    began = time.monotonic()
    with RedisServer("valkey"):
        assert time.monotonic() - began < 2


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"  # ended, and not yet collected by whoever adopted it
