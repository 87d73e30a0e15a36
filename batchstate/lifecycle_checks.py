"""What a lifecycle must be, and what to do where one is not."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING

from batchstate.errors import InvalidLifecycleError, InvalidValueError
from batchstate.names import check_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from batchstate.lifecycle_graph import Graph
    from batchstate.lifecycle_text import Moves

__all__ = [
    "CLAIM_MOVES",
    "RESERVED_STATES",
    "among",
    "as_moves",
    "as_name_set",
    "as_names",
    "check_ends",
    "check_moves",
    "check_named",
    "check_states",
    "ends_of",
    "listed",
]

RESERVED_STATES = ("claimed", "settled", "abandoned")
"""The states of a claim's own lifecycle; no other lifecycle may use these names."""

CLAIM_MOVES = (("claimed", "settled"), ("claimed", "abandoned"))

_MOST_LISTED = 20


def as_names(value: Iterable[str]) -> tuple[str, ...]:
    """Take names in. `InvalidValueError` for one text: it is not several."""
    if isinstance(value, str):
        raise InvalidValueError(f"states are given as a list of texts, not as the text {value!r}")
    return tuple(value)


def as_name_set(value: Iterable[str]) -> frozenset[str]:
    """Take names in whose order does not matter. `InvalidValueError` for one text."""
    return frozenset(as_names(value))


def as_moves(value: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Take moves in. `InvalidLifecycleError` for what is no pair."""
    moves: list[tuple[str, str]] = []
    for move in value:
        match move:
            case (str(source), str(to)):
                moves.append((source, to))
            case _:
                raise InvalidLifecycleError(f"{move!r} is no move. Give pairs of a source and a target")
    return tuple(moves)


def ends_of(states: Iterable[str], moves: Moves) -> frozenset[str]:
    """Return the states without a way out."""
    return frozenset(states).difference(source for source, _ in moves)


def listed(names: Iterable[str]) -> str:
    """Return names as an error shows them: quoted, and not more of them than help."""
    shown = [repr(name) for name in names]
    more = len(shown) - _MOST_LISTED
    if more > 0:
        shown[_MOST_LISTED:] = [f"and {more} more"]
    return ", ".join(shown)


def among(name: object, known: Sequence[str]) -> str:
    """Return the end of an error about an unknown name: the one that was meant, and all."""
    near = get_close_matches(name, known, n=1) if isinstance(name, str) else []
    meant = f"Did you mean {near[0]!r}? " if near else ""
    return f"{meant}The states are {listed(known)}"


def check_states(states: Sequence[str]) -> None:
    """Refuse an empty lifecycle, bad names and names given twice.

    Args:
        states: In declaration order.

    Raises:
        InvalidLifecycleError: There is none, or one of them is given twice.
        InvalidNameError: One of them cannot be a name.
    """
    if not states:
        raise InvalidLifecycleError("the lifecycle is empty. Name at least one state, as in 'queued > running > done'")
    for state in states:
        check_name("state", state)
    twice = [state for state, count in Counter(states).items() if count > 1]
    if twice:
        raise InvalidLifecycleError(f"named twice: {listed(twice)}. Name each state once")


def check_moves(states: Sequence[str], moves: Moves) -> None:
    """Refuse moves between states that are none, and from a state to itself.

    Args:
        states: In declaration order.
        moves: The allowed moves.

    Raises:
        InvalidLifecycleError: There is such a move, or a reserved name is used.
    """
    known = set(states)
    for source, to in moves:
        for state in (source, to):
            if state not in known:
                raise InvalidLifecycleError(
                    f"the move {source!r} > {to!r} names {state!r}, which is no state. {among(state, states)}"
                )
        if source == to:
            raise InvalidLifecycleError(
                f"the move {source!r} > {to!r} goes nowhere. Leave it out: a move to the present "
                f"state is always allowed"
            )
    reserved = known.intersection(RESERVED_STATES)
    if reserved and not (tuple(states) == RESERVED_STATES and set(moves) == set(CLAIM_MOVES)):
        taken = [state for state in RESERVED_STATES if state in reserved]
        raise InvalidLifecycleError(
            f"{listed(taken)} cannot be used here: {listed(RESERVED_STATES)} belong to the claims' "
            f"own lifecycle. Choose other names"
        )


def check_named(states: Sequence[str], settings: Mapping[str, str]) -> None:
    """Refuse a setting whose value is no state of the lifecycle.

    Args:
        states: In declaration order.
        settings: What is set (`initial` for instance) and the state it names.

    Raises:
        InvalidLifecycleError: One of them names no state.
    """
    for setting, state in settings.items():
        if state not in states:
            raise InvalidLifecycleError(f"{setting} names {state!r}, which is no state. {among(state, states)}")


def check_ends(initial: str, terminal: frozenset[str], ways: Mapping[str, Sequence[str]], graph: Graph) -> None:
    """Refuse states that cannot be reached or left, and ends that are none.

    Args:
        initial: The state that a batch is created in.
        terminal: The states that are said to be ends.
        ways: For each state in declaration order, where the moves lead.
        graph: The same moves, and those that the end of a claim makes.

    Raises:
        InvalidLifecycleError: A terminal state has a way out, a state is never reached, or a batch
            in it could never come to an end.
    """
    for state in ways:
        if state in terminal and ways[state]:
            raise InvalidLifecycleError(
                f"the terminal state {state!r} has a way out, to {listed(ways[state])}. Remove the "
                f"move or do not call the state terminal"
            )
    lost = [state for state in ways if state != initial and state not in graph.after[initial]]
    if lost:
        raise InvalidLifecycleError(
            f"no way leads from {initial!r} to {listed(lost)}. Add a move to what should be "
            f"reached, remove the rest, or begin elsewhere with initial"
        )
    caught = _without_end(terminal, ways)
    if caught:
        raise InvalidLifecycleError(
            f"no way leads from {listed(caught)} to an end, so a batch there would never be done. "
            f"Add a move out of there to a terminal state (terminal here: "
            f"{listed(state for state in ways if state in terminal) or 'none'})"
        )


def _without_end(terminal: frozenset[str], ways: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the states from which the moves alone lead to no terminal state."""
    ending = set(terminal)
    grown = True
    while grown:
        more = {state for state in ways if ending.intersection(ways[state])} - ending
        ending |= more
        grown = bool(more)
    return [state for state in ways if state not in ending]
