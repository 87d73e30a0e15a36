"""Coverage is measured where code runs first, and not again on each further server: that doubles the time of a test.

`@pytest.mark.measured_elsewhere` says so of a class, whose tests then run without the tracer, fixtures and all. (The
`no_cover` of pytest-cov leaves the fixtures traced, and stops and starts the tracer at every test.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Switch the tracer off or on before a test, where it is to be otherwise than for the test before."""
    plugin: Any = item.config.pluginmanager.getplugin("_cov")
    controller = plugin and plugin.cov_controller
    if controller:
        wanted = item.get_closest_marker("measured_elsewhere") is None
        if wanted and not controller.started:
            controller.resume()
        elif controller.started and not wanted:
            controller.pause()
    return (yield)
