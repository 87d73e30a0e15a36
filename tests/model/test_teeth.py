"""The explorer can fail: with a fault put in, it finds what the fault does, and tells how it comes about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.advance import advance
from batchstate.entities import Batch
from batchstate.job_calls import NewJob
from batchstate.lifecycle import Lifecycle
from batchstate.listing import list_by_states, pages_of
from batchstate.testing.explorer import (
    CLOCK,
    CYCLE,
    LINE,
    Act,
    Actor,
    Message,
    Scope,
    Violation,
    Watch,
    explore,
    replay,
    retirement,
)
from batchstate.testing.explorer.job_messages import JobsAtStart, claiming, settling, sweeping
from batchstate.testing.explorer.job_promises import job_promises
from batchstate.testing.explorer.job_scopes import on_jobs
from batchstate.transition import ensure_record
from batchstate_memory import MemoryStorage
from tests.model.given import (
    ANY_BACK,
    ANY_THERE,
    BACK,
    BATCH,
    IN_C,
    THERE,
    memory,
    reader,
    worker,
)
from tests.model.stores import Unfenced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.entities import MembershipRecord
    from batchstate.job_calls import Settled, Settling
    from batchstate.storage import Outcome, Storage


def unfenced() -> Unfenced:
    """Make an empty store without the fence of versions."""
    return Unfenced("q")


def violation(scope: Scope, make: type | object = memory) -> Violation:
    """Explore, and answer the violation that is found; it is shown, too."""
    with pytest.raises(Violation) as caught:
        explore(scope, make)  # type: ignore[arg-type]
    print(caught.value)  # noqa: T201 - what a person is to read
    return caught.value


UNFENCED_STORY = """\
 without the fence: batch b is in A at v3, and no record names it
               at the start: b A v1 | A: b v1
  1. worker-1  takes 'move b A → B': reads batch b: in A at v1
  2. worker-1  swaps batch b A → B (v1 → v2)
                 now: b B v2 | A: b v1
  3. worker-1  puts the record of b under B (v2)
                 now: b B v2 | A: b v1, B: b v2
  4. worker-2  takes 'move b B → A': reads batch b: in B at v2
  5. worker-2  swaps batch b B → A (v2 → v3)
                 now: b A v3 | A: b v1, B: b v2
  6. worker-2  puts the record of b under A (v3)
                 now: b A v3 | A: b v3, B: b v2
  7. worker-1  deletes the record of b under A (up to v1)
                 now: b A v3 | B: b v2
  8. worker-2  deletes the record of b under B (up to v2)
                 now: b A v3 | no record""".removeprefix(" ")


def test_without_the_fence_a_batch_is_lost_on_a_cycle() -> None:
    """Two workers, no crash: the late delete of the first takes the record that the second has put."""
    scope = Scope(
        "without the fence", CYCLE, (worker(1, ANY_THERE, crashes=0), worker(2, ANY_BACK, crashes=0)), (BATCH,)
    )
    assert str(violation(scope, unfenced)) == UNFENCED_STORY


def test_without_the_fence_a_batch_is_lost_with_messages_that_say_which_visit_they_mean() -> None:
    """`entered` in the messages does not help: it is the records that need the fence."""
    scope = Scope("without the fence", CYCLE, (worker(1, THERE, crashes=0), worker(2, BACK, crashes=0)), (BATCH,))
    assert "no record names it" in violation(scope, unfenced).problem


def test_a_schedule_that_was_found_can_be_replayed() -> None:
    """On the store with the fault it breaks the same promise at the same step, on a sound one it breaks none."""
    scope = Scope("without the fence", CYCLE, (worker(1, THERE), worker(2, BACK)), (BATCH,))
    found = violation(scope, unfenced)

    with pytest.raises(Violation) as again:
        replay(found.schedule, scope, Unfenced("q"))
    assert str(again.value) == str(found)
    replay(found.schedule, scope, memory())


def test_a_listing_that_misses_a_batch_misses_it_in_a_replay_too() -> None:
    """A replay holds a listing to what was there throughout, as the search does."""
    plain = Message(
        "list B",
        lambda store: list_by_states(store, ["B"], lifecycle=CYCLE),
        watch=Watch(frozenset("B"), complete=True),
    )
    scope = Scope("a plain listing held to a complete one", CYCLE, (worker(1, THERE), reader(plain)), (BATCH,))
    found = violation(scope)
    with pytest.raises(Violation) as again:
        replay(found.schedule, scope, memory())
    assert str(again.value) == str(found)


def _delete_first(store: Storage) -> None:
    """Reconcile the wrong way round: the stale record first, then the one of the row's state."""
    for state in CYCLE.states:
        for page in pages_of(store, state, 500):
            for record in page:
                row = store.get_batches([record.batch_id])[record.batch_id]
                if isinstance(row, Batch) and row.state != record.state:
                    store.delete_records([record])
                    ensure_record(store, row)


def test_a_reconcile_that_deletes_first_leaves_a_moment_without_a_record() -> None:
    """Between a swap and its put the stale record is the only one, and no crash is needed to be there."""
    tidier = reader(Message("reconcile, deleting first", _delete_first))
    found = violation(Scope("delete first", CYCLE, (worker(1, THERE, crashes=0), tidier), (BATCH,)))

    assert str(found).splitlines() == [
        "delete first: batch b is in B at v2, and no record names it",
        "               at the start: b A v1 | A: b v1",
        "  1. worker-1  takes 'move b to B (entered v1)': reads batch b: in A at v1",
        "  2. worker-1  swaps batch b A → B (v1 → v2)",
        "                 now: b B v2 | A: b v1",
        "  3. reader    takes 'reconcile, deleting first': lists the records under A: b v1",
        "  4. reader    reads batch b: in B at v2",
        "  5. reader    deletes the record of b under A (up to v1)",
        "                 now: b B v2 | no record",
    ]


