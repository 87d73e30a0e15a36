"""A pytest plugin: marks the tests that need a server, names the servers that were lacking."""

import re
from collections import Counter

import pytest

from tests.servers.available import LACKING

_FIXTURES = frozenset(
    {
        "dynalite_server",
        "moto_server",
        "our_redis_sentinel",
        "our_valkey_cluster",
        "redis_sentinel",
        "redis62_server",
        "redis7_server",
        "start_redis",
        "valkey_cluster",
        "valkey_server",
    }
)
_LACKING = re.compile(re.escape(LACKING) + r"(?P<server>\w+) \((?P<part>[^)]*)\)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses a server, so that `-m "not server"` leaves it out."""
    for item in items:
        if _FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("server")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name each server that was lacking, with the number of tests that were skipped for it."""
    lacking: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        found = _LACKING.search(str(report.longrepr))
        if found:
            lacking[found["server"], found["part"]] += 1
    if not lacking:
        return
    terminalreporter.section("servers that were lacking", yellow=True)
    for (server, part), tests in sorted(lacking.items()):
        terminalreporter.line(f"{server}: {part}; tests skipped: {tests}", yellow=True)
    terminalreporter.line("BATCHSTATE_REQUIRE=all makes each of them a failure", yellow=True)
