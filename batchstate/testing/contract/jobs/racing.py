"""Several workers at once, in threads of one process."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from batchstate.claims.claim import Claim
from batchstate.claims.methods import JobSpec
from batchstate.job_calls import Claimed
from batchstate.jobs import Done, Retry
from batchstate.testing.contract.jobs.base import (
    JobTests,
    Queues,
    added,
    batch_of,
    group_of,
    ids,
    job,
    outcomes,
    places,
    taken,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Racing"]


def at_once(queues: Queues, number: int, work: Callable[[BatchQueue, int], object]) -> None:
    """Do `work` in so many threads at once, each with a queue of its own and its number; raise what one raises."""
    opened = [queues() for _ in range(number)]
    start = threading.Barrier(number)

    def run(place: int) -> None:
        start.wait(30)
        work(opened[place], place)

    with ThreadPoolExecutor(number) as pool:
        for done in [pool.submit(run, place) for place in range(number)]:
            done.result()


class Racing(JobTests):
    """What must hold when several do something at the same time."""

    def test_two_claimers(self, queues: Queues, harness: Harness) -> None:
        """Two that claim six of ten at the same time get ten in all, and none of them twice."""
        for number in range(max(2, min(20, harness.scale // 100))):
            q = queues()
            added(q, [f"{number}-{letter}" for letter in "abcdefghij"])
            got: list[list[str]] = []
            at_once(queues, 2, lambda mine, _, got=got: got.append(ids(mine.claim(6) or ())))  # type: ignore[misc]

            assert sorted(len(found) for found in got) == [4, 6]
            assert len({name for found in got for name in found}) == 10

    def test_many_claimers_until_nothing_is_left(self, queues: Queues, harness: Harness) -> None:
        """Threads that claim by one and by seven until nothing is left take each job once, and miss none."""
        total = min(1000, harness.scale)
        names = [f"job-{number:04}" for number in range(total)]
        q = queues()
        q.add_many([JobSpec(name) for name in names])
        got: list[str] = []

        def work(mine: BatchQueue, place: int) -> None:
            for claim in mine.claims(7 if place % 2 else 1):
                got.extend(ids(claim))
                assert claim.settle({one.id: Done() for one in claim}).ok

        at_once(queues, harness.threads, work)

        assert sorted(got) == names
        assert places(q) == {}

    def test_a_ceiling_of_one(self, queues: Queues, harness: Harness) -> None:
        """With a ceiling of one, however many claim at once, never are two of the group in flight."""
        q = queues()
        q.set_ceiling(1, group="g")
        added(q, [f"{number}" for number in range(min(50, harness.scale))], group="g")
        in_flight = 0
        most = 0
        lock = threading.Lock()

        def work(mine: BatchQueue, _: int) -> None:
            nonlocal in_flight, most
            for _ in range(1000):
                claim = mine.claim(5)
                if claim is None:
                    if not mine.counts().groups[0].waiting:
                        return
                    continue
                with lock:
                    in_flight += len(claim)
                    most = max(most, in_flight)
                with lock:
                    in_flight -= len(claim)
                claim.settle({one.id: Done() for one in claim})

        at_once(queues, min(4, harness.threads), work)

        assert most == 1
        assert group_of(q, "g") == {}

    def test_many_sweepers(self, queues: Queues, harness: Harness) -> None:
        """Of four that sweep at once each lapsed job is reported by exactly one, moved once, and has one stall."""
        names = [f"{number:03}" for number in range(min(100, harness.scale))]
        q = queues()
        added(q, names)
        claims = [taken(q, 10) for _ in range(len(names) // 10)]
        harness.clock.advance("30s")
        returned: list[str] = []
        ended: list[str] = []

        def work(mine: BatchQueue, _: int) -> None:
            while True:
                swept = mine.sweep(limit=7)
                returned.extend(swept.returned)
                ended.extend(swept.ended)
                if not swept.returned:
                    return

        at_once(queues, 4, work)

        assert sorted(returned) == names
        assert sorted(ended) == sorted(claim.id for claim in claims)
        assert Counter(one.stalls for one in q.jobs("waiting")) == {1: len(names)}
        assert {batch_of(q, claim) for claim in claims} == {("abandoned", 2)}

    def test_extending_beside_settling(self, queues: Queues, harness: Harness) -> None:
        """Extending while another thread settles the same claim reports no loss that is none, and raises nothing."""
        q = queues()
        for _ in range(max(5, min(100, harness.scale // 20))):
            added(q, "abc")
            claim = taken(q)
            lost: list[tuple[str, ...]] = []

            def work(
                mine: BatchQueue, place: int, claim_id: str = claim.id, lost: list[tuple[str, ...]] = lost
            ) -> None:
                store = mine.jobs_context.store
                if place:
                    lost.extend(store.extend_claim(claim_id, 30_000).lost for _ in range(3))
                else:
                    same = mine.claim_of(claim_id)
                    for name in "abc":
                        assert same.settle({name: Done()}).completed == (name,)

            at_once(queues, 2, work)
            assert set(lost) == {()}
            assert batch_of(q, claim) == ("settled", 2)
            q.remove(["a", "b", "c"])

    def test_the_last_two_settled_at_once(self, queues: Queues, harness: Harness) -> None:
        """Of two that settle a claim's last two jobs at the same time, exactly one ends it."""
        q = queues()
        for _ in range(max(3, min(30, harness.scale // 50))):
            added(q, "ab")
            claim = taken(q)
            first: list[bool] = []

            def work(mine: BatchQueue, place: int, claim_id: str = claim.id, first: list[bool] = first) -> None:
                settlement = _same(mine, claim_id).settle({"ab"[place]: Done()})
                assert settlement.ok
                first.append(settlement.finished)

            at_once(queues, 2, work)
            assert True in first
            assert batch_of(q, claim) == ("settled", 2)
            q.remove(["a", "b"])

    def test_settling_beside_sweeping(self, queues: Queues, harness: Harness) -> None:
        """A job that is settled and swept at the same time is settled, in time or late, and its slot freed once."""
        q = queues()
        q.set_ceiling(2, group="g")
        for _ in range(max(3, min(30, harness.scale // 50))):
            added(q, "ab", group="g")
            claim = taken(q)
            harness.clock.advance("30s")

            def work(mine: BatchQueue, place: int, claim_id: str = claim.id) -> None:
                if place:
                    mine.sweep()
                else:
                    assert _same(mine, claim_id).settle({"a": Done(), "b": Retry("no", "1h")}).ok

            at_once(queues, 2, work)
            assert (outcomes(q, "a")[-1], outcomes(q, "b")[-1]) == ("completed", "retried")
            assert group_of(q, "g") == {"scheduled": 1}
            assert job(q, "b").attempts == 1
            q.remove(["a", "b"])

    def test_one_storage_for_many_threads(self, queues: Queues, harness: Harness) -> None:
        """One queue object may be used from several threads at once, for everything."""
        q = queues()
        total = min(160, harness.scale)

        def work(_: BatchQueue, place: int) -> None:
            for number in range(total // 8):
                q.add(f"{place}-{number}", group=f"g{place % 3}")
                claim = q.claim(3)
                if claim is not None:
                    with claim:
                        for one in claim:
                            claim.record(one, Done())
                q.counts()
                q.sweep()

        at_once(queues, 8, work)
        for claim in q.claims(50):
            claim.settle({one.id: Done() for one in claim})

        assert places(q) == {}
        assert [len(q.attempts(f"{place}-{number}")) for place in range(8) for number in range(total // 8)] == [1] * (
            total // 8 * 8
        )


def _same(q: BatchQueue, claim_id: str) -> Claim:
    """Answer a claim as a worker holds it, whether or not it still holds anything."""
    batch = q.get(claim_id)
    return Claim(q.jobs_context, Claimed(batch, (), 0), 30_000)
