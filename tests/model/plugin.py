"""What the model tests add to pytest: `--large`, and a list of what was explored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.testing.explorer import Explored

Show: TypeAlias = "Callable[[Explored], Explored]"
"""Notes what was explored, and answers it."""

PROPERTY = "explored"

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--large`."""
    parser.addoption("--large", action="store_true", help="also run what is marked large: scopes of millions of states")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked large, unless it is asked for; and measure no coverage of millions of states."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.measured_elsewhere)
        if item.get_closest_marker("large") is not None and not config.getoption("--large"):
            item.add_marker(pytest.mark.skip(reason="large: runs with --large"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was explored, a line a scope."""
    lines = [
        str(value)
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if lines:
        terminalreporter.section("explored")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture
def show(record_property: Callable[[str, object], None]) -> Show:
    """Let a test show what it explored."""

    def note(explored: Explored) -> Explored:
        record_property(PROPERTY, str(explored))
        print(explored)  # noqa: T201 - with `-s` as it is found
        return explored

    return note
