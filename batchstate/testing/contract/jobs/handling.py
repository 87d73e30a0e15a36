"""Handlers: a function of a job, or of a batch of them, and how its answer is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from batchstate.errors import HandlerContractError, InvalidValueError
from batchstate.jobs import Dead, Delay, Done, Job, Retry, Settlement, Verdict
from batchstate.testing.contract.jobs.base import JobTests, added, job, place_of, places, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from batchstate.claims.claim import Claim, Part
    from batchstate.claims.handlers import BatchHandler, JobHandler
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Bisecting", "Handling"]


def each(q: BatchQueue, handler: JobHandler) -> Settlement:
    """Work one claim off with a handler of a job."""
    seen: list[Settlement] = []
    q.consumer(each=handler, on_settled=lambda _, settlement: seen.append(settlement)).step()
    return seen[0]


def batched(q: BatchQueue, handler: BatchHandler, *, bisect: bool = False) -> tuple[Claim, Settlement]:
    """Work one claim off with a handler of a batch."""
    seen: list[tuple[Claim, Settlement]] = []
    q.consumer(
        batch=handler, bisect=bisect, on_settled=lambda claim, settlement: seen.append((claim, settlement))
    ).step()
    return seen[0]


class Handling(JobTests):
    """What a handler returns or raises becomes the jobs' verdicts."""

    def test_a_handler_of_a_job(self, q: BatchQueue) -> None:
        """Returning anything is done, raising is a retry with what was said, a returned verdict stands."""
        added(q, "abcdef")

        def handle(one: Job) -> object:
            if one.id == "b":
                raise ValueError("bad luck")
            if one.id == "c":
                raise RuntimeError
            return {"a": None, "d": Retry("mine", "5s"), "e": Delay("1m"), "f": Dead("never")}[one.id]

        settlement = each(q, handle)

        assert settlement == Settlement(
            completed=("a",), retried=("b", "c", "d"), delayed=("e",), dead=("f",), finished=True
        )
        assert [job(q, name).error for name in "bcdf"] == ["ValueError: bad luck", "RuntimeError", "mine", "never"]

    def test_anything_but_a_verdict_is_done(self, q: BatchQueue) -> None:
        """A handler of a job that returns a value of its own has done the job."""
        added(q, "ab")

        assert each(q, lambda one: one.id == "a").completed == ("a", "b")

    def test_a_handler_of_a_batch(self, q: BatchQueue) -> None:
        """Silence is a retry: a job that the answer does not name is retried with a reason of its own."""
        added(q, "abc")

        _, settlement = batched(q, lambda _: {"a": Retry("x"), "b": Done()})

        assert settlement == Settlement(completed=("b",), retried=("a", "c"), finished=True)
        assert job(q, "a").error == "x"
        assert "no verdict" in job(q, "c").error

    @pytest.mark.parametrize("verdict", [None, "done", Done, 1, Retry("x", "soon"), Delay(-1)], ids=repr)
    def test_an_unreadable_verdict(self, q: BatchQueue, verdict: Any) -> None:  # noqa: ANN401 - what cannot be read
        """A job whose verdict cannot be read is retried with a reason that says so; the others are settled."""
        added(q, "ab")

        _, settlement = batched(q, lambda _: {"a": verdict, "b": Done()})

        assert settlement == Settlement(completed=("b",), retried=("a",), finished=True)
        assert "cannot be read" in job(q, "a").error

    def test_a_verdict_for_a_stranger(self, q: BatchQueue, caplog: pytest.LogCaptureFixture) -> None:
        """A job that was not in the claim is untouched, listed as unknown and named in the log."""
        added(q, "a")
        q.add("later", delay="1m")

        claim, settlement = batched(q, lambda _: {"a": Done(), "later": Dead("x"), "never": Done()})

        assert settlement == Settlement(completed=("a",), finished=True)
        assert claim.unknown == ["later", "never"]
        assert "later, never" in caplog.text
        assert place_of(q, "later") == "scheduled"

    @pytest.mark.parametrize("answer", [None, [], "abc", 5, [("a", Done())], {"a"}], ids=repr)
    def test_an_answer_that_is_none(self, q: BatchQueue, answer: Any) -> None:  # noqa: ANN401 - what cannot be read
        """An answer that is no mapping is the program's fault: it stops, and charges no job without a verdict."""
        added(q, "abc")

        def handle(part: Part) -> Mapping[str, Verdict]:
            part.record("b", Done())
            return answer  # type: ignore[no-any-return]

        with pytest.raises(HandlerContractError, match=type(answer).__name__):
            q.consumer(batch=handle).run(burst=True)
        assert places(q) == {"waiting": ["a", "c"]}
        assert [one.attempts for one in q.jobs("waiting")] == [0, 0]

    def test_an_answer_that_is_to_be_awaited(self, q: BatchQueue) -> None:
        """What does nothing when it is called is refused; where it is answered all the same, no job counts as done."""
        added(q, "ab")

        async def handle(_: object) -> None: ...

        def yields(_: object) -> Iterator[None]:
            yield

        for lazy in (handle, yields):
            with pytest.raises(InvalidValueError, match=r"asyncio\.run"):
                q.consumer(each=lazy)
        with pytest.raises(HandlerContractError, match="generator"):
            q.consumer(each=lambda _: yields(None)).run(burst=True)
        coroutines = []

        def hidden(job: Job) -> object:
            coroutines.append(handle(job))
            return coroutines[0]

        with pytest.raises(HandlerContractError, match="coroutine"):
            q.consumer(each=hidden).run(burst=True)
        coroutines[0].close()
        assert places(q) == {"waiting": ["a", "b"]}

    def test_nothing_answered_where_all_was_said(self, q: BatchQueue) -> None:
        """A handler that recorded a verdict for every job need not answer."""
        added(q, "ab")

        def handle(part: Part) -> None:
            for one in part:
                with part.attempt(one):
                    assert one.id != "b"

        assert batched(q, handle)[1] == Settlement(completed=("a",), retried=("b",), finished=True)

    def test_a_recorded_verdict_stands(self, q: BatchQueue) -> None:
        """A verdict that was recorded stands against the one answered."""
        added(q, "a")

        def handle(part: Part) -> Mapping[str, Verdict]:
            part.record("a", Delay("1m"))
            return {"a": Done()}

        assert batched(q, handle)[1].delayed == ("a",)

    def test_a_batch_handler_that_raises(self, q: BatchQueue) -> None:
        """What a batch handler recorded before it raised stands, the rest is retried with what it said."""
        added(q, "abc")

        def handle(part: Part) -> Mapping[str, Verdict]:
            part.record("b", Done())
            raise OSError("disk full")

        assert batched(q, handle)[1] == Settlement(completed=("b",), retried=("a", "c"), finished=True)
        assert job(q, "a").error == "OSError: disk full"

    @pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
    @pytest.mark.parametrize("kind", ["each", "batch", "bisect"])
    def test_an_interrupt_in_a_handler(self, q: BatchQueue, interrupt: type[BaseException], kind: str) -> None:
        """An interrupt goes through the consumer; jobs without a verdict are released, and the end is reported."""
        added(q, "abc")
        seen: list[Settlement] = []

        def one(found: Job) -> object:
            if found.id == "b":
                raise interrupt
            return None

        def all_of(part: Part) -> Mapping[str, Verdict]:
            part.record("a", Done())
            raise interrupt

        def note(_: Claim, settlement: Settlement) -> None:
            seen.append(settlement)

        if kind == "each":
            consumer = q.consumer(each=one, on_settled=note)
        else:
            consumer = q.consumer(batch=all_of, bisect=kind == "bisect", on_settled=note)
        with pytest.raises(interrupt):
            consumer.run(burst=True)

        assert seen == [Settlement(completed=("a",), released=("b", "c"), finished=True)]
        assert [found.attempts for found in q.jobs("waiting")] == [0, 0]

    def test_a_lost_job_is_not_begun(self, q: BatchQueue) -> None:
        """A handler of a job is not called for one that is known to be lost."""
        added(q, "abc")
        called = []

        def handle(one: Job) -> None:
            called.append(one.id)
            if one.id == "a":
                q.remove(["b"], force=True)
                claim.extend()

        consumer = q.consumer(each=handle)
        claim = taken(q)
        consumer.work(claim)

        assert called == ["a", "c"]
        assert claim.settlement == Settlement(completed=("a", "c"), lost=("b",), finished=True)

    def test_an_answer_for_a_lost_job_is_settled_late(self, q: BatchQueue, harness: Harness) -> None:
        """What a batch handler answers for a job that was swept meanwhile still counts, while nobody else has it."""
        added(q, "abc")

        def handle(_: Part) -> Mapping[str, Verdict]:
            harness.clock.advance("30s")
            q.sweep()
            claim.extend()
            return {"a": Done(), "b": Done()}

        claim = taken(q)
        q.consumer(batch=handle).work(claim)

        assert claim.settlement == Settlement(completed=("a", "b"), lost=("c",), finished=True)
        assert (places(q), job(q, "c").attempts) == ({"waiting": ["c"]}, 0)


