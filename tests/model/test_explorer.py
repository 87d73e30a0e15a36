"""The explorer itself: what a state is, that none is left out, and that its schedules can be run anywhere."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import pytest

from batchstate.errors import InvalidValueError
from batchstate.testing import FaultStore, record
from batchstate.testing.explorer import (
    CYCLE,
    LINE,
    TWO_ACTORS,
    Act,
    Actor,
    Graph,
    Interleavings,
    Message,
    Schedule,
    Scope,
    TooManyStatesError,
    Violation,
    explore,
    interleavings,
    listing,
    replay,
)
from batchstate.three_steps import ThreeSteps
from tests.model.given import BACK, BATCH, THERE, TO_B, TO_C, memory, reader, worker

if TYPE_CHECKING:
    from batchstate.storage import Storage


def reads(number: int) -> Message:
    """Read the batch so many times."""

    def run(store: Storage) -> object:
        for _ in range(number):
            store.get_batches(["b"])
        return None

    return Message(f"read {number} times", run)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 3), (4, 4)])
def test_every_order_of_two_actors_calls_is_an_interleaving(first: int, second: int) -> None:
    """Two actors with m and n turns have as many interleavings as there are ways to choose m of m + n."""
    actors = (worker(1, reads(first), crashes=0), worker(2, reads(second), crashes=0))
    found = Interleavings(Graph(Scope("readers", CYCLE, actors, (BATCH,)), memory()))

    turns = (first + 1, second + 1)  # one more each, for the acknowledgement
    assert found.total == comb(sum(turns), turns[0])
    assert len(set(found)) == found.total


@pytest.mark.parametrize(("calls", "crashes"), [(1, 1), (3, 1), (3, 2)])
def test_a_crash_may_come_after_every_call_and_before_the_acknowledgement(calls: int, crashes: int) -> None:
    """Alone and with one crash, an actor of n calls has n ways to die and one not to; each more crash multiplies."""
    scope = Scope("one reader", CYCLE, (worker(1, reads(calls), crashes=crashes),), (BATCH,))
    assert Interleavings(Graph(scope, memory())).total == sum(calls**times for times in range(crashes + 1))


def test_states_that_cannot_be_told_apart_are_one() -> None:
    """Two readers of n calls that read the same have a grid of states, not a tree."""
    actors = (worker(1, reads(4), crashes=0), worker(2, reads(4), crashes=0))
    assert explore(Scope("readers", CYCLE, actors, (BATCH,)), memory).states == 6 * 6


def test_an_exploration_is_the_same_in_every_run() -> None:
    """Marks and clock are the same, so the counts are."""
    scope = Scope("two workers", CYCLE, (worker(1, THERE), worker(2, BACK)), (BATCH,))
    first, second = explore(scope, memory), explore(scope, memory)
    assert (first.states, first.steps, first.stores) == (second.states, second.steps, second.stores)
    assert str(first).startswith("two workers: ")


def test_a_scope_that_is_too_large_is_told() -> None:
    """The search ends with an error when it has seen as many states as it may."""
    scope = Scope("two workers", CYCLE, (worker(1, THERE), worker(2, BACK)), (BATCH,))
    with pytest.raises(TooManyStatesError, match="two workers: more than 50 states"):
        explore(scope, memory, most=50)


def test_a_sample_is_fair_fixed_and_without_repetition() -> None:
    """The same seed draws the same schedules, another seed others; a sample as large as the whole is the whole."""
    scope = Scope("two workers", LINE, (worker(1, TO_B), worker(2, TO_C, crashes=0)), (BATCH,))
    drawn = interleavings(scope, memory, sample=40, seed=1)

    assert len(set(drawn)) == 40
    assert drawn == interleavings(scope, memory, sample=40, seed=1)
    assert drawn != interleavings(scope, memory, sample=40, seed=2)
    everything = interleavings(scope, memory)
    assert set(drawn) <= set(everything)
    assert interleavings(scope, memory, sample=10**9) == everything
    with pytest.raises(IndexError):
        Interleavings(Graph(scope, memory()))[len(everything)]


def test_a_schedule_reads_as_a_list_of_turns() -> None:
    """Who acts, and what goes wrong for it."""
    scope = Scope("one worker", LINE, (worker(1, TO_B),), (BATCH,))
    told = {str(schedule) for schedule in interleavings(scope, memory)}
    assert "worker-1, worker-1, worker-1, worker-1, worker-1 acknowledge" in told
    assert "worker-1, worker-1, worker-1 crash, worker-1, worker-1, worker-1 acknowledge" in told


@pytest.mark.parametrize("make", TWO_ACTORS, ids=lambda make: make.__name__)
def test_a_replay_makes_the_calls_that_the_schedule_was_worked_out_with(make: object) -> None:
    """On a store that answers alike, every turn is taken and none is left over."""
    scope = make("q", ThreeSteps, ThreeSteps)  # type: ignore[operator]
    for schedule in interleavings(scope, memory, sample=20):
        notes = record()
        replay(schedule, scope, FaultStore(memory(), notes))
        made = [call for call in notes.calls if call.method != "scan"]
        assert len(made) > len([turn for turn in schedule.turns if turn.act is Act.CALL])


def test_a_replay_goes_on_where_its_schedule_ends() -> None:
    """With no turns at all, every actor comes to its end one after the other."""
    scope = Scope("two workers", CYCLE, (worker(1, BACK), worker(2, THERE)), (BATCH,))
    store = memory()
    replay(Schedule("nothing", ()), scope, store)
    assert [item.version for item in store.list_records("A").items] == [3]


def test_an_actor_may_wait_for_the_end_of_another() -> None:
    """`after` leaves one order: first the one, then the other."""
    first = worker(1, reads(3), crashes=0)
    second = Actor("second", (reads(3),), sees=ThreeSteps, after=("worker-1",))
    assert Interleavings(Graph(Scope("in turn", CYCLE, (first, second), (BATCH,)), memory())).total == 1


def test_an_actor_may_wait_until_another_is_idle() -> None:
    """`idle` lets it begin between two deliveries of the other, and the other begin before it has ended."""
    first = worker(1, reads(1), reads(1), crashes=0)
    second = Actor("second", (reads(1),), sees=ThreeSteps, idle=("worker-1",))
    found = [
        str(schedule).replace("worker-1", "1").replace("second", "2")
        for schedule in interleavings(Scope("in gaps", CYCLE, (first, second), (BATCH,)), memory)
    ]
    assert all(turns.split(", ").index("2") % 2 == 0 for turns in found)
    assert "2, 1, 1 acknowledge, 2 acknowledge, 1, 1 acknowledge" in found


def test_a_message_that_comes_again_for_ever_is_a_violation() -> None:
    """From every state, all must be able to become quiet: here a message is ahead of a row that nobody moves."""
    with pytest.raises(Violation, match="all cannot become quiet any more: worker-1 does not come to an end"):
        explore(Scope("ahead for ever", CYCLE, (worker(1, BACK),), (BATCH,)), memory)


def test_a_replay_that_does_not_come_to_an_end_is_a_violation() -> None:
    """The same, on a store that cannot go back."""
    scope = Scope("ahead for ever", CYCLE, (worker(1, BACK),), (BATCH,))
    with pytest.raises(Violation, match=r"'move b to A \(entered v2\)' comes again for ever"):
        replay(Schedule("nothing", ()), scope, memory())


def test_a_scope_refuses_names_that_do_not_fit_together() -> None:
    """Two actors of one name, a wait for nobody, and two listings to be watched are mistakes."""
    with pytest.raises(InvalidValueError, match="two actors have one name"):
        Scope("twins", CYCLE, (worker(1), worker(1)))
    with pytest.raises(InvalidValueError, match="waits for"):
        Scope("lonely", CYCLE, (Actor("a", (), after=("b",)),))
    watched = listing("AB", CYCLE)
    with pytest.raises(InvalidValueError, match="one listing"):
        Scope("two readers", CYCLE, (reader(watched), worker(1, watched)))