class _Careless(Lifecycle):
    """Believes that no edge lies on a cycle."""

    def on_cycle(self, source: str, to: str) -> bool:
        """Say no."""
        return source == to


def _by_source(source: str, to: str) -> Message:
    text = f"move b {source} → {to}"
    careless = _Careless.parse(str(CYCLE))

    def run(store: Storage) -> object:
        return advance(store, "b", to, source=source, lifecycle=careless, by=text, clock=CLOCK)

    return Message(text, run)


def test_a_source_alone_applies_a_message_twice_on_a_cycle() -> None:
    """A worker dies before its acknowledgement, the batch comes round, and the message moves it once more."""
    scope = Scope(
        "source alone",
        CYCLE,
        (worker(1, _by_source("A", "B")), worker(2, _by_source("B", "A"), crashes=0)),
        (BATCH,),
    )
    found = violation(scope)

    assert found.problem == "the message 'move b A → B' was applied 2 times"
    assert str(found).splitlines()[2:] == [
        "  1. worker-1  takes 'move b A → B': reads batch b: in A at v1",
        "  2. worker-1  swaps batch b A → B (v1 → v2)",
        "                 now: b B v2 | A: b v1",
        "  3. worker-1  crashes; its message 'move b A → B' will come again",
        "  4. worker-2  takes 'move b B → A': reads batch b: in B at v2",
        "  5. worker-2  swaps batch b B → A (v2 → v3)",
        "                 now: b A v3 | A: b v1",
        "  6. worker-1  takes 'move b A → B': reads batch b: in A at v3",
        "  7. worker-1  swaps batch b A → B (v3 → v4)",
        "                 now: b B v4 | A: b v1",
    ]
    assert [turn.act for turn in found.schedule.turns].count(Act.CRASH) == 1


def test_a_worker_that_does_not_repair_leaves_a_batch_under_a_state_it_has_left() -> None:
    """Without `ensure_record` in the branch that finds the work done, a crash is never mended."""

    def run(store: Storage) -> object:
        batch = store.get_batches(["b"])["b"]
        return advance(store, "b", "B", entered=1, clock=CLOCK) if getattr(batch, "version", 0) == 1 else batch

    found = violation(Scope("no repair", CYCLE, (worker(1, Message("move b to B", run)),), (BATCH,)))
    assert found.problem == "all is quiet, and batch b has no record under its state B"
    assert "worker-1  acknowledges 'move b to B'" in str(found)


def test_an_error_that_is_not_documented_is_a_violation() -> None:
    """An actor may get the errors that its message names, and no other."""

    def run(store: Storage) -> object:
        store.get_batches(["b"])
        msg = "of the program's own"
        raise RuntimeError(msg)

    found = violation(Scope("a fault", CYCLE, (worker(1, Message("fail", run)),), (BATCH,)))
    assert found.problem == ("worker-1 got an error that is not documented there: RuntimeError: of the program's own")


def test_a_row_that_comes_back_is_a_violation() -> None:
    """A retired row that is written over as a live one breaks the promise between two instants."""

    class Undead(Unfenced):
        def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
            for batch_id, row in self._rows.batches.items():
                self._rows.batches[batch_id] = row._replace(retired_at=None)
            return super().put_records(records)

    def run(store: Storage) -> object:
        rows = store.get_batches(["b"])
        ensure_record(store, rows["b"])  # type: ignore[arg-type]
        return rows

    actors = (worker(1, Message("file b", run)), reader(retirement("b", LINE)))
    found = violation(Scope("undead", LINE, actors, (IN_C,)), lambda: Undead("q"))
    assert found.problem == "batch b was retired, and has come back in C"


class Requeuing(MemoryStorage):
    """It puts a job that is to be retried back, whatever became of it meanwhile: what a queue does that only pushes."""

    def settle_jobs(self, claim_id: str, settlings: Sequence[Settling], *, keep_done: int, **said: str) -> Settled:
        """Settle, and put back what is not there any more."""
        settled = super().settle_jobs(claim_id, settlings, keep_done=keep_done, **said)
        gone = [one.id for one in settlings if one.verdict == "retry" and one.id not in self.get_jobs([one.id])]
        self.add_jobs([NewJob(name, "null", "g", 9) for name in gone])
        return settled


def test_a_late_retry_that_brings_a_done_job_back_is_found() -> None:
    """Where a late retry puts back what another has completed, it is told how the job comes to be done twice."""
    scope = on_jobs(
        "a claimer, a sweeper and a late holder",
        Actor("claimer", (claiming(1, "complete"),)),
        Actor("sweeper", (sweeping(),)),
        Actor("late holder", (settling(0, "retry"),)),
    )

    def requeuing() -> Requeuing:
        store = Requeuing("q", clock=CLOCK)
        JobsAtStart().put_into(store)
        return store

    with pytest.raises(Violation, match="job a was completed by") as caught:
        explore(scope, requeuing, job_promises())
    assert [turn.actor for turn in caught.value.schedule.turns] == ["sweeper", "claimer", "claimer", "late holder"]
