"""`check`: each kind of fault is named and mended, a working store raises no alarm, a large one takes no memory."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from typing_extensions import override

from batchstate import Association, Lifecycle, MembershipRecord, Retry, create_batch, retire, transition
from batchstate.checking import Fault, check_batches
from batchstate.entities import Batch
from batchstate.job_calls import ClaimRow, GroupCounts, QueueCounts
from batchstate.job_checking import check_jobs
from batchstate.jobs import Job
from batchstate.queue import BatchQueue
from batchstate.storage import Page
from batchstate.testing import FaultStore, ManualClock, record
from batchstate_memory import MemoryStorage, MemoryStore
from batchstate_sqlite import SQLiteStorage
from tests.beside import found_beside_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from batchstate.claims.context import JobStore
    from batchstate.errors import CorruptRowError
    from batchstate.jobs import Place
    from batchstate.storage import Kind, Unreadable

FLOW = Lifecycle.parse("queued > testing > queued; testing > merged | failed")


@pytest.fixture
def store() -> MemoryStorage:
    """Open a store with two batches."""
    store = MemoryStorage("q", MemoryStore(), clock=ManualClock())
    for name in ("a", "b"):
        create_batch(store, Batch(name, "q", "queued", request_ids=("r-1", f"r-{name}")), clock=store.clock)
    return store


def faults_of(store: JobStore, lifecycle: Lifecycle | None = FLOW) -> list[Fault]:
    """Answer all that is wrong, with whatever was just written."""
    return [*check_batches(store, lifecycle, settled_for=0, clock=store.now), *check_jobs(store)]


def named(faults: list[Fault]) -> list[tuple[str, str]]:
    """Answer each fault's kind and what it is of."""
    return [(fault.kind, fault.key) for fault in faults]


def planted(store: MemoryStorage, batch_id: str, **changes: Any) -> None:
    """Write fields of a row past all checks."""
    rows = store.store.rows("q").batches
    rows[batch_id] = rows[batch_id]._replace(**changes)


def _lost(store: MemoryStorage) -> None:
    del store.store.rows("q").batches["a"]


def _retired_and_filed(store: MemoryStorage) -> None:
    batch = _row(store)
    batch = transition(store, batch, "testing", lifecycle=FLOW, clock=store.clock)
    batch = transition(store, batch, "failed", lifecycle=FLOW, clock=store.clock)
    retire(store, batch, lifecycle=FLOW, clock=store.clock)
    store.store.rows("q").bucket("failed").put("a", batch.version)


def _moved_elsewhere(store: MemoryStorage) -> None:
    other = Lifecycle.parse("queued > elsewhere")
    transition(store, _row(store), "elsewhere", lifecycle=other, clock=store.clock)


def _row(store: MemoryStorage) -> Batch:
    row = store.get_batches(["a"])["a"]
    assert isinstance(row, Batch)
    return row


