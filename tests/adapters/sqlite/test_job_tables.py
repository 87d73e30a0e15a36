"""The tables of jobs agree with each other after whatever calls, and come to files that had none."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Literal, TypeAlias

import pytest

from batchstate.errors import BatchStateError, CorruptRowError
from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate.jobs import Job
from batchstate.listing import list_by_states
from batchstate.testing import ManualClock
from batchstate_sqlite import SQLiteStorage, schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from sqlite3 import Cursor

    from batchstate.entities import Batch

Verdict: TypeAlias = Literal["complete", "retry", "delay", "dead", "release"]

IDS = [f"j{number}" for number in range(12)]
GROUPS = ["", "a", "b"]
VERDICTS: list[Verdict] = ["complete", "retry", "delay", "dead", "release"]


def rows_of(table: str) -> Callable[[Cursor], tuple[int]]:
    """Answer what counts the rows of a table."""
    return lambda cursor: cursor.execute(f"SELECT count(*) FROM batchstate_{table}").fetchone()  # noqa: S608 - a constant


class Walk:
    """Calls a storage at random."""

    def __init__(self, store: SQLiteStorage, clock: ManualClock, seed: int) -> None:
        self.store = store
        self.clock = clock
        self.choose = random.Random(seed)
        self.claims = ["none"]

    def step(self) -> None:
        """Do one call, whatever it answers."""
        calls = (
            self.add,
            self.claim,
            self.claim,
            self.settle,
            self.settle,
            self.lease,
            self.sweep,
            self.manage,
            self.limit,
        )
        self.clock.advance(self.choose.choice([0, 0, 0.005, 0.02]))
        self.choose.choice(calls)()

    def add(self) -> None:
        """Add some, due at once or later."""
        for name in self.choose.sample(IDS, 3):
            group, delay = self.choose.choice(GROUPS), self.choose.choice([0, 0, 5, 30])
            self.store.add_jobs([NewJob(name, "1", group, self.choose.choice([1, 2]), delay, again=True)])

    def claim(self) -> None:
        """Claim by turn, across groups, or from one group."""
        group = self.choose.choice([None, None, *GROUPS])
        across = group is None and self.choose.random() < 0.5
        claim_id = f"c{len(self.claims)}"
        if self.store.claim_jobs(Claiming(claim_id, self.choose.choice([1, 3, 7]), 20, "m", group, across)):
            self.claims.append(claim_id)

    def settle(self) -> None:
        """Settle some of the latest claims' jobs, theirs or not."""
        settlings = [
            Settling(name, self.choose.choice(VERDICTS), "no", self.choose.choice([0, 5]))
            for name in self.choose.choices(IDS, k=4)
        ]
        claim_id = self.choose.choice(self.claims[-4:])
        self.store.settle_jobs(claim_id, settlings, keep_done=self.choose.choice([0, 10]))

    def lease(self) -> None:
        """Extend a claim, or one of its jobs."""
        claim_id = self.choose.choice(self.claims[-4:])
        self.store.extend_claim(claim_id, self.choose.choice([1, 30]))
        self.store.extend_job(claim_id, self.choose.choice(IDS), self.choose.choice([5, 60]))

    def sweep(self) -> None:
        """Sweep and purge, some or all."""
        self.store.sweep_jobs(self.choose.choice([1, 100]), max_stalls=1)
        self.store.purge_jobs(self.choose.choice([1, 100]), keep_dead=self.choose.choice([None, 50]))

    def manage(self) -> None:
        """Revive, remove, move."""
        names = self.choose.choices(IDS, k=2)
        self.store.revive_jobs(names)
        self.store.remove_jobs(self.choose.choices(IDS, k=2), force=self.choose.random() < 0.5)
        self.store.move_job(self.choose.choice(IDS), self.choose.choice(GROUPS))

    def limit(self) -> None:
        """Pause, resume, set ceilings."""
        self.store.set_paused(self.choose.choice([None, *GROUPS]), self.choose.choice([*[None] * 5, "closed"]))
        self.store.set_ceiling(self.choose.choice(GROUPS), self.choose.choice([None, None, 2]))


@pytest.mark.parametrize("seed", range(8))
def test_the_tables_agree_after_every_call(path: Path, check_jobs: Callable[[Path], None], seed: int) -> None:
    """Lines, lists, counts, leases and the ring say what the rows of jobs say, whatever was done in whatever order."""
    clock = ManualClock()
    with SQLiteStorage(path, "q", clock=clock, synchronous="NORMAL") as store:
        walk = Walk(store, clock, seed)
        for _ in range(150):
            walk.step()
            check_jobs(path)
        assert len(walk.claims) > 5


