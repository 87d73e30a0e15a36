"""What a lifecycle must be, and which moves it allows."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given

from batchstate.errors import InvalidLifecycleError, InvalidNameError, InvalidTransitionError, InvalidValueError
from batchstate.lifecycle import RESERVED_STATES, Lifecycle
from batchstate.readymade import CLAIM, MERGE_QUEUE
from tests.unit.lifecycles import lifecycles

QUEUE = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")


# ------------------------------------------------------------------------------------ the checks


@pytest.mark.parametrize(
    ("text", "settings", "says"),
    [
        ("", {}, "the lifecycle is empty. Name at least one state"),
        (" # nothing\n;", {}, "the lifecycle is empty"),
        ("a > b > b", {}, "the move 'b' > 'b' goes nowhere. Leave it out: a move to the present state is always"),
        ("a | b > b | c", {}, "the move 'b' > 'b' goes nowhere"),
        ("a > b; c > d", {}, "no way leads from 'a' to 'c', 'd'. Add a move"),
        ("a > b; c", {}, "no way leads from 'a' to 'c'. Add a move"),
        ("a > b", {"initial": "b"}, "no way leads from 'b' to 'a'. Add a move"),
        ("a > b > a", {}, "no way leads from 'a', 'b' to an end, so a batch there would never be done. Add a move out"),
        ("a > b > c > b; a > d", {}, "no way leads from 'b', 'c' to an end"),
        ("a > b > c", {"terminal": ["a", "c"]}, "the terminal state 'a' has a way out, to 'b'. Remove the move or"),
        ("a > b | c", {"terminal": ["b"]}, "no way leads from 'c' to an end"),
        ("a > b", {"terminal": []}, "no way leads from 'a', 'b' to an end"),
        ("a > best", {"terminal": ["bst"]}, "terminal names 'bst', which is no state. Did you mean 'best'? The states"),
        ("a > best", {"initial": "bets"}, "initial names 'bets', which is no state. Did you mean 'best'? The states"),
        ("a > best", {"settled": "b"}, "settled names 'b', which is no state. The states are 'a', 'best'"),
        ("a > best", {"abandoned": "b"}, "abandoned names 'b', which is no state. The states are 'a', 'best'"),
        ("a > b", {"settled": "settled"}, "settled names 'settled', which is no state"),
        ("a > b; c", {"settled": "b", "abandoned": "a"}, "no way leads from 'a' to 'c'"),
        ("a; b", {"settled": "b"}, "no way leads from 'a' to 'b'"),
    ],
)
def test_an_unsound_lifecycle_is_refused(text: str, settings: dict[str, Any], says: str) -> None:
    """Each unsound definition has an error of its own that names the states and says what to do."""
    with pytest.raises(InvalidLifecycleError) as caught:
        Lifecycle.parse(text, **settings)
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["claimed > done", "a > settled", "a > b | abandoned", "claimed > settled"])
def test_the_claims_own_states_are_reserved(text: str) -> None:
    """No other lifecycle may use the names of the claims' own states."""
    with pytest.raises(InvalidLifecycleError, match=r"belong to the claims' own lifecycle\. Choose other names"):
        Lifecycle.parse(text)
    assert set(CLAIM.states) == set(RESERVED_STATES)


def test_a_state_that_only_claims_lead_to_is_reached() -> None:
    """Where a claim ends, no move need lead, as long as a claim can get there."""
    flow = Lifecycle.parse("queued > working > done; closed; lapsed > queued", settled="closed", abandoned="lapsed")
    assert flow.terminal == {"done", "closed"}
    assert not flow.allows("working", "closed")


@pytest.mark.parametrize(
    ("states", "moves", "error", "says"),
    [
        ("abc", [], InvalidValueError, "a list of texts, not as the text 'abc'"),
        (["a", 5], [], InvalidNameError, ""),
        (["a", ""], [], InvalidNameError, ""),
        (["a", "a"], [], InvalidLifecycleError, "named twice: 'a'"),
        (["a", "b"], ["ab"], InvalidLifecycleError, "'ab' is no move. Give pairs"),
        (["a", "b"], [("a", "b", "c")], InvalidLifecycleError, "is no move. Give pairs"),
        (["a", "b"], [("a", 5)], InvalidLifecycleError, "is no move. Give pairs"),
        (["a", "be"], [("a", "b")], InvalidLifecycleError, "names 'b', which is no state. Did you mean 'be'?"),
        ([f"s{i}" for i in range(30)], [("s0", "x")], InvalidLifecycleError, "'s19', and 10 more"),
    ],
)
def test_a_lifecycle_put_together_by_hand_is_checked_too(
    states: object, moves: object, error: type[Exception], says: str
) -> None:
    """Whoever gives states and moves directly meets the same checks."""
    with pytest.raises(error) as caught:
        Lifecycle(states, moves)  # type: ignore[arg-type]
    assert says in str(caught.value)


# --------------------------------------------------------------------------------- as a value


def test_equal_definitions_are_equal_values() -> None:
    """Lifecycles compare and hash by what they say, however that was written."""
    same = Lifecycle(QUEUE.states, reversed(QUEUE.moves))
    assert same == QUEUE
    assert hash(same) == hash(QUEUE)
    assert attrs.evolve(QUEUE, settled="merged") != QUEUE
    assert Lifecycle.parse("a > b | c") != Lifecycle.parse("a > c | b")


def test_a_lifecycle_cannot_be_changed() -> None:
    """What was checked stays as it is."""
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        QUEUE.initial = "testing"  # type: ignore[misc]


