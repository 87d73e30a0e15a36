"""Pictures of a lifecycle: a Mermaid diagram and an SVG, with the number of batches per state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from batchstate.errors import InvalidValueError
from batchstate.pictures_layout import Layout
from batchstate.pictures_svg import draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from batchstate.lifecycle import Lifecycle

__all__ = ["mermaid", "svg"]

_OTHER_STATES = "In other states"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_OTHER = re.compile(r"[^\w .,()\u2026-]")
# Words of the diagram's language, names that every JavaScript object has, and those that we or the renderer make.
_TAKEN = re.compile(
    "acc|accdescr|acctitle|as|choice|class|classdef|click|constructor|default|direction|end|fork"
    "|hasownproperty|hide|href|isprototypeof|join|left|note|of|over|propertyisenumerable|right"
    "|root.*|scale|start|state.*|style|title|tolocalestring|tostring|valueof",
    re.IGNORECASE,
)


def mermaid(lifecycle: Lifecycle, counts: Mapping[str, int] | None = None) -> str:
    """Draw a lifecycle as a Mermaid state diagram.

    Args:
        lifecycle: What to draw.
        counts: How many batches are in each state; a state left out has none. States that are not
            the lifecycle's own (a claim's, for instance) are told beside the diagram, if they have
            any. Without it no numbers are shown.

    Returns:
        The text of a `stateDiagram-v2`, ending in a line break. The same lifecycle and counts give
        the same text.

    Raises:
        InvalidValueError: A count is no whole number, or below zero.
    """
    counts = _checked(counts)
    alias = _aliases(lifecycle.states)
    lines = ["stateDiagram-v2", "    direction LR"]
    for state in lifecycle.states:
        label = state if counts is None else f"{state} ({counts.get(state, 0):,})"
        if label != alias[state]:
            lines.append(f'    state "{_escaped(label)}" as {alias[state]}')
    lines.append(f"    [*] --> {alias[lifecycle.initial]}")
    lines.extend(f"    {alias[source]} --> {alias[to]}" for source, to in lifecycle.moves)
    lines.extend(f"    {alias[s]} --> [*]" for s in lifecycle.states if s in lifecycle.terminal)
    lines.extend(f"    note right of {alias[state]} : {note}" for state, note in _notes(lifecycle).items())
    lines.extend(f"    %% {_OTHER_STATES}: {_escaped(text)}" for text in _elsewhere(lifecycle, counts))
    return "\n".join(lines) + "\n"


def svg(lifecycle: Lifecycle, counts: Mapping[str, int] | None = None) -> str:
    """Draw a lifecycle as an SVG that needs nothing else: no font, no script, no style sheet.

    The states stand in columns, old before new. Lines to the same state run together on the way.
    A move back is dashed. The start is a dot, an end has a double border. The colours follow the
    reader's choice of light or dark.

    Args:
        lifecycle: What to draw.
        counts: How many batches are in each state; a state left out has none. States that are not
            the lifecycle's own (a claim's, for instance) are told below, if they have any. Without
            it no numbers are shown.

    Returns:
        The text of an SVG file, ending in a line break. The same lifecycle and counts give the same
        text.

    Raises:
        InvalidValueError: A count is no whole number, or below zero.
    """
    counts = _checked(counts)
    order = (lifecycle.initial, *(s for s in lifecycle.ordered(lifecycle.states)))
    notes = _notes(lifecycle)
    layout = Layout.of(tuple(dict.fromkeys(order)), lifecycle.moves, notes=notes, counts=counts)
    return draw(
        layout,
        initial=lifecycle.initial,
        terminal=lifecycle.terminal,
        counts=counts,
        notes=notes,
        description=str(lifecycle),
        below=[f"{_OTHER_STATES}: {told}" for told in _elsewhere(lifecycle, counts)],
    )


def _checked(counts: Mapping[str, int] | None) -> Mapping[str, int] | None:
    for state, count in (counts or {}).items():
        # A bool is an int, but no count.
        if type(count) is not int or count < 0:
            raise InvalidValueError(f"the count of {state!r} is {count!r}. Give a whole number, 0 or more")
    return counts


def _notes(lifecycle: Lifecycle) -> dict[str, str]:
    """Say of a state that claims end in it."""
    ends = {"settled": lifecycle.settled, "abandoned": lifecycle.abandoned}
    if lifecycle.settled == lifecycle.abandoned:
        ends = {"ended": lifecycle.settled}
    return {state: f"{how} claims go here" for how, state in ends.items() if state and state != how}


def _elsewhere(lifecycle: Lifecycle, counts: Mapping[str, int] | None) -> list[str]:
    """Tell of batches in states that the picture does not have."""
    others = {s: n for s, n in (counts or {}).items() if n and s not in lifecycle.states}
    told = ", ".join(f"{state} {count:,}" for state, count in sorted(others.items()))
    return [told] if told else []


def _aliases(states: tuple[str, ...]) -> dict[str, str]:
    """Give each state an identifier that the diagram's language takes."""
    return {
        state: state if _PLAIN.fullmatch(state) and not _TAKEN.fullmatch(state) else f"state_{number}"
        for number, state in enumerate(states, 1)
    }


def _escaped(label: str) -> str:
    """Write every sign that could mean something in the diagram as a character code."""
    return _OTHER.sub(lambda sign: f"#{ord(sign.group())};", label)