def test_a_file_from_before_there_were_jobs_gets_their_tables(
    path: Path, create: Callable[..., Batch], monkeypatch: pytest.MonkeyPatch, check_jobs: Callable[[Path], None]
) -> None:
    """Opening it keeps its batches, and jobs can be added, claimed and settled."""
    with monkeypatch.context() as earlier:
        earlier.setattr(schema, "STEPS", schema.STEPS[:1])
        with SQLiteStorage(path, "q") as store:
            create(store)
            with pytest.raises(BatchStateError, match="does not have the tables"):
                store.add_jobs([NewJob("j1", "1")])
    with SQLiteStorage(path, "q") as store:
        assert [batch.id for batch in list_by_states(store, ["queued"])] == ["b1"]
        assert store.add_jobs([NewJob("j1", "1")]) == ["added"]
        assert store.claim_jobs(Claiming("c1", 1, 1_000, "m")) is not None
        assert store.settle_jobs("c1", [Settling("j1", "complete")], keep_done=1_000).finished
        assert [batch.state for batch in list_by_states(store, ["queued", "claimed"])] == ["queued"]
    check_jobs(path)


def test_a_group_without_jobs_leaves_no_row(path: Path) -> None:
    """Groups that are made up by the thousand cost nothing once their jobs are gone, due ones neither."""
    with SQLiteStorage(path, "q", clock=lambda: 1_000) as store:
        names = [f"j{number}" for number in range(200)]
        store.add_jobs([NewJob(name, "1", f"group of {name}", delay=number % 2) for number, name in enumerate(names)])
        assert len(store.count_jobs().groups) == 200
        store.remove_jobs(names)
        for table in ("groups", "ring", "alarms", "line", "scheduled"):
            assert store.database.read(rows_of(table)) == (0,)


def test_what_sqlite_cannot_store_is_refused(path: Path) -> None:
    """A due time beyond 2**63 milliseconds is refused for that job, and the others are added."""
    with SQLiteStorage(path, "q") as store:
        refused, added = store.add_jobs([NewJob("j1", "1", due_at=2**63), NewJob("j2", "1", due_at=2**63 - 1)])
        assert isinstance(refused, BatchStateError)
        assert added == "added"


@pytest.mark.parametrize(
    "damage", ["payload = '{'", "attempts = -1", "payload = CAST(x'22ff22' AS TEXT)", "max_attempts = 'many'"]
)
def test_a_job_that_cannot_be_read_does_not_stand_in_the_way(
    path: Path, check_jobs: Callable[[Path], None], damage: str
) -> None:
    """It is put aside as dead, where it is seen, and those behind it are served at once and completely."""
    with SQLiteStorage(path, "q", clock=lambda: 1_000) as store:
        store.add_jobs([NewJob(name, "1") for name in ("bad", "b", "c")])
        with store.database.transaction() as cursor:
            cursor.execute(f"UPDATE batchstate_jobs SET {damage} WHERE id = 'bad'")  # noqa: S608 - a constant
        claimed = store.claim_jobs(Claiming("c1", 10, 1_000, "m"))
        assert claimed is not None
        assert [job.id for job in claimed.jobs] == ["b", "c"]
        assert (store.count_jobs().dead, store.count_jobs().waiting) == (1, 0)
        [seen] = store.list_jobs("dead").items
        assert isinstance(seen, CorruptRowError)
        assert seen.key == "bad"
        check_jobs(path)
        assert store.remove_jobs(["bad"]) == [None]
        check_jobs(path)


def test_a_job_of_a_newer_program_is_left_to_it(path: Path) -> None:
    """A claim that meets a row of a format that is not known yet says so, and changes nothing."""
    with SQLiteStorage(path, "q") as store:
        store.add_jobs([NewJob("new", "1")])
        with store.database.transaction() as cursor:
            cursor.execute("UPDATE batchstate_jobs SET format = 99")
        with pytest.raises(CorruptRowError, match="format"):
            store.claim_jobs(Claiming("c1", 10, 1_000, "m"))
        assert (store.count_jobs().dead, store.count_jobs().waiting) == (0, 1)


def test_a_claim_whose_batch_was_lost_lets_its_jobs_go(path: Path, check_jobs: Callable[[Path], None]) -> None:
    """Its jobs can be settled, and a sweep brings the others back, though there is no batch to move any more."""
    with SQLiteStorage(path, "q", clock=lambda: 1_000) as store:
        store.add_jobs([NewJob(name, "1") for name in "abc"])
        store.claim_jobs(Claiming("c1", 10, 1_000, "m"))
        with store.database.transaction() as cursor:
            cursor.execute("DELETE FROM batchstate_batches")
            cursor.execute("DELETE FROM batchstate_records")
        assert store.settle_jobs("c1", [Settling("b", "complete")], keep_done=0).outcomes == ("completed",)
        later = SQLiteStorage(store.database, "q", clock=lambda: 2_000)
        swept = later.sweep_jobs(100, max_stalls=1)
        assert (swept.returned, swept.ended) == (("a", "c"), ("c1",))
        assert [job.id for job in later.get_jobs("abc").values() if isinstance(job, Job)] == ["a", "c"]
    check_jobs(path)