@given(lifecycles())
def test_a_lifecycle_travels_between_processes(lifecycle: Lifecycle) -> None:
    """Pickled, copied and changed in part, a lifecycle is whole and answers as before."""
    for twin in (pickle.loads(pickle.dumps(lifecycle)), copy.deepcopy(lifecycle), attrs.evolve(lifecycle)):  # noqa: S301 - our own pickle
        assert twin == lifecycle
        assert hash(twin) == hash(lifecycle)
        assert twin.ordered(lifecycle.states) == lifecycle.ordered(lifecycle.states)


def test_it_shows_itself_as_the_call_that_makes_it() -> None:
    """The representation is the program text that makes an equal lifecycle."""
    assert repr(Lifecycle.parse("a > b")) == "Lifecycle.parse('a > b')"


# ----------------------------------------------------------------------------------- the moves


@given(lifecycles())
def test_declared_moves_and_staying_are_allowed_and_nothing_else(lifecycle: Lifecycle) -> None:
    """A batch may go where a move leads or stay where it is, and an end is where no move leads on."""
    for source in lifecycle.states:
        assert lifecycle.is_terminal(source) is (source in lifecycle.terminal)
        assert (source in lifecycle.terminal) is all(move[0] != source for move in lifecycle.moves)
        for to in lifecycle.states:
            allowed = source == to or (source, to) in lifecycle.moves
            assert lifecycle.allows(source, to) is allowed
            if allowed:
                lifecycle.check_move(source, to)
            else:
                with pytest.raises(InvalidTransitionError):
                    lifecycle.check_move(source, to)


@pytest.mark.parametrize(
    ("source", "to", "says"),
    [
        ("queued", "merged", "no move from 'queued' to 'merged': allowed from 'queued': 'testing'"),
        ("testing", "queued", "allowed from 'testing': 'merging', 'failed'"),
        ("merged", "queued", "'merged' is terminal, nothing follows it"),
        ("tested", "queued", "'tested' is no state of this lifecycle. Did you mean 'testing'?"),
        ("queued", "claimed", "'claimed' belongs to the claims, and only a claim moves a batch into or out of it"),
        ("claimed", "settled", "'claimed' belongs to the claims"),
        ("claimed", "testing", "'claimed' belongs to the claims"),
    ],
)
def test_a_refused_move_says_what_is_allowed(source: str, to: str, says: str) -> None:
    """The error names the moves there are, or why there is none."""
    assert not QUEUE.allows(source, to)
    with pytest.raises(InvalidTransitionError) as caught:
        QUEUE.check_move(source, to)
    assert says in str(caught.value)


def test_a_move_to_a_state_that_is_none_is_a_wrong_value() -> None:
    """Whoever misspells the target made a mistake in the call and is told the nearest name."""
    with pytest.raises(InvalidValueError, match=r"unknown state 'merrged'\. Did you mean 'merged'\?"):
        QUEUE.check_move("merging", "merrged")
    assert not QUEUE.allows("merging", "merrged")
    assert not QUEUE.allows("merrged", "merrged")


def test_a_batch_of_a_claim_may_stay_where_it_is() -> None:
    """A move to the present state is allowed in the claims' own states too."""
    QUEUE.check_move("claimed", "claimed")


@pytest.mark.parametrize("bad", ["tested", "", None, 5, ["queued"], "claimed", "abandoned"])
def test_a_state_that_no_user_can_put_a_batch_into_is_refused(bad: object) -> None:
    """Unknown states and the claims' own are refused, and the message names those there are."""
    with pytest.raises(InvalidValueError, match="The states are 'queued', 'testing', 'merging', 'merged', 'failed'"):
        QUEUE.check_state(bad)  # type: ignore[arg-type]
    assert QUEUE.check_state("testing") == "testing"


# ------------------------------------------------------------------------------- the ready-made


def test_the_merge_queue_can_always_be_cancelled_until_it_is_done() -> None:
    """Every state on the main line may fail or be cancelled, and a cancellation may come too late."""
    line = ("creating", "created", "speculating", "merging")
    assert MERGE_QUEUE.initial == "creating"
    assert MERGE_QUEUE.terminal == {"succeeded", "failed", "cancelled"}
    for state, following in zip(line, (*line[1:], "succeeded"), strict=True):
        after = {to for to in MERGE_QUEUE.states if to != state and MERGE_QUEUE.allows(state, to)}
        assert after == {following, "failed", "cancelling"}
    assert {to for source, to in MERGE_QUEUE.moves if source == "cancelling"} == MERGE_QUEUE.terminal


def test_the_merge_queue_has_no_cycle() -> None:
    """No batch comes to a state twice, so the source of a move says which move is meant."""
    assert not MERGE_QUEUE.any_cycle(MERGE_QUEUE.states)
    assert MERGE_QUEUE.ordered(MERGE_QUEUE.states)[4] == "cancelling"


def test_the_claims_own_lifecycle() -> None:
    """A claim is held, and then settled or abandoned."""
    assert CLAIM.states == RESERVED_STATES == ("claimed", "settled", "abandoned")
    assert CLAIM.moves == (("claimed", "settled"), ("claimed", "abandoned"))
    assert (CLAIM.settled, CLAIM.abandoned) == ("settled", "abandoned")
    assert CLAIM.ordered(["abandoned", "claimed"]) == ("claimed", "abandoned")
    CLAIM.check_move("claimed", "settled")


@pytest.mark.parametrize("lifecycle", [MERGE_QUEUE, CLAIM])
def test_the_ready_made_ones_read_back(lifecycle: Lifecycle) -> None:
    """Text, mapping and pickle of the ready-made lifecycles make equal ones."""
    assert Lifecycle.parse(str(lifecycle)) == lifecycle
    assert Lifecycle.from_mapping(lifecycle.to_mapping()) == lifecycle
    assert pickle.loads(pickle.dumps(lifecycle)) == lifecycle  # noqa: S301 - our own pickle
