"""Many threads, and random calls in any order."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchstate.advance import advance
from batchstate.creation import create_batch
from batchstate.entities import Batch
from batchstate.errors import (
    AlreadyExistsError,
    BatchStateError,
    StorageUnavailableError,
    TransitionIncompleteError,
    VersionMismatchError,
)
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import LOOP, associated, filed, made, new, row
from batchstate.testing.contract.given import record as membership
from batchstate.testing.faults import drop_reply, resend
from batchstate.tidying import purge, reconcile, retire
from batchstate.transition import ensure_record, transition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from batchstate.storage import Storage
    from batchstate.testing.harness import Harness

__all__ = ["AnyOrder", "Threads"]

T = TypeVar("T")


class Threads(Contract):
    """What several threads or clients do at once."""

    def test_of_many_moves_from_one_version_one_is_done(self, opened: Opener, harness: Harness) -> None:
        """However many clients move one version at once, one succeeds and the others are told of a lost race."""
        stores = [opened() for _ in range(harness.threads)]
        for round_ in range(10):
            batch = made(stores[0], f"b-{round_}")

            outcomes = at_once(
                partial(transition, store, batch, "testing", update={"by": number})
                for number, store in enumerate(stores)
            )

            winners = [outcome for outcome in outcomes if isinstance(outcome, Batch)]
            assert len(winners) == 1
            assert {type(outcome) for outcome in outcomes if not isinstance(outcome, Batch)} <= {VersionMismatchError}
            assert row(stores[0], batch.id) == winners[0]
            assert filed(stores[0], batch.id) == {"testing": 2}

    def test_no_update_is_lost(self, opened: Opener, harness: Harness) -> None:
        """Clients that each count up by reading and swapping end at the sum of their successes."""
        stores = [opened() for _ in range(harness.threads)]
        made(stores[0], count=0)

        def count(store: Storage) -> int:
            done = 0
            for _ in range(10):
                batch = row(store)
                try:
                    transition(store, batch, "queued", update={"count": batch.attributes["count"] + 1})
                    done += 1
                except VersionMismatchError:
                    continue
            return done

        done = at_once(partial(count, store) for store in stores)

        total = sum(number for number in done if isinstance(number, int))
        assert total >= 10
        assert (row(stores[0]).attributes["count"], row(stores[0]).version) == (total, total + 1)

    def test_of_many_creations_of_one_id_one_is_kept(self, opened: Opener, harness: Harness) -> None:
        """However many clients create one ID at once, one content is kept; the same requests are answered with it."""
        stores = [opened() for _ in range(harness.threads)]

        outcomes = at_once(
            partial(create_batch, store, new(requests=[f"r-{number % 2}"], by=number))
            for number, store in enumerate(stores)
        )

        stored = row(stores[0])
        for number, outcome in enumerate(outcomes):
            if f"r-{number % 2}" in stored.request_ids:
                assert outcome == stored
            else:
                assert isinstance(outcome, AlreadyExistsError)
        assert filed(stores[0]) == {"queued": 1}
        assert find_by_request_id(stores[0], stored.request_ids[0]).batches == (stored,)

    def test_one_storage_serves_many_threads(
        self, opened_plain: Opener, opened_steps: Opener, harness: Harness
    ) -> None:
        """One storage used by many threads at once does each one's work as if it were alone."""
        for opener in (opened_plain, opened_steps):
            store = opener(f"q-{opener is opened_plain}")

            def work(name: str, store: Storage = store) -> Batch:
                batch = made(store, name, "started", requests=[name, "all"])
                for state in ("running", "waiting", "running", "done"):
                    batch = advance(store, name, state, entered=batch.entered, lifecycle=LOOP).batch
                    assert batch in list_by_states(store, [state], lifecycle=LOOP)
                assert find_by_request_id(store, name) == ((batch,), 0)
                return batch

            names = [f"b-{number:02}" for number in range(harness.threads)]
            done = at_once(partial(work, name) for name in names)

            assert list_by_states(store, ["done"]) == done
            assert associated(store, "all") == names
            assert all(filed(store, name) == {"done": 5} for name in names)

    def test_one_message_to_many_workers_moves_once(self, opened: Opener, harness: Harness) -> None:
        """A message that many workers get at once is applied once; each is told that it is done."""
        stores = [opened() for _ in range(harness.threads)]
        made(stores[0], state="started")
        for entered, state in enumerate(("running", "waiting", "running", "waiting", "running", "done"), start=1):
            steps = at_once(partial(advance, store, "b", state, entered=entered, lifecycle=LOOP) for store in stores)

            assert Counter(getattr(step, "outcome", step) for step in steps) == {"moved": 1, "already": len(stores) - 1}
            assert row(stores[0]).version == entered + 1
            assert filed(stores[0]) == {state: entered + 1}

    def test_a_reconciler_beside_working_clients_loses_nothing(self, opened: Opener, harness: Harness) -> None:
        """While batches go round a cycle, a reconciler runs, and in the end each has the record of its state."""
        names = [f"b-{number}" for number in range(harness.threads)]
        stores = [opened() for _ in names]

        def work(store: Storage, name: str) -> None:
            batch = made(store, name, "running")
            for number in range(6):
                batch = transition(store, batch, "running" if number % 2 else "waiting")

        def tidy(store: Storage) -> None:
            for _ in range(5):
                reconcile(store, LOOP.states)

        tidier = opened()
        outcomes = at_once([*map(partial, [work] * len(names), stores, names), partial(tidy, tidier)])

        assert [outcome for outcome in outcomes if outcome is not None] == []
        assert all(filed(tidier, name)["running"] == 7 for name in names)
        assert [batch.id for batch in list_by_states(tidier, ["running"])] == names


