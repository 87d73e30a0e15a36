"""Workers that move one batch: it is never without a record, and no message is applied twice.

What is held against every state stands in `PROMISES` of `batchstate.testing.explorer`: some record
names the batch, complete listings and its requests find it, its version grows by one, no message
moved it twice, no actor got an error but a documented one; and when all is quiet, the record of its
present state is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from batchstate.advance import load
from batchstate.entities import Batch
from batchstate.errors import BatchStateError
from batchstate.testing.explorer import CLOCK, CYCLE, LINE, Message, Scope, explore, move
from batchstate.transition import put_records_of, transition, transition_many
from tests.model.given import (
    ANY_BACK,
    ANY_THERE,
    BACK,
    BATCH,
    LONG_LINE,
    THERE,
    THERE_AGAIN,
    TO_B,
    TO_C,
    WAYS,
    memory,
    tidier,
    worker,
)
from tests.model.stores import Blind

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.storage import Storage
    from batchstate.testing.explorer import Actor
    from tests.model.plugin import Show


def blind() -> Blind:
    """Make an empty store whose put cannot see the row."""
    return Blind("q")


def on_cycle(title: str, *actors: Actor) -> Scope:
    """Let them act on a batch that can go there and back."""
    return Scope(title, CYCLE, actors, (BATCH,))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [memory, blind])
def test_two_workers_on_a_line(way: str, make: Callable[[], Blind], show: Show) -> None:
    """Two workers with a message each, a crash and a redelivery of both."""
    actors = (worker(1, TO_B, way=way), worker(2, TO_C, way=way))
    show(explore(Scope(f"two workers on a line, {way}, {make.__name__}", LINE, actors, (BATCH,)), make))


@pytest.mark.parametrize("way", WAYS)
def test_three_workers_on_a_line(way: str, show: Show) -> None:
    """Three workers with a message each, a crash and a redelivery of each."""
    moves = [move("b", to, entered, LONG_LINE) for to, entered in (("B", 1), ("C", 2), ("D", 3))]
    actors = [worker(number, message, way=way) for number, message in enumerate(moves, 1)]
    scope = Scope(f"three workers on a line, {way}", LONG_LINE, tuple(actors), (BATCH,))
    show(explore(scope, memory))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [memory, blind])
def test_two_workers_on_a_cycle(way: str, make: Callable[[], Blind], show: Show) -> None:
    """Two workers that are both handed the first move, then one the way back, the other the move after that."""
    scope = on_cycle(
        f"two workers on a cycle, {way}, {make.__name__}",
        worker(1, THERE, THERE_AGAIN, way=way),
        worker(2, THERE, BACK, way=way),
    )
    show(explore(scope, make))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [memory, blind])
def test_three_workers_on_a_cycle(way: str, make: Callable[[], Blind], show: Show) -> None:
    """Three workers that move the batch there, back and there again, a crash and a redelivery of each."""
    scope = on_cycle(
        f"three workers on a cycle, {way}, {make.__name__}",
        worker(1, THERE, way=way),
        worker(2, BACK, way=way),
        worker(3, THERE_AGAIN, way=way),
    )
    show(explore(scope, make))


@pytest.mark.parametrize("way", WAYS)
def test_three_workers_on_a_cycle_that_look_for_work(way: str, show: Show) -> None:
    """The plain protocol: read, transition if the state is right, else ensure the record; a crash of each."""
    scope = on_cycle(
        f"three workers on a cycle that look for work, {way}",
        worker(1, ANY_THERE, way=way),
        worker(2, ANY_BACK, way=way),
        worker(3, ANY_THERE, way=way),
    )
    show(explore(scope, memory))


@pytest.mark.parametrize("way", WAYS)
def test_two_workers_that_look_for_work_and_a_tidier(way: str, show: Show) -> None:
    """The plain protocol on a cycle beside a reconcile, a crash of each worker."""
    scope = on_cycle(
        f"two workers on a cycle that look for work, a tidier, {way}",
        worker(1, ANY_THERE, way=way),
        worker(2, ANY_BACK, way=way),
        tidier(),
    )
    show(explore(scope, memory))


def test_three_workers_on_a_cycle_and_a_tidier(show: Show) -> None:
    """Three workers, a crash and a redelivery of each, and a reconcile that may fall anywhere between."""
    scope = on_cycle(
        "three workers on a cycle, a tidier",
        worker(1, THERE),
        worker(2, BACK),
        worker(3, THERE_AGAIN),
        tidier(),
    )
    show(explore(scope, memory))


@pytest.mark.parametrize("way", WAYS)
def test_workers_beside_one_that_changes_attributes(way: str, show: Show) -> None:
    """A move into the present state changes the version and not `entered`, so the messages under way stay good."""
    scope = on_cycle(
        f"two workers on a cycle, one that changes attributes, {way}",
        worker(1, ANY_THERE, way=way),
        worker(2, ANY_BACK, way=way),
        worker(3, Message("change b", _change), way=way, crashes=0),
    )
    show(explore(scope, memory))
    scope = on_cycle(
        f"a message handed out twice, one that changes attributes, {way}",
        worker(1, THERE, way=way),
        worker(2, THERE, way=way),
        worker(3, Message("change b", _change), way=way),
    )
    show(explore(scope, memory))


@pytest.mark.parametrize("way", WAYS)
def test_a_move_of_many_beside_moves_of_one(way: str, show: Show) -> None:
    """A worker that moves two batches in one call, and is overtaken with one of them, costs the other nothing."""
    scope = Scope(
        f"a move of many beside a move of one, {way}",
        CYCLE,
        (worker(1, Message("move both to B", _move_both), way=way), worker(2, THERE, BACK, way=way)),
        (BATCH, attrs.evolve(BATCH, id="b-2")),
    )
    show(explore(scope, memory))


def _change(store: Storage) -> Batch:
    batch = load(store, "b")
    return transition(store, batch, batch.state, update={"seen": True}, clock=CLOCK)


def _move_both(store: Storage) -> list[Batch]:
    """Move both batches in one call, those of them that are where they were at the start, and repair the others."""
    batches = [load(store, batch_id) for batch_id in ("b", "b-2")]
    answers = transition_many(store, [batch for batch in batches if batch.version == 1], "B", clock=CLOCK)
    put_records_of(store, [batch for batch in batches if batch.version > 1])
    for error in answers:
        if isinstance(error, BatchStateError):
            raise error
    return [answer for answer in answers if isinstance(answer, Batch)]


@pytest.mark.parametrize("way", WAYS)
def test_resent_moves_apply_once(way: str, show: Show) -> None:
    """Each worker's client sends a write a second time, any time after the first, and each may crash as well."""
    scope = on_cycle(
        f"three workers on a cycle, a re-send of each, {way}",
        worker(1, THERE, way=way, resends=1),
        worker(2, BACK, way=way, resends=1),
        worker(3, THERE_AGAIN, way=way, resends=1),
    )
    show(explore(scope, memory))


