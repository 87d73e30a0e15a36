"""From verdicts to what the store is asked, and from its answers to the settlement."""

from __future__ import annotations

from typing import Any

import pytest

from batchstate.claims.settling import in_claim_order, partition, settling_of, text_of
from batchstate.errors import InvalidValueError, StorageUnavailableError
from batchstate.job_calls import Settled, Settling
from batchstate.jobs import Dead, Delay, Done, Job, Retry, Settlement, Verdict


def waits(attempts: int) -> float:
    """Wait as many seconds as there were failures."""
    return attempts


@pytest.mark.parametrize(
    ("verdict", "asked"),
    [
        (Done(), Settling("a", "complete")),
        (Retry("no", "5s"), Settling("a", "retry", "no", 5_000)),
        (Retry("no"), Settling("a", "retry", "no", 3_000)),
        (Retry("no", 0), Settling("a", "retry", "no", 0)),
        (Delay("1m"), Settling("a", "delay", "", 60_000)),
        (Delay(0.0001), Settling("a", "delay", "", 1)),
        (Dead("no"), Settling("a", "dead", "no")),
        (Retry("\ud800", 0), Settling("a", "retry", "?", 0)),
    ],
)
def test_what_the_store_is_asked(verdict: Verdict, asked: Settling) -> None:
    """A verdict is a settling, with the back-off for a retry that names no delay."""
    assert settling_of("a", verdict, Job("a", "q", attempts=2), waits) == asked


def test_a_job_that_is_not_at_hand_has_failed_once() -> None:
    """The back-off of a job that is not at hand is that of a first failure."""
    assert settling_of("a", Retry("no"), None, waits).delay == 1_000


@pytest.mark.parametrize("wrong", [None, "done", Done, Retry(5), Dead(None), Delay("soon"), Delay(-1), Retry("x", -1)])  # type: ignore[arg-type]
def test_what_is_no_verdict(wrong: Any) -> None:
    """What is no verdict, or has a delay or a reason that is none, is refused."""
    with pytest.raises(InvalidValueError):
        settling_of("a", wrong, None, waits)


def test_a_settlement_is_exhaustive_and_disjoint() -> None:
    """Every job that was asked for is in exactly one list, in that order, and errors by job."""
    error = StorageUnavailableError()
    answer = Settled(("lost", "completed", "dead", "retried", "released", error, "delayed", "completed"), finished=True)

    settlement = partition(list("abcdefgh"), answer)

    assert settlement == Settlement(
        ("b", "h"), ("d",), ("g",), ("c",), ("e",), ("a",), errors={"f": error}, finished=True
    )
    assert not settlement.ok
    assert not partition(["a"], Settled(("lost",), finished=False)).ok
    assert not partition(["a"], Settled((error,), finished=False))
    assert partition(["a"], Settled(("dead",), finished=False)).ok


def test_an_answer_of_another_length_is_a_fault() -> None:
    """An answer that does not fit what was asked is not taken for one."""
    with pytest.raises(ValueError, match="zip"):
        partition(["a", "b"], Settled(("completed",), finished=False))


def test_the_order_of_the_claim() -> None:
    """Jobs come in the claim's order, then those that are none of it as they were given."""
    jobs = [Job(name, "q") for name in "abc"]

    assert in_claim_order(jobs, {"x": 1, "c": 1, "a": 1, "y": 1}) == ["a", "c", "x", "y"]


@pytest.mark.parametrize(
    ("error", "text"), [(ValueError("no"), "ValueError: no"), (KeyError(), "KeyError"), (OSError(""), "OSError")]
)
def test_what_an_exception_says(error: BaseException, text: str) -> None:
    """An exception says its kind and its text, or its kind alone."""
    assert text_of(error) == text