def poisoned(*names: str, runs: list[int]) -> Callable[[Part], Mapping[str, Verdict]]:
    """Answer a batch handler that raises wherever one of these jobs is."""

    def handle(part: Part) -> Mapping[str, Verdict]:
        runs.append(len(part))
        for one in part:
            if one.id in names:
                raise ValueError(f"poison: {one.id}")
        return {one.id: Done() for one in part}

    return handle


class Bisecting(JobTests):
    """Finding the job that makes a batch handler raise."""

    @pytest.mark.parametrize("culprit", [0, 17, 49])
    def test_only_the_culprit_is_charged(self, q: BatchQueue, culprit: int) -> None:
        """Of fifty jobs with one that raises each time, forty-nine are done and that one is charged, once."""
        names = [f"job-{number:02}" for number in range(50)]
        added(q, names)
        runs: list[int] = []

        claim, settlement = batched(q, poisoned(names[culprit], runs=runs), bisect=True)

        assert settlement.retried == (names[culprit],)
        assert len(settlement.completed) == 49
        assert settlement.finished
        assert (job(q, names[culprit]).attempts, job(q, names[culprit]).error) == (
            1,
            f"ValueError: poison: {names[culprit]}",
        )
        assert len(runs) <= 2 * 6 + 1
        assert claim.settlement == settlement

    def test_good_halves_are_settled_before_the_rest_is_run(self, q: BatchQueue) -> None:
        """What a half achieved is settled at once, so that a later crash does not cost it."""
        added(q, "abcd")
        waiting: list[dict[str, list[str]]] = []

        def handle(part: Part) -> Mapping[str, Verdict]:
            waiting.append(places(q))
            if any(one.id == "d" for one in part):
                raise ValueError
            return {one.id: Done() for one in part}

        batched(q, handle, bisect=True)

        assert waiting == [
            {"active": ["a", "b", "c", "d"]},
            {"active": ["a", "b", "c", "d"]},
            {"active": ["c", "d"]},
            {"active": ["c", "d"]},
            {"active": ["d"]},
        ]

    def test_several_culprits(self, q: BatchQueue) -> None:
        """Each of several culprits is found."""
        names = [f"{number:02}" for number in range(32)]
        added(q, names)

        _, settlement = batched(q, poisoned("03", "20", runs=[]), bisect=True)

        assert settlement.retried == ("03", "20")
        assert len(settlement.completed) == 30

    @pytest.mark.parametrize(("size", "most"), [(1, 1), (2, 4), (3, 8), (50, 24)])
    def test_an_outage_does_not_run_for_ever(self, q: BatchQueue, size: int, most: int) -> None:
        """Where all raise, the handler is called a bounded number of times, and then the rest is retried."""
        names = [f"{number:02}" for number in range(size)]
        added(q, names)
        runs: list[int] = []

        _, settlement = batched(q, poisoned(*names, runs=runs), bisect=True)

        assert settlement.retried == tuple(names)
        assert len(runs) <= most
        assert runs[0] == size

    def test_the_bound_holds_after_successes_too(self, q: BatchQueue) -> None:
        """The number of calls is bounded also where every other one succeeds."""
        names = [f"{number:03}" for number in range(128)]
        added(q, names)
        runs: list[int] = []

        claim, settlement = batched(q, poisoned(*names[::3], runs=runs), bisect=True)

        assert len(runs) <= 4 * 6
        assert not {"000", "003"}.intersection(settlement.completed)
        assert sorted((*settlement.completed, *settlement.retried)) == sorted(one.id for one in claim)

    def test_a_recorded_verdict_is_no_part_of_the_search(self, q: BatchQueue) -> None:
        """Jobs that had a verdict when the handler raised are settled, and not run again."""
        added(q, "abcd")
        seen: list[list[str]] = []

        def handle(part: Part) -> Mapping[str, Verdict]:
            seen.append([one.id for one in part])
            if "a" in seen[-1]:
                part.record("a", Delay("1m"))
                raise ValueError
            return {one.id: Done() for one in part}

        assert batched(q, handle, bisect=True)[1] == Settlement(
            completed=("b", "c", "d"), delayed=("a",), finished=True
        )
        assert seen == [["a", "b", "c", "d"], ["b"], ["c", "d"]]

    def test_an_answer_that_is_none_stops_the_search(self, q: BatchQueue) -> None:
        """A fault of the program in the middle of a search releases what is left, and stops."""
        added(q, "abcd")

        def handle(part: Part) -> Any:  # noqa: ANN401 - what cannot be read
            if len(part) == 4:
                raise ValueError
            return None

        with pytest.raises(HandlerContractError):
            q.consumer(batch=handle, bisect=True).run(burst=True)
        assert places(q) == {"waiting": ["a", "b", "c", "d"]}
        assert {one.attempts for one in q.jobs("waiting")} == {0}

    def test_the_search_is_under_one_claim(self, q: BatchQueue) -> None:
        """However often it runs, there is one claim and one delivery, and it goes on with the next claim."""
        added(q, "abcd")
        runs: list[int] = []
        consumer = q.consumer(batch=poisoned("c", runs=runs), bisect=True, max_size=4)
        consumer.step()
        added(q, "ef")
        consumer.step()

        assert job(q, "c").deliveries == 1
        assert places(q) == {"scheduled": ["c"]}
        assert runs[-1] == 2
