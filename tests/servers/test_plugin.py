"""What becomes of a test whose server is lacking."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

OPTIONS = ("-p", "no:cacheprovider", "-rN", "-o", "markers=server: needs a server")
CONFTEST = """
from tests.servers import available

pytest_plugins = ["tests.servers.fixtures", "tests.servers.plugin"]
available.missing_part = lambda server: "it is away"
"""
TESTS = """
import pytest

def test_valkey(valkey_server): print(valkey_server.url)
def test_own(start_redis): start_redis("redis62")
def test_cluster(valkey_cluster): print(valkey_cluster.url)
def test_cluster_again(valkey_cluster): pass
def test_nothing(): pass
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A small suite on a machine that has no server."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    return tmp_path


def run(suite: Path, *options: str, **environment: str) -> str:
    """Run the suite and return what it printed."""
    ours = {name: value for name, value in os.environ.items() if "BATCHSTATE" not in name}
    for name in [name for name in ours if name.startswith("PYTEST")]:
        del ours[name]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *options, str(suite)],
        env={**ours, "PYTHONPATH": str(ROOT), **environment},
        cwd=suite,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("options", [(), ("-n1",)], ids=["alone", "xdist"])
def test_lacking_server_is_named_at_the_end(suite: Path, options: tuple[str, ...]) -> None:
    """Tests without their server are skipped, and the summary says which server and why."""
    printed = run(suite, *options)
    assert "1 passed, 4 skipped" in printed
    assert "cluster: it is away; tests skipped: 2" in printed
    assert "valkey: it is away; tests skipped: 1" in printed
    assert "redis62: it is away; tests skipped: 1" in printed


def test_required_server_fails_its_tests(suite: Path) -> None:
    """Where all servers are required none of their tests is skipped."""
    printed = run(suite, BATCHSTATE_REQUIRE="all")
    assert "skipped" not in printed
    assert "1 failed, 1 passed, 3 errors" in printed
    assert "no server for this test: cluster (it is away)" in printed


def test_some_servers_may_be_required(suite: Path) -> None:
    """Names instead of `all` require these servers alone."""
    assert "1 passed, 2 skipped, 2 errors" in run(suite, BATCHSTATE_REQUIRE="cluster,moto")


def test_given_url_is_used_as_it_is(suite: Path) -> None:
    """A server that is given by URL is not started, and only a test that stops servers lacks it."""
    given = {"BATCHSTATE_TEST_VALKEY_URL": "redis://elsewhere:1/2"}
    given["BATCHSTATE_TEST_CLUSTER_URL"] = "redis+cluster://elsewhere:1,there:2"
    printed = run(suite, "-s", **given)
    assert "4 passed, 1 skipped" in printed
    assert "redis://elsewhere:1/2" in printed
    assert "redis+cluster://elsewhere:1,there:2" in printed


def test_tests_of_servers_can_be_left_out(suite: Path) -> None:
    """Every test that uses a server carries the mark, whichever fixture it takes."""
    assert "1 passed, 4 deselected" in run(suite, "-m", "not server")
