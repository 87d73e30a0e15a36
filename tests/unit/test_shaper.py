"""When a consumer claims, and how many."""

from __future__ import annotations

from typing import Any

import pytest

from batchstate.claims.shaper import Shape, Window
from batchstate.errors import InvalidValueError


@pytest.mark.parametrize(
    ("max_size", "waiting", "elapsed", "size"),
    [
        (50, 6, 0, 6),
        (50, 5, 0, 5),
        (50, 4, 0, 0),
        (50, 2, 199, 0),
        (50, 2, 200, 2),
        (50, 2, 5_000, 2),
        (50, 0, 200, 0),
        (50, 0, 5_000, 0),
        (5, 6, 0, 5),
        (5, 6, 200, 5),
    ],
)
def test_flush(max_size: int, waiting: int, elapsed: int, size: int) -> None:
    """Enough flush at once, fewer when the timeout has come, none never, and no more than may be."""
    assert Shape(5, max_size, "200ms").flush(waiting, elapsed) == size


@pytest.mark.parametrize(
    "knobs",
    [
        {"min_size": 5, "max_size": 4},
        {"min_size": 0},
        {"min_size": -1},
        {"max_size": 0},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"min_size": 1.5},
        {"min_size": True},
        {"max_size": "5"},
        {"timeout": None},
    ],
)
def test_knobs_that_make_no_sense(knobs: dict[str, Any]) -> None:
    """A knob that is not positive, or a preference above the bound, is refused."""
    with pytest.raises(InvalidValueError):
        Shape(**knobs)


def test_a_window_opens_with_the_first_job() -> None:
    """The timeout counts from when jobs were first seen, whatever comes after."""
    window = Window(Shape(5, 50, "200ms"))

    assert window.remaining(1000) is None
    assert window.see(1, 1000) == 0
    assert window.remaining(1000) == 200
    assert window.see(3, 1150) == 0
    assert window.remaining(1150) == 50
    assert window.see(4, 1200) == 4


def test_a_window_closes_when_nothing_waits() -> None:
    """What was seen before nothing waited does not count for what comes after."""
    window = Window(Shape(5, 50, "200ms"))
    window.see(2, 1000)
    assert window.see(0, 1100) == 0
    assert window.remaining(1100) is None

    assert window.see(2, 1150) == 0
    assert window.see(2, 1349) == 0
    assert window.see(2, 1350) == 2


def test_a_flush_that_leaves_some_opens_anew() -> None:
    """After a flush the time of what it left counts from the next look."""
    window = Window(Shape(3, 4, "200ms"))
    assert window.see(6, 1000) == 4
    assert window.remaining(1000) is None
    assert window.see(2, 1000) == 0
    assert window.see(2, 1199) == 0
    assert window.see(2, 1200) == 2


def test_a_window_that_is_over_is_due_at_once() -> None:
    """What remains is never less than nothing."""
    window = Window(Shape(5, 50, "200ms"))
    window.see(1, 1000)

    assert window.remaining(9000) == 0
