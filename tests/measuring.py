"""Coverage is measured where code runs first, and not again on each further server: that triples the time of a test.

`@pytest.mark.measured_elsewhere` says so of a class, whose tests then run without the tracer, fixtures and all. (The
`no_cover` of pytest-cov leaves the fixtures traced, and stops and starts the tracer at every test.)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACING: Final = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")
"""The variables by which a Python that is started starts a tracer of its own, as workers and commands do and servers
should not."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Start this run's workers without those variables: a second tracer would go on whenever theirs is switched off.

    Each worker's own tracer sets them again, for the processes that its tests start.
    """
    for name in TRACING:
        os.environ.pop(name, None)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop the tracer that a worker of this run began with: pytest-cov starts another beside it now."""
    controller = controller_of(session.config)
    if controller and hasattr(session.config, "workerinput"):
        controller.cov.stop()
        controller.cov.save()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Switch the tracer off or on before a test, where it is to be otherwise than for the test before."""
    controller = controller_of(item.config)
    if controller:
        wanted = item.get_closest_marker("measured_elsewhere") is None
        if wanted and not controller.started:
            controller.resume()
        elif controller.started and not wanted:
            controller.pause()
    return (yield)


def controller_of(config: pytest.Config) -> Any:
    """What pytest-cov switches its tracer with; nothing where coverage is not measured."""
    plugin: Any = config.pluginmanager.getplugin("_cov")
    return plugin and plugin.cov_controller