BROKEN: dict[str, Callable[[MemoryStorage], object]] = {
    "unreadable row": lambda store: planted(store, "a", attributes="no JSON"),
    "unfiled batch": lambda store: store.delete_records([MembershipRecord("q", "queued", "a", 1)]),
    "stale record": lambda store: store.put_records([MembershipRecord("q", "testing", "a", 1)]),
    "dangling record": _lost,
    "record of a retired batch": _retired_and_filed,
    "missing association": lambda store: store.store.rows("q").outcomes["r-1"].pop("a"),
    "unknown state": _moved_elsewhere,
    "broken marks": lambda store: planted(store, "a", marks="3x:abc 1:def"),
    "broken history": lambda store: planted(store, "a", moves='[null,"other",1,0,""]'),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_each_fault_of_a_batch_is_named(store: MemoryStorage, kind: str) -> None:
    """Whatever is wrong with a batch is named, with the batch, and nothing is said of the sound one beside it."""
    assert faults_of(store) == []
    BROKEN[kind](store)
    found = named(faults_of(store))
    assert (kind, "a") in found
    assert {key for _, key in found} == {"a"}


def test_what_was_just_written_is_not_judged(store: MemoryStorage) -> None:
    """A batch that was written a moment ago may be on its way, and is judged when it has rested."""
    BROKEN["unfiled batch"](store)
    BROKEN["missing association"](store)
    clock = store.clock
    assert isinstance(clock, ManualClock)
    assert list(check_batches(store, FLOW, settled_for="1m", clock=clock)) == []
    clock.advance("2m")
    assert len(list(check_batches(store, FLOW, settled_for="1m", clock=clock))) == 2


@pytest.fixture
def queue(store: MemoryStorage) -> BatchQueue:
    """Open a queue with jobs in every place."""
    queue = BatchQueue(store, FLOW, clock=store.clock)
    for number in range(6):
        queue.add(f"j{number}", group="g" if number % 2 else None)
    claim = queue.claim(1)
    assert claim is not None
    claim.settle({"j0": Retry("x", "1h")})
    assert queue.claim(2, group="g") is not None
    return queue


def _job(store: MemoryStorage, job_id: str, **changes: Any) -> None:
    rows = store.store.rows("q").jobs.rows
    rows[job_id] = rows[job_id]._replace(**changes)


def _claim(store: MemoryStorage) -> Any:
    [claim] = store.store.rows("q").jobs.claims.values()
    return claim


def _unheld(store: MemoryStorage) -> None:
    [claim] = store.store.rows("q").jobs.claims
    _job(store, "j2", claim=claim)
    _claim(store).held["j2"] = None


BROKEN_JOBS: dict[str, tuple[Callable[[MemoryStorage], object], str]] = {
    "unreadable row": (lambda store: _job(store, "j2", payload="no JSON"), "j2"),
    "orphaned job": (lambda store: store.store.rows("q").jobs.claims.clear(), "j1"),
    "claim without its job": (_unheld, "claim"),
    "stranger in a claim": (_unheld, "claim"),
    "empty claim": (lambda store: _claim(store).held.clear(), "claim"),
    "wrong count": (lambda store: store.store.rows("q").jobs.groups["g"].counts.update(active=7), "g"),
}


@pytest.mark.parametrize("kind", BROKEN_JOBS)
def test_each_fault_of_a_job_is_named(store: MemoryStorage, queue: BatchQueue, kind: str) -> None:
    """Whatever is wrong with a job, a claim or a group's counts is named."""
    assert faults_of(store) == []
    [claim] = store.store.rows("q").jobs.claims
    break_it, key = BROKEN_JOBS[kind]
    break_it(store)
    assert (kind, claim if key == "claim" else key) in named(list(check_jobs(queue.jobs_context.store)))


class Misfiling(MemoryStorage):
    """A storage that lists a job that waits among the dead as well."""

    @override
    def list_jobs(
        self, place: Place, group: str | None = None, cursor: str | None = None, *, limit: int = 500
    ) -> Page[Job | CorruptRowError]:
        page = super().list_jobs(place, group, cursor, limit=limit)
        return Page([*page.items, self.get_jobs(["j2"])["j2"]]) if place == "dead" else page


def test_a_job_in_two_places_is_named(store: MemoryStorage, queue: BatchQueue) -> None:
    """A job that is listed in one place and is in another is named."""
    assert queue.get_job("j2").place == "waiting"
    assert ("misplaced job", "j2") in named(list(check_jobs(Misfiling("q", store.store, clock=store.clock))))


def test_a_batch_purged_under_its_claim_is_no_fault(store: MemoryStorage, queue: BatchQueue) -> None:
    """A claim whose batch was purged holds its jobs until they are settled or swept, and nothing is wrong with it."""
    [claim] = queue.jobs_context.store.list_claims().items
    retired = retire(store, queue.get(claim.id), clock=store.clock)
    assert faults_of(store) == []
    assert store.delete_batches([retired], ["claimed"]) == [None]
    assert faults_of(store) == []


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
def test_no_alarm_beside_workers(backend: str, tmp_path: Path) -> None:
    """While threads move batches and claim, settle and add jobs, a check finds nothing wrong, nor does one after it."""
    shared = MemoryStore()

    def opened() -> JobStore:
        if backend == "memory":
            return MemoryStorage("q", shared)
        return SQLiteStorage(tmp_path / "q.db", "q", synchronous="NORMAL", timeout="60s")

    assert found_beside_workers(opened, workers=2, steps=40) == []


class Paged(MemoryStorage):
    """A storage that makes its rows while they are read, so that the memory that is measured is the check's own.

    Of each number there is a batch, and a job that is held by a claim. Four of them are wrong.
    """

    def __init__(self, rows: int, template: Batch) -> None:
        super().__init__("q", MemoryStore(), clock=ManualClock())
        self.rows = rows
        self.template = template

    def row(self, number: int) -> Batch:
        """Make a row."""
        known = self.template
        requests = (f"r{number}",)
        return Batch(f"b{number:06}", "q", "queued", 1, 1, requests, {}, known.history, memory=known.memory)

    def page(self, cursor: str | None, limit: int) -> tuple[range, str | None]:
        """Answer the numbers of a page and the cursor of the next."""
        start = int(cursor or 0)
        following = str(start + limit) if start + limit < self.rows else None
        return range(start, min(start + limit, self.rows)), following

    @override
    def get_batches(self, ids: Iterable[str]) -> dict[str, Batch | Unreadable]:
        return {name: self.row(int(name[1:])) for name in ids if name.startswith("b")}

    @override
    def get_records(self, keys: Iterable[tuple[str, str]]) -> list[MembershipRecord]:
        return [MembershipRecord("q", state, name, 1) for state, name in keys if name != "b000777"]

    @override
    def list_associations(self, request_id: str) -> list[Association]:
        return [] if request_id == "r888" else [Association("q", request_id, f"b{int(request_id[1:]):06}")]

    @override
    def scan(self, kind: Kind, cursor: str | None = None, *, limit: int = 500) -> Page[object]:
        numbers, following = self.page(cursor, limit)
        rows = [self.row(number) for number in numbers]
        items: list[object] = list(rows)
        if kind == "records":
            items = [MembershipRecord("q", row.state, row.id, 1) for row in rows]
        elif kind == "associations":
            items = [found for row in rows for name in row.request_ids for found in self.list_associations(name)]
        return Page(items, following)

    @override
    def list_claims(self, cursor: str | None = None, *, limit: int = 500) -> Page[ClaimRow]:
        numbers, following = self.page(cursor, limit)
        return Page([ClaimRow(f"c{n}", 1, ((f"j{n}", 1),)) for n in numbers if n != 555], following)

    @override
    def list_jobs(
        self, place: Place, group: str | None = None, cursor: str | None = None, *, limit: int = 500
    ) -> Page[Job | CorruptRowError]:
        numbers, following = self.page(cursor, limit)
        jobs = self.get_jobs(f"j{number}" for number in numbers)
        return Page(list(jobs.values()), following) if place == "active" else Page([])

    @override
    def get_jobs(self, ids: Iterable[str]) -> dict[str, Job | CorruptRowError]:
        return {name: Job(name, "q", place="active", claim=f"c{name[1:]}") for name in ids}

    @override
    def count_jobs(self) -> QueueCounts:
        return QueueCounts((GroupCounts(None, active=self.rows - 3),))


def memory_of_check(rows: int, template: Batch) -> int:
    """Check a store of so many batches, claims and jobs, find the four faults, and answer the greatest memory."""
    large = Paged(rows, template)
    tracemalloc.start()
    try:
        found = named([*check_batches(large, FLOW, settled_for=0, clock=large.clock), *check_jobs(large)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [
        ("unfiled batch", "b000777"),
        ("missing association", "b000888"),
        ("orphaned job", "j555"),
        ("wrong count", "(jobs without a group)"),
    ]
    return peak


def test_more_rows_take_no_more_memory(store: MemoryStorage) -> None:
    """A check of 6,000 batches, claims and jobs takes as much memory as one of 1,500, but for what is by chance."""
    few, many = (memory_of_check(rows, _row(store)) for rows in (1_500, 6_000))
    assert many - few < 100_000
    assert many < 4_000_000


def test_a_sound_store_is_not_asked_request_by_request(store: MemoryStorage) -> None:
    """The associations of a sound store are gone through page by page, however many requests a batch has."""
    create_batch(store, Batch("c", "q", "queued", request_ids=tuple(f"c-{n}" for n in range(3_000))))
    notes = record()
    assert list(check_batches(FaultStore(store, notes), FLOW, settled_for=0)) == []
    assert [call for call in notes.calls if call.method == "list_associations"] == []
