"""What follows what: order, ways and cycles, against answers found by walking."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchstate.errors import InvalidValueError
from batchstate.lifecycle import RESERVED_STATES, Lifecycle
from batchstate.lifecycle_graph import Graph
from batchstate.queue import open_queue
from tests.unit.lifecycles import all_moves, lifecycles, paths

QUEUE = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")
ROUND = Lifecycle.parse("queued > running > waiting > running; running > done")


def _slow_order(states: tuple[str, ...], moves: set[tuple[str, str]]) -> tuple[str, ...]:
    """The reading order by its definition: again and again the first declared group that nothing unread precedes."""
    ahead = {state: paths(moves, state) for state in states}
    groups = {state: {state} | {other for other in ahead[state] if state in ahead[other]} for state in states}
    order: list[str] = []
    while len(order) < len(states):
        unread = [state for state in states if state not in order]
        free = next(
            state
            for state in unread
            if not any(state in ahead[other] for other in unread if other not in groups[state])
        )
        order += [state for state in states if state in groups[free]]
    return tuple(order)


@given(lifecycles(), st.data())
def test_reading_order_is_old_before_new(lifecycle: Lifecycle, data: st.DataObject) -> None:
    """States come after all that lead to them; ties and cycles keep the order of declaration."""
    every = (*lifecycle.states, *RESERVED_STATES)
    asked = data.draw(st.lists(st.sampled_from(every)))
    expected = [state for state in _slow_order(every, all_moves(lifecycle)) if state in asked]
    assert lifecycle.ordered(asked) == tuple(expected)


@given(lifecycles(), st.data())
def test_preceding_states_are_those_with_a_way_here(lifecycle: Lifecycle, data: st.DataObject) -> None:
    """A state precedes others when one or more moves lead from it to one of them."""
    every = (*lifecycle.states, *RESERVED_STATES)
    asked = data.draw(st.lists(st.sampled_from(every)))
    moves = all_moves(lifecycle)
    assert lifecycle.preceding(asked) == {state for state in every if paths(moves, state) & set(asked)}


@given(lifecycles())
def test_one_state_reaches_another_when_moves_lead_there(lifecycle: Lifecycle) -> None:
    """A state is reached by one or more moves, itself only by going round."""
    every = (*lifecycle.states, *RESERVED_STATES)
    for source in every:
        reached = paths(all_moves(lifecycle), source)
        assert {to for to in every if lifecycle.reaches(source, to)} == reached


@given(lifecycles())
def test_a_move_lies_on_a_cycle_when_it_can_be_made_again(lifecycle: Lifecycle) -> None:
    """A move can come again when its target leads back to its source, or is the same state."""
    for source in lifecycle.states:
        for to in lifecycle.states:
            again = source == to or source in paths(all_moves(lifecycle), to)
            assert lifecycle.on_cycle(source, to) is again


@given(lifecycles(), st.data())
def test_states_contain_a_cycle_when_two_lead_to_each_other(lifecycle: Lifecycle, data: st.DataObject) -> None:
    """Two different states with ways both there and back are a cycle, one state alone is none."""
    asked = data.draw(st.lists(st.sampled_from(lifecycle.states)))
    moves = all_moves(lifecycle)
    pairs = [(a, b) for a in asked for b in asked if a != b]
    assert lifecycle.any_cycle(asked) is any(b in paths(moves, a) and a in paths(moves, b) for a, b in pairs)


def test_order_and_cycles_of_a_lifecycle_that_goes_round() -> None:
    """On a cycle states keep their order of declaration, and both of its moves can come again."""
    assert ROUND.ordered(["done", "waiting", "running", "queued", "done"]) == ("queued", "running", "waiting", "done")
    assert ROUND.on_cycle("running", "waiting")
    assert ROUND.on_cycle("waiting", "running")
    assert not ROUND.on_cycle("queued", "running")
    assert ROUND.any_cycle(["running", "done", "waiting"])
    assert not ROUND.any_cycle(["running", "running", "done"])
    assert ROUND.preceding(["running"]) == {"queued", "running", "waiting"}
    assert ROUND.preceding(["queued"]) == frozenset()


def test_any_state_of_a_cycle_may_lead_out_of_it() -> None:
    """What follows a cycle comes after all of it, whichever of its states leads there and whatever came first."""
    flow = Lifecycle.parse("done | waiting | running; running > waiting > running; waiting > done", initial="running")
    assert flow.ordered(flow.states) == ("waiting", "running", "done")


def test_a_claim_that_sends_its_batch_back_makes_a_cycle() -> None:
    """Where an abandoned claim goes to an earlier state, a move from there can be made twice."""
    assert not QUEUE.on_cycle("queued", "testing")
    again = Lifecycle.parse(str(QUEUE), abandoned="queued")
    assert again.on_cycle("queued", "testing")
    assert again.any_cycle(["queued", "testing"])
    assert not again.allows("testing", "queued")


def test_a_claim_may_end_from_any_state_that_is_no_end() -> None:
    """Whatever a batch under a claim was doing, the last settlement may move it to the state named."""
    lifecycle = Lifecycle.parse("queued > testing > tested; closed", settled="closed")
    assert lifecycle.preceding(["closed"]) == {"queued", "testing"}
    assert not lifecycle.reaches("tested", "closed")


def test_the_claims_own_states_are_read_beside_the_others() -> None:
    """A listing may ask for the states of claims, whatever lifecycle the queue has."""
    assert QUEUE.ordered(["settled", "merged", "claimed", "queued"]) == ("queued", "merged", "claimed", "settled")
    assert QUEUE.preceding(["settled"]) == {"claimed"}
    assert not QUEUE.reaches("queued", "claimed")
    assert QUEUE.is_terminal("abandoned")
    assert not QUEUE.is_terminal("claimed")


@pytest.mark.parametrize("complete", [False, True])
def test_a_listing_may_ask_for_the_claims_own_states(complete: bool) -> None:  # noqa: FBT001 - a parameter
    """A queue with a lifecycle of its own lists claims too, and still refuses a state that is none."""
    queue = open_queue("merges", "memory://", lifecycle=QUEUE)
    assert queue.list_by_states(["claimed", "merged"], complete=complete) == []
    with pytest.raises(InvalidValueError, match="unknown state 'claimd'"):
        queue.list_by_states(["claimd"], complete=complete)


@pytest.mark.parametrize("bad", [["testing", "tested"], [["testing"]], [5], "testing"])
def test_questions_about_unknown_states_are_refused(bad: list[str]) -> None:
    """A state that is none is an error in every question, and one text is not a list of states."""
    for ask in (QUEUE.ordered, QUEUE.preceding, QUEUE.any_cycle):
        with pytest.raises(InvalidValueError):
            ask(bad)


@pytest.mark.parametrize(("source", "to"), [("queued", "tested"), ("tested", "queued")])
def test_ways_between_unknown_states_are_refused(source: str, to: str) -> None:
    """A way from or to a state that is none is an error, not a plain no."""
    for ask in (QUEUE.reaches, QUEUE.on_cycle):
        with pytest.raises(InvalidValueError, match=r"unknown state 'tested'\. Did you mean 'testing'\?"):
            ask(source, to)


def test_a_long_line_of_states_is_no_burden() -> None:
    """Three hundred states in a row are ordered and reached without deep recursion."""
    names = [f"step {number}" for number in range(300)]
    graph = Graph.of(names[::-1], list(pairwise(names)))
    assert sorted(names, key=graph.rank.__getitem__) == names
    assert len(graph.after[names[0]]) == 299
    assert len(graph.before[names[-1]]) == 299
