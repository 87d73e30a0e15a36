"""What a queue does with its jobs, and how long failed ones wait."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from batchstate.claims.policy import Backoff, JobPolicy
from batchstate.errors import InvalidValueError


def test_what_is_done_unless_somebody_says_otherwise() -> None:
    """Ended claims stay fifteen days, done IDs a day, dead jobs for ever; three attempts."""
    policy = JobPolicy()

    assert (policy.keep_settled, policy.keep_done, policy.keep_dead) == ("15d", "1d", None)
    assert (policy.max_attempts, policy.max_stalls, policy.skew) == (3, 3, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"max_attempts": -1},
        {"max_attempts": True},
        {"max_attempts": 2.0},
        {"max_stalls": -1},
        {"max_stalls": None},
        {"keep_done": -1},
        {"keep_done": "soon"},
        {"keep_settled": float("inf")},
        {"keep_settled": None},
        {"keep_done": None},
        {"skew": None},
        {"keep_dead": -1},
        {"skew": -1},
    ],
)
def test_a_policy_that_makes_no_sense(wrong: dict[str, Any]) -> None:
    """A number or a time that makes no sense is refused when the policy is made."""
    with pytest.raises(InvalidValueError):
        JobPolicy(**wrong)


@pytest.mark.parametrize("right", [{"max_stalls": 0}, {"keep_done": 0}, {"keep_dead": None}, {"keep_dead": 0}])
def test_nothing_at_all_may_make_sense(right: dict[str, Any]) -> None:
    """No recoveries, and keeping for no time or for ever, are policies."""
    policy = JobPolicy(**right)

    assert all(getattr(policy, name) == value for name, value in right.items())


def test_waits_grow_by_the_factor_up_to_the_most() -> None:
    """Without jitter each wait is so many times the one before, until the longest."""
    backoff = Backoff(first=1, factor=3, most="20s", jitter=False)

    assert [backoff(attempts) for attempts in (1, 2, 3, 4, 5)] == [1, 3, 9, 20, 20]
    assert backoff(10**9) == 20


def test_full_jitter() -> None:
    """With jitter a wait is anything between nothing and the longest, and differs from time to time."""
    backoff = Backoff(first="1s", factor=2, most="8s", seed=1)
    waits = [float(backoff(3)) for _ in range(2000)]  # type: ignore[arg-type]  # seconds

    assert 0 <= min(waits) < 0.2
    assert 3.8 < max(waits) <= 4
    assert 1.9 < sum(waits) / len(waits) < 2.1
    assert [Backoff(seed=7)(4) for _ in range(2)] == [Backoff(seed=7)(4)] * 2
    assert Backoff()(9) != Backoff()(9)


@pytest.mark.parametrize(
    "wrong", [{"first": 0}, {"first": -1}, {"most": "never"}, {"factor": 0.5}, {"factor": float("nan")}]
)
def test_a_back_off_that_makes_no_sense(wrong: dict[str, Any]) -> None:
    """A back-off that shrinks, or waits for no time, is refused when it is made."""
    with pytest.raises(InvalidValueError):
        Backoff(**wrong)


def test_durations_of_any_kind() -> None:
    """Durations are what they are everywhere else."""
    assert Backoff(first=timedelta(seconds=2), most=timedelta(minutes=1), jitter=False)(1) == 2