class AnyOrder(Contract):
    """What holds whatever is called in whatever order."""

    def test_rows_never_decrease(self, opened: Opener, opened_steps: Opener, harness: Harness) -> None:
        """Over any mix of calls, from copies of any age, a write raises the version by one or changes nothing."""
        numbers = iter(range(1_000_000))
        states = st.sampled_from(["A", "B", "C"])
        calls = st.lists(st.tuples(st.sampled_from(sorted(CALLS)), states, st.integers(0, 5)), min_size=1, max_size=12)

        @settings(
            max_examples=harness.examples,
            deadline=None,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(calls)
        def check(chosen: list[tuple[str, str, int]]) -> None:
            name = f"b-{next(numbers)}"
            stores = [opened(), opened_steps()]
            copies = [create_batch(stores[0], Batch(name, "q", "A", request_ids=("r",)))]
            for place, (call, state, age) in enumerate(chosen):
                store, held = stores[place % 2], copies[max(0, len(copies) - 1 - age)]
                before = row(store, name)
                try:
                    answer = CALLS[call](store, held, state)
                except BatchStateError:
                    answer = None
                after = row(store, name)

                assert after.request_ids == ("r",)
                if after != before:
                    assert answer is not None
                    assert after.version == before.version + 1
                    assert after.marks != before.marks
                    assert before.retired_at is None
                    assert held.version == before.version or call == "advance"
                copies.append(after)
                listed = list_by_states(store, ["A", "B", "C"])
                assert [batch for batch in listed if batch.id == name] == ([after] if after.retired_at is None else [])

        check()

    def test_lost_replies_and_second_sendings_change_nothing_in_the_end(self, opened: Opener, harness: Harness) -> None:
        """A journey in which each write in turn loses its reply, or is sent twice, ends as one without a fault."""
        faults = [resend(), *[drop_reply(number) for number in range(1, 12)]]
        for place, fault in enumerate(faults):
            name = f"b-{place}"
            store, faulty = opened(), opened("q", fault)

            def deliver(call: Callable[[Storage], object], store: Storage = store, faulty: Storage = faulty) -> None:
                try:
                    call(faulty)
                except (StorageUnavailableError, TransitionIncompleteError):
                    call(store)

            deliver(lambda asked, name=name: create_batch(asked, new(name, "started")))  # type: ignore[misc]
            for entered, state in enumerate(("running", "waiting", "running", "done"), start=1):
                deliver(
                    lambda asked, name=name, state=state, entered=entered: advance(asked, name, state, entered=entered)  # type: ignore[misc]
                )
            deliver(lambda asked, name=name: retire(asked, row(asked, name), clock=harness.clock))  # type: ignore[misc]

            stored = row(store, name)
            assert (stored.state, stored.version, stored.entered) == ("done", 6, 5)
            assert [move.to for move in stored.history] == ["started", "running", "waiting", "running", "done", "done"]
            reconcile(store, LOOP.states)
            assert filed(store, name) == {}
            deliver(lambda asked: purge(asked, LOOP.states, older_than=0, clock=harness.clock))
            assert store.get_batches([name]) == {}


def _moves(store: Storage, held: Batch, state: str) -> Any:  # noqa: ANN401 - whatever comes back
    return transition(store, held, state, update={"last": state})


def _repairs(store: Storage, held: Batch, state: str) -> None:
    ensure_record(store, held)
    store.put_records([membership(state, held.version, held.id)])


def _reconciles(store: Storage, _held: Batch, _state: str) -> None:
    reconcile(store, ["A", "B", "C"])


def _advances(store: Storage, held: Batch, state: str) -> Any:  # noqa: ANN401 - whatever comes back
    return advance(store, held.id, state, entered=held.entered)


def _creates(store: Storage, held: Batch, state: str) -> None:
    create_batch(store, Batch(held.id, "q", state, request_ids=("r",), attributes={"again": True}))


def _retires(store: Storage, held: Batch, state: str) -> Any:  # noqa: ANN401 - whatever comes back
    return retire(store, held) if state == "C" else None


CALLS: dict[str, Callable[[Storage, Batch, str], Any]] = {
    "transition": _moves,
    "repair": _repairs,
    "reconcile": _reconciles,
    "advance": _advances,
    "create": _creates,
    "retire": _retires,
}


def at_once(calls: Iterable[Callable[[], T]]) -> list[T | BaseException]:
    """Do these calls in as many threads, begun at one moment; answer what each returned or raised."""
    several = list(calls)
    barrier = Barrier(len(several))

    def run(call: Callable[[], T]) -> T | BaseException:
        barrier.wait(30)
        try:
            return call()
        except BatchStateError as error:
            return error

    with ThreadPoolExecutor(len(several)) as pool:
        return list(pool.map(run, several))
