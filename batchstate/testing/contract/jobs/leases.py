"""The lease: one for all jobs of a claim, extended in one write; one job's may be longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.errors import ClaimLostError
from batchstate.jobs import Done, Retry, Settlement
from batchstate.testing.contract.jobs.base import (
    JobTests,
    Queues,
    added,
    everything_of,
    ids,
    job,
    jobs_of,
    noted,
    place_of,
    places,
    served,
    taken,
)

if TYPE_CHECKING:
    from batchstate.queue import BatchQueue
    from batchstate.testing.harness import Harness

__all__ = ["Leases"]


class Leases(JobTests):
    """Holding on, letting go, and losing."""

    def test_an_extended_lease_ends_later(self, q: BatchQueue, harness: Harness) -> None:
        """Extending sets the end to now and the length given, and a sweep goes by that, to the millisecond."""
        added(q, "ab")
        claim = taken(q)
        harness.clock.advance("20s")

        extended = claim.extend("30s")

        assert extended
        assert (extended.held, extended.lost, extended.expires_at) == (2, (), harness.clock() + 30_000)
        assert claim.expires_at == job(q, "a").expires_at == extended.expires_at
        harness.clock.advance("29.999s")
        assert not q.sweep().returned
        harness.clock.advance("1ms")
        assert q.sweep().returned == ("a", "b")

    def test_a_shorter_lease_ends_earlier(self, q: BatchQueue, harness: Harness) -> None:
        """Extending by less than what is left shortens the lease."""
        added(q, "a")
        claim = taken(q, lease="10m")

        assert claim.extend("5s").expires_at == harness.clock() + 5_000
        harness.clock.advance("4.999s")
        assert not q.sweep().returned
        harness.clock.advance("1ms")
        assert q.sweep().returned == ("a",)

    def test_a_lease_is_extended_by_its_length(self, q: BatchQueue, harness: Harness) -> None:
        """Without a length a lease is extended by the length it had last."""
        added(q, "a")
        claim = taken(q, lease="1m")
        harness.clock.advance("10s")

        assert claim.extend().expires_at == harness.clock() + 60_000
        claim.extend("5s")
        assert claim.extend().expires_at == harness.clock() + 5_000

    def test_a_lease_is_counted_in_milliseconds(self, q: BatchQueue, harness: Harness) -> None:
        """A lease of one and a half seconds lives after 1.4 and has ended after 1.6."""
        added(q, "a")
        taken(q, lease="1500ms")

        harness.clock.advance("1.4s")
        assert not q.sweep().returned
        harness.clock.advance("0.2s")
        assert q.sweep().returned == ("a",)

    def test_extending_names_what_was_lost(self, q: BatchQueue) -> None:
        """Extending a claim names the job that was removed, not the one that was settled, and extends the rest."""
        added(q, "abc")
        claim = taken(q)
        claim.settle({"a": Done()})
        q.remove(["b"], force=True)

        extended = claim.extend()

        assert not extended
        assert (extended.held, extended.lost) == (1, ("b",))
        assert claim.lost == {"b"}
        assert place_of(q, "a") == "gone"

    def test_one_lost_of_five(self, q: BatchQueue, harness: Harness) -> None:
        """One job whose lease was not extended with the others is lost alone; the others end at one new instant."""
        added(q, "abcde")
        told: list[tuple[str, ...]] = []
        claim = q.claim(5, lease="30s", on_lost=lambda _, lost: told.append(tuple(lost)))
        assert claim is not None
        for name in "abde":
            claim.extend_job(name, "60s")
        harness.clock.advance("30s")
        assert q.sweep().returned == ("c",)

        extended = claim.extend("2m")

        assert (extended.held, extended.lost, extended.expires_at) == (4, ("c",), harness.clock() + 120_000)
        assert {job(q, name).expires_at for name in "abde"} == {extended.expires_at}
        claim.extend()
        assert told == [("c",)]

    def test_one_job_may_be_held_longer(self, q: BatchQueue, harness: Harness) -> None:
        """A job whose own lease was extended stays when the claim's lapses, until its own has lapsed too."""
        added(q, "abc")
        claim = taken(q)

        extended = claim.extend_job("b", "90s")

        assert extended
        assert (extended.held, extended.expires_at) == (1, harness.clock() + 90_000)
        harness.clock.advance("30s")
        swept = q.sweep()
        assert (swept.returned, swept.ended) == (("a", "c"), ())
        assert places(q) == {"waiting": ["a", "c"], "active": ["b"]}
        harness.clock.advance("59.999s")
        assert not q.sweep().returned
        assert (claim.extend().held, claim.lost) == (1, {"a", "c"})
        harness.clock.advance("30s")
        assert q.sweep().returned == ("b",)

    def test_a_jobs_lease_is_never_shortened(self, q: BatchQueue, harness: Harness) -> None:
        """Extending one job by less than it has, changes nothing; neither does shortening its claim's lease."""
        added(q, "ab")
        claim = taken(q, lease="60s")
        until = harness.clock() + 60_000

        assert claim.extend_job("a", "5s").expires_at == until
        assert claim.extend_job("a", "90s").expires_at == until + 30_000
        assert claim.extend_job("a", "70s").expires_at == until + 30_000
        claim.extend_job("b", "5s")
        claim.extend("1s")
        assert (job(q, "a").expires_at, job(q, "b").expires_at) == (until + 30_000, harness.clock() + 5_000)
        claim.extend("10m")
        assert job(q, "a").expires_at == harness.clock() + 600_000

    def test_a_job_extended_once_is_not_extended_the_next_time(self, q: BatchQueue, harness: Harness) -> None:
        """What a job was extended by ends with the lease it was extended in."""
        added(q, "a")
        claim = taken(q)
        claim.extend_job("a", "10m")
        claim.release()

        assert taken(q).jobs[0].expires_at == harness.clock() + 30_000
        harness.clock.advance("30s")
        assert q.sweep().returned == ("a",)

    def test_extending_is_one_write(self, queues: Queues) -> None:
        """A claim is extended in one call, whatever its size, by the keeper too."""
        q, notes = noted(queues)
        added(q, [f"job-{number}" for number in range(45)])
        claim = taken(q)
        notes.calls.clear()

        assert claim.extend().held == 45
        assert claim.keep()
        assert notes.methods == ["extend_claim", "extend_claim"]

    def test_extending_what_is_over(self, q: BatchQueue, harness: Harness) -> None:
        """A claim that was released or settled, or never was, gets no lease, and nothing is raised."""
        added(q, "ab")
        claim = taken(q)
        claim.release()
        taken(q).settle({"a": Done(), "b": Retry("no")})
        before = everything_of(q)

        for extended in (
            claim.extend(),
            claim.extend_job("a", "1h"),
            jobs_of(q).extend_claim("never", 1000),
            jobs_of(q).extend_job("never", "b", 1000),
        ):
            assert not extended
            assert (extended.held, extended.expires_at) == (0, None)
        assert jobs_of(q).extend_claim("never", 1000).lost == ()
        assert claim.extend().lost == ()
        assert not claim.keep()
        assert everything_of(q) == before
        harness.clock.advance("1d")
        assert q.sweep().returned == ()

    def test_a_settled_job_is_not_held_again(self, q: BatchQueue) -> None:
        """Extending after a part was settled holds the rest, names nothing lost, and the settled one gets no lease."""
        added(q, "abc")
        claim = taken(q)
        claim.settle({"b": Retry("no")})

        assert (claim.extend().held, claim.lost) == (2, set())
        assert claim.extend_job("b", "1h").lost == ()
        assert job(q, "b").expires_at is None

    def test_swept_and_claimed_by_another(self, q: BatchQueue, harness: Harness) -> None:
        """The former holder's every call is refused; the new one completes."""
        added(q, "a")
        old = taken(q)
        harness.clock.advance("30s")
        q.sweep()
        new = taken(q)

        assert (old.extend().lost, old.extend_job("a", "1h").lost) == (("a",), ("a",))
        assert old.settle({"a": Done()}).lost == ("a",)
        assert old.release().released == ()
        assert new.settle({"a": Done()}) == Settlement(completed=("a",), finished=True)

    def test_a_newcomer_needs_no_memory(self, queues: Queues, harness: Harness) -> None:
        """After the lease of a dead worker a fresh process sweeps once, claims once, and has the job."""
        added(queues(), "a")
        taken(queues())
        harness.clock.advance("30s")

        newcomer = queues()
        assert newcomer.sweep().returned == ("a",)
        assert served(newcomer) == ["a"]

    def test_long_work_under_a_short_lease(self, q: BatchQueue, harness: Harness) -> None:
        """Work of ten leases that is extended at each half is never swept; when that stops, one lease later it is."""
        added(q, "a")
        claim = taken(q)
        for _ in range(20):
            harness.clock.advance("15s")
            assert claim.extend()
            assert not q.sweep().returned
        assert (job(q, "a").deliveries, job(q, "a").stalls) == (1, 0)

        harness.clock.advance("30s")
        assert q.sweep().returned == ("a",)

    def test_a_claim_is_taken_up_in_another_process(self, queues: Queues, harness: Harness) -> None:
        """Whoever knows a claim's ID can extend and settle what it still holds; the lease is not restarted by that."""
        q = queues()
        added(q, "abc")
        first = taken(q)
        first.settle({"b": Done()})
        harness.clock.advance("10s")

        second = queues().claim_of(first.id, lease="1m")

        assert (ids(second), second.id, second.expires_at) == (["a", "c"], first.id, first.expires_at)
        assert second.batch == q.get(first.id)
        assert second.extend().expires_at == harness.clock() + 60_000
        assert second.settle({"a": Done()}).completed == ("a",)
        assert second.settle({"c": Retry("no")}).finished
        with pytest.raises(ClaimLostError, match=first.id):
            queues().claim_of(first.id)
        assert first.settle({"a": Done(), "c": Done()}) == Settlement(completed=("a",), retried=("c",), finished=True)
