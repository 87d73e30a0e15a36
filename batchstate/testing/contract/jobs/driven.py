"""Any calls in any order, against a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.testing.contract.jobs.base import JobTests
from batchstate.testing.machine import drive

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.testing.harness import Harness

__all__ = ["Driven"]


class Driven(JobTests):
    """What the model says of any order of calls."""

    @pytest.mark.timeout(900)
    def test_any_calls_in_any_order(self, harness: Harness, record_property: Callable[[str, object], None]) -> None:
        """Whatever calls come in whatever order, each once or twice, the store is at every step what the model is."""
        seed, steps = drive(harness, harness.steps)

        record_property("explored", f"state machine, {steps:,} steps, BATCHSTATE_SEED={seed}")
        assert steps >= harness.steps