@pytest.mark.parametrize("way", WAYS)
def test_lost_replies_lose_nothing(way: str, show: Show) -> None:
    """Each worker loses the reply to a write that was applied, gets an error for it, and has its message again."""
    scope = on_cycle(
        f"three workers on a cycle, a lost reply of each, {way}",
        worker(1, THERE, way=way, lost_replies=1),
        worker(2, BACK, way=way, lost_replies=1),
        worker(3, THERE_AGAIN, way=way, lost_replies=1),
    )
    show(explore(scope, memory))


@pytest.mark.large
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", WAYS)
def test_everything_at_once_on_a_cycle(way: str, show: Show) -> None:
    """Three workers, each with a crash, a re-send and a lost reply."""
    scope = on_cycle(
        f"three workers on a cycle, everything goes wrong, {way}",
        worker(1, THERE, way=way, resends=1, lost_replies=1),
        worker(2, BACK, way=way, resends=1, lost_replies=1),
        worker(3, THERE_AGAIN, way=way, resends=1, lost_replies=1),
    )
    show(explore(scope, memory))


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_three_workers_that_look_for_work_and_a_tidier(show: Show) -> None:
    """The plain protocol with three workers beside a reconcile, a crash of each worker."""
    scope = on_cycle(
        "three workers on a cycle that look for work, a tidier",
        worker(1, ANY_THERE),
        worker(2, ANY_BACK),
        worker(3, ANY_THERE),
        tidier(),
    )
    show(explore(scope, memory))


def test_two_crashes_of_each(show: Show) -> None:
    """Three workers that each die twice."""
    scope = on_cycle(
        "three workers on a cycle, two crashes of each",
        worker(1, THERE, crashes=2),
        worker(2, BACK, crashes=2),
        worker(3, THERE_AGAIN, crashes=2),
    )
    show(explore(scope, memory))


def test_four_workers_on_a_cycle(show: Show) -> None:
    """Four workers, twice there and back, a crash and a redelivery of each."""
    scope = on_cycle(
        "four workers on a cycle",
        worker(1, THERE),
        worker(2, BACK),
        worker(3, THERE_AGAIN),
        worker(4, move("b", "A", 4, CYCLE)),
    )
    show(explore(scope, memory))
