"""Sound lifecycles for property tests, and answers about them found the slow way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from batchstate.lifecycle import RESERVED_STATES, Lifecycle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Moves = set[tuple[str, str]]

CLAIM_MOVES = {("claimed", "settled"), ("claimed", "abandoned")}
PLAIN_NAMES = [f"state{number}" for number in range(8)]


def _may_name_a_state(text: str) -> bool:
    return 0 < len(text.encode()) <= 255 and text not in RESERVED_STATES


ODD_NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12).filter(_may_name_a_state)
TRICKY_NAMES = st.text('ab >|;#"\\=-,\u2192\u2028\ufffe', min_size=1, max_size=6).filter(_may_name_a_state)


def paths(moves: Iterable[tuple[str, str]], source: str) -> set[str]:
    """Every state that one or more moves lead to, found by walking."""
    moves = list(moves)
    found: set[str] = set()
    edge = {source}
    while edge:
        edge = {to for start, to in moves if start in edge} - found
        found |= edge
    return found


def all_moves(lifecycle: Lifecycle) -> Moves:
    """The declared moves, those that the end of a claim makes, and those of the claims' own lifecycle."""
    moves = set(lifecycle.moves) | CLAIM_MOVES
    leaving = {source for source, _ in lifecycle.moves}
    moves |= {
        (source, to)
        for source in leaving
        for to in (lifecycle.settled, lifecycle.abandoned)
        if to is not None and to != source
    }
    return moves


@st.composite
def lifecycles(draw: st.DrawFn, names: st.SearchStrategy[str] | None = None, *, claims: bool = True) -> Lifecycle:
    """Any sound lifecycle of up to seven states, with cycles or without, declared in any order."""
    if names is None:
        states = PLAIN_NAMES[: draw(st.integers(1, 7))]
    else:
        states = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    pairs = [(a, b) for a in states for b in states if a != b]
    moves: Moves = set(draw(st.lists(st.sampled_from(pairs), max_size=10))) if pairs else set()
    # Each state but the first is entered from an earlier one.
    moves |= {(states[draw(st.integers(0, place - 1))], states[place]) for place in range(1, len(states))}
    moves = _with_way_out(states, moves)
    terminal = set(states) - {source for source, _ in moves}
    ends = st.none() | st.sampled_from(states)
    declared: Sequence[str] = draw(st.permutations(states))
    return Lifecycle(
        declared,
        moves,
        initial=states[0],
        terminal=terminal,
        settled=draw(ends) if claims else None,
        abandoned=draw(ends) if claims else None,
    )


def _with_way_out(states: Sequence[str], moves: Moves) -> Moves:
    """Make the last state an end and lead there what would never come to one."""
    last = states[-1]
    moves = {move for move in moves if move[0] != last}
    for state in states[:-1]:
        ways = paths(moves, state)
        ends = {other for other in states if not any(source == other for source, _ in moves)}
        if not (ways | {state}) & ends:
            moves.add((state, last))
    return moves
