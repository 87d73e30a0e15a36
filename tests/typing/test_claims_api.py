"""What type checkers see of claims: each line is checked by mypy and pyright, and run as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, assert_never, assert_type

import pytest

from batchstate import (
    BatchConsumer,
    BatchQueue,
    BatchStateError,
    Claim,
    Dead,
    Delay,
    Done,
    Hold,
    Job,
    JobSpec,
    Lifecycle,
    QueueCounts,
    Retry,
    Settlement,
    Swept,
    Verdict,
    open_queue,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

FLOW = Lifecycle.parse("queued > testing > merged")


@pytest.fixture
def queue() -> Iterator[BatchQueue]:
    """A queue of its own with two jobs in it."""
    with open_queue("merges", "memory://", lifecycle=FLOW) as opened:
        opened.add_many([JobSpec("pr-1", {"number": 1}), JobSpec("pr-2", {"number": 2})])
        yield opened


def test_adding_says_whether_the_job_is_new(queue: BatchQueue) -> None:
    """One job is answered with whether it is new, many with a word or an error each."""
    assert_type(queue.add("pr-3", {"number": 3}, group="main", delay="5m"), bool)
    for outcome in queue.add_many([JobSpec("pr-4")]):
        if isinstance(outcome, BatchStateError):
            assert_type(outcome, BatchStateError)
        else:
            assert_type(outcome, Literal["added", "duplicate"])


def test_claims_are_iterated_and_entered(queue: BatchQueue) -> None:
    """The loop of claims, jobs and attempts needs no cast anywhere."""
    seen: list[str] = []
    for claim in queue.claims(50, lease="30s"):
        assert_type(claim, Claim)
        with claim as entered:
            assert_type(entered, Claim)
            for job in claim:
                assert_type(job, Job)
                with claim.attempt(job) as attempted:
                    assert_type(attempted, Job)
                    seen.append(attempted.id)

    assert seen == ["pr-1", "pr-2"]


def test_settling_takes_verdicts_and_answers_a_settlement(queue: BatchQueue) -> None:
    """A mapping from job ID to verdict goes in; every list of the settlement is one of IDs."""
    claim = queue.claim(10)
    assert_type(claim, Claim | None)
    assert claim is not None
    verdicts: dict[str, Verdict] = {"pr-1": Done(), "pr-2": Retry("flaky", "10s")}
    settlement = claim.settle(verdicts)
    assert_type(settlement, Settlement)
    assert_type(settlement.completed, tuple[str, ...])
    assert_type(settlement.lost, tuple[str, ...])
    assert_type(settlement.finished, bool)
    assert_type(claim.release(), Settlement)


def test_verdicts_can_be_told_apart_exhaustively() -> None:
    """A verdict is one of four, and a type checker knows that there is no fifth."""

    def word(verdict: Verdict) -> str:
        match verdict:
            case Done():
                return "done"
            case Retry(reason=reason) | Dead(reason=reason):
                return assert_type(reason, str)
            case Delay():
                return "later"
            case _:
                assert_never(verdict)

    assert [word(verdict) for verdict in (Done(), Retry("flaky"), Delay("1m"), Dead("hopeless"))] == [
        "done",
        "flaky",
        "later",
        "hopeless",
    ]


def test_consumer_takes_a_function_of_a_job(queue: BatchQueue) -> None:
    """A handler of one job is a plain function, which may answer with a verdict or nothing."""
    handled: list[Any] = []

    def handle(job: Job) -> Verdict | None:
        handled.append(job.payload)
        return None if job.id == "pr-1" else Done()

    consumer = queue.consumer(each=handle)
    assert_type(consumer, BatchConsumer)
    consumer.run(burst=True)

    assert handled == [{"number": 1}, {"number": 2}]


def test_upkeep_and_counts_are_typed(queue: BatchQueue) -> None:
    """What the queue counts, sweeps and holds is of known types."""
    queue.create("batch-17", requests=["pr-9"])
    assert_type(queue.sweep(), Swept)
    assert_type(queue.counts(), QueueCounts)
    assert_type(queue.get_job("pr-1"), Job)
    hold = queue.hold("batch-17", "30s")
    assert_type(hold, Hold | None)
    assert hold is not None
    with hold as held:
        assert_type(held, Hold)
