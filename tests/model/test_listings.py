"""Listings that race with moves: what is there throughout, and promised, is never missed.

A reader is held to every batch that was in a state it asks for at each instant from its first call
to its last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from batchstate.listing import list_by_states
from batchstate.testing.explorer import (
    CYCLE,
    Message,
    Scope,
    Violation,
    Watch,
    creation,
    explore,
    fused,
    iteration,
    listing,
    move,
)
from tests.model.given import (
    ANY_BACK,
    ANY_THERE,
    BACK,
    BATCH,
    LONG_LINE,
    THERE,
    THERE_AGAIN,
    WAYS,
    memory,
    reader,
    tidier,
    worker,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.testing.explorer import Actor
    from tests.model.plugin import Show

ON_1, ON_2, ON_3 = (move("b", to, entered, LONG_LINE) for to, entered in (("B", 1), ("C", 2), ("D", 3)))


def on_line(title: str, *actors: Actor) -> Scope:
    """Let them act on a batch that only moves forward."""
    return Scope(title, LONG_LINE, actors, (BATCH,))


def on_cycle(title: str, *actors: Actor) -> Scope:
    """Let them act on a batch that can go there and back."""
    return Scope(title, CYCLE, actors, (BATCH,))


@pytest.mark.parametrize("states", ["B", "BC", "CD"])
@pytest.mark.parametrize("way", WAYS)
def test_a_complete_listing_never_misses_a_batch_that_moves_forward(states: str, way: str, show: Show) -> None:
    """Three moves, two of which die half done, race with a listing that also reads the states before."""
    scope = on_line(
        f"a complete listing of {states}, three moves forward, {way}",
        worker(1, ON_1, way=way),
        worker(2, ON_2, way=way),
        worker(3, ON_3, way=way, crashes=0),
        reader(listing(states, LONG_LINE, complete=True)),
    )
    show(explore(scope, memory))


def test_a_listing_never_misses_what_is_filed_where_it_looks(show: Show) -> None:
    """Without `complete`, a batch is owed that a record under a state asked for names at every instant."""
    scope = on_line(
        "a plain listing of B and C, two moves", worker(1, ON_1), worker(2, ON_2), reader(listing("BC", LONG_LINE))
    )
    show(explore(scope, memory))


def test_a_plain_listing_can_miss_what_a_complete_one_does_not() -> None:
    """Between a swap and its put, asking for the new state alone finds nothing: what `complete` is for."""
    plain = Message(
        "list B",
        lambda store: list_by_states(store, ["B"], lifecycle=LONG_LINE),
        watch=Watch(frozenset("B"), complete=True),
    )
    with pytest.raises(Violation, match="the listing of B misses batch b, which was there throughout") as caught:
        explore(on_line("a plain listing held to a complete one", worker(1, ON_1), reader(plain)), memory)
    assert "reader    takes 'list B': lists the records under B: none" in str(caught.value)


def test_the_order_of_the_buckets_matters() -> None:
    """New before old, a batch slips through between the two: the order of the lifecycle is no decoration."""
    backwards = Message("list B, A", lambda store: list_by_states(store, ["B", "A"]), watch=Watch(frozenset("AB")))
    with pytest.raises(Violation, match="misses batch b"):
        explore(on_line("buckets in the wrong order", worker(1, ON_1), reader(backwards)), memory)


def test_a_complete_iteration_never_misses_a_batch_that_moves_forward(show: Show) -> None:
    """Two batches, a page of one batch each, each moved on by a worker that dies once."""
    other = attrs.evolve(BATCH, id="b-2")
    actors = (
        worker(1, ON_1),
        worker(2, move("b-2", "B", 1, LONG_LINE)),
        reader(iteration("ABC", LONG_LINE, complete=True)),
    )
    show(explore(Scope("a complete iteration, two batches", LONG_LINE, actors, (BATCH, other)), memory))


def test_a_complete_listing_beside_a_tidier(show: Show) -> None:
    """A reconcile that mends what a crash left takes nothing from a listing under way."""
    scope = on_line(
        "a complete listing, two moves, a tidier",
        worker(1, ON_1, ON_2),
        tidier(LONG_LINE),
        reader(listing("BC", LONG_LINE, complete=True)),
    )
    show(explore(scope, memory))


def test_a_complete_listing_beside_a_creation(show: Show) -> None:
    """A batch is owed from the acknowledgement of its creation on, though the creation is redelivered."""
    actors = (
        worker(1, creation(BATCH)),
        worker(2, creation(BATCH), crashes=0),
        worker(3, ON_1),
        reader(listing("AB", LONG_LINE, complete=True)),
    )
    show(explore(Scope("a complete listing, a creation twice, a move", LONG_LINE, actors), memory))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("read", [listing, iteration])
def test_the_second_pass_misses_nothing_on_a_cycle_while_one_move_falls_in(
    read: Callable[..., Message], way: str, show: Show
) -> None:
    """All the steps that fall within the listing are of one move, whatever went on before and goes on after."""
    scope = on_cycle(
        f"{read.__name__} on a cycle, three moves of which one falls in, {way}",
        worker(1, THERE, way=way),
        worker(2, BACK, way=way),
        worker(3, THERE_AGAIN, way=way, crashes=0),
        reader(read("AB", CYCLE, most_moves=1)),
    )
    show(explore(scope, memory))


def test_the_second_pass_misses_nothing_when_workers_look_for_work(show: Show) -> None:
    """The same beside workers that move the batch from whatever visit to its state."""
    scope = on_cycle(
        "a listing on a cycle beside workers that look for work",
        worker(1, ANY_THERE),
        worker(2, ANY_BACK),
        reader(listing("AB", CYCLE, most_moves=1)),
    )
    show(explore(scope, memory))


def test_a_complete_listing_of_one_state_of_a_cycle(show: Show) -> None:
    """`complete` reads the whole cycle, twice."""
    scope = on_cycle(
        "a complete listing of one state of a cycle",
        worker(1, THERE),
        worker(2, BACK),
        reader(listing("B", CYCLE, complete=True, most_moves=1)),
    )
    show(explore(scope, memory))


def test_two_moves_within_a_listing_can_hide_a_batch_on_a_cycle() -> None:
    """Only a snapshot promises more than one move: with two that fall in, the batch is always where nobody looks."""
    with pytest.raises(Violation, match="the listing of A, B misses batch b"):
        explore(
            on_cycle(
                "two moves within a listing",
                worker(1, THERE, crashes=0),
                worker(2, BACK, crashes=0),
                worker(3, THERE_AGAIN, crashes=0),
                reader(listing("AB", CYCLE, most_moves=2)),
            ),
            memory,
        )


@pytest.mark.parametrize("way", WAYS)
def test_a_snapshot_misses_nothing_on_a_cycle_however_many_moves_fall_in(way: str, show: Show) -> None:
    """Buckets read as of one instant owe every batch that was in their states throughout."""
    scope = on_cycle(
        f"a snapshot on a cycle, three moves, {way}",
        worker(1, THERE, way=way),
        worker(2, BACK, way=way),
        worker(3, THERE_AGAIN, way=way),
        reader(listing("AB", CYCLE), sees=fused),
    )
    show(explore(scope, memory))


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_the_second_pass_misses_nothing_beside_a_tidier(show: Show) -> None:
    """Two workers with three moves, a reconcile and a listing."""
    scope = on_cycle(
        "a listing on a cycle, three moves, a tidier",
        worker(1, THERE, THERE_AGAIN),
        worker(2, BACK, crashes=0),
        tidier(),
        reader(listing("AB", CYCLE, most_moves=1)),
    )
    show(explore(scope, memory))
