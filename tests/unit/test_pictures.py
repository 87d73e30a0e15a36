"""Pictures of a lifecycle."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchstate.errors import InvalidValueError
from batchstate.lifecycle import Lifecycle
from batchstate.pictures_layout import Box, Layout, Line, shortened
from batchstate.readymade import MERGE_QUEUE
from tests.unit.lifecycles import ODD_NAMES, TRICKY_NAMES, lifecycles

QUEUE = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")
ROUND = Lifecycle.parse("queued > running > waiting > running; running > done")
SVG = "{http://www.w3.org/2000/svg}"
ANY_COUNTS = st.none() | st.dictionaries(st.sampled_from(["state0", "state1", "gone"]), st.integers(0, 10**9))


# ------------------------------------------------------------------------------------- mermaid


def test_mermaid_draws_states_moves_start_and_ends() -> None:
    """The diagram names each move, the start and every end."""
    assert QUEUE.mermaid() == (
        "stateDiagram-v2\n"
        "    direction LR\n"
        "    [*] --> queued\n"
        "    queued --> testing\n"
        "    testing --> merging\n"
        "    testing --> failed\n"
        "    merging --> merged\n"
        "    merging --> failed\n"
        "    merged --> [*]\n"
        "    failed --> [*]\n"
    )


def test_mermaid_shows_counts_in_the_labels() -> None:
    """Each state shows its number, none means 0, and batches elsewhere are told in a comment."""
    lines = ROUND.mermaid({"queued": 1234, "running": 2, "claimed": 3, "settled": 0}).splitlines()
    assert '    state "queued (1,234)" as queued' in lines
    assert '    state "running (2)" as running' in lines
    assert '    state "done (0)" as done' in lines
    assert lines[-1] == "    %% In other states: claimed 3"


def test_mermaid_names_odd_states_safely() -> None:
    """Words of the diagram's language and odd names get an alias of their own, signs become codes."""
    text = Lifecycle.parse('end > "a b" > "say \\"<b>;%%\\"" > state_2 > constructor > stateless').mermaid()
    assert '    state "end" as state_1\n' in text
    assert '    state "a b" as state_2\n' in text
    assert '    state "state_2" as state_4\n' in text
    assert '    state "say #34;#60;b#62;#59;#37;#37;#34;" as state_3\n' in text
    assert '    state "constructor" as state_5\n' in text
    assert "    state_5 --> state_6\n" in text


@given(lifecycles(ODD_NAMES | TRICKY_NAMES | st.sampled_from(["End", "state_1", "state_2", "State_3", "note"])))
def test_mermaid_is_safe_whatever_the_names(lifecycle: Lifecycle) -> None:
    """Every line has one of the known forms, and no two states share an alias."""
    lines = lifecycle.mermaid(dict.fromkeys(lifecycle.states, 1)).splitlines()
    alias = r"[A-Za-z][A-Za-z0-9_]*"
    label = r'[^"<>{}\\`\n\r\u2028;%]|#\d+;'
    forms = re.compile(
        rf'    state "(?:{label})+" as (?P<alias>{alias})'
        rf"|    (?:\[\*\]|{alias}) --> (?:\[\*\]|{alias})"
        rf"|    note right of {alias} : [a-z ]+"
    )
    matches = [forms.fullmatch(line) for line in lines[2:]]
    assert all(matches)
    aliases = [match["alias"] for match in matches if match and match["alias"]]
    assert len(set(aliases)) == len(aliases) == len(lifecycle.states)


def test_mermaid_notes_where_claims_end() -> None:
    """Where a claim's end is named, the state says so."""
    assert (
        "    note right of merged : settled claims go here\n" in Lifecycle.parse(str(QUEUE), settled="merged").mermaid()
    )
    both = Lifecycle.parse(str(QUEUE), settled="failed", abandoned="failed")
    assert "    note right of failed : ended claims go here\n" in both.mermaid()
    assert "note" not in QUEUE.mermaid()


# ----------------------------------------------------------------------------------------- svg


def _texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]  # noqa: S314 - our own picture


def test_svg_shows_names_and_counts() -> None:
    """Each box holds its name and, when asked, its number; batches elsewhere are told below."""
    assert _texts(QUEUE.svg()) == ["queued", "testing", "merging", "merged", "failed"]
    counted = _texts(ROUND.svg({"running": 1200333, "claimed": 4, "gone": 1}))
    assert counted == [
        *("queued", "0", "running", "1,200,333", "waiting", "0", "done", "0"),
        "In other states: claimed 4, gone 1",
    ]


def test_svg_marks_ends_busy_states_and_moves_back() -> None:
    """Ends have a double border, states with batches stand out, and moves back are dashed."""
    svg = ROUND.svg({"running": 2})
    assert svg.count('class="inner"') == 1
    assert svg.count('class="box busy"') == 1
    assert svg.count('class="line back"') == 1
    assert svg.count('class="head returning"') == 1
    assert 'class="line back"' not in QUEUE.svg({"queued": 1})


def test_svg_needs_nothing_else() -> None:
    """No script, no reference, no other document, and colours for light and dark."""
    svg = MERGE_QUEUE.svg({"creating": 1})
    root = ET.fromstring(svg)  # noqa: S314 - our own picture
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        *("svg", "title", "desc", "style", "g", "path", "circle", "rect", "text")
    }
    assert not re.search(r"href|url\(|@import|@font-face|<!", svg)
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "@media (prefers-color-scheme:dark)" in svg
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}desc") == str(MERGE_QUEUE)


@given(lifecycles(ODD_NAMES | TRICKY_NAMES | st.just("x" * 255)))
def test_svg_is_well_formed_whatever_the_names(lifecycle: Lifecycle) -> None:
    """Every name is escaped, and a long one is cut but told in full."""
    root = ET.fromstring(lifecycle.svg())  # noqa: S314 - our own picture
    shown = {element.text for element in root.iter(f"{SVG}text")}
    told = {element.text for element in root.iter(f"{SVG}title")}
    for state in lifecycle.states:
        name = state.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
        assert name in shown or name in told
        assert shortened(name) in shown


def test_long_names_are_cut_by_their_width() -> None:
    """A name is cut where it is wider than a box; wide signs count twice, combining ones not at all."""
    assert shortened("x" * 26) == "x" * 26
    assert shortened("x" * 27) == "x" * 25 + "\u2026"
    assert shortened("\u72b6" * 13) == "\u72b6" * 13
    assert shortened("\u72b6" * 14) == "\u72b6" * 12 + "\u2026"
    assert shortened("e\u0301" * 26) == "e\u0301" * 26


# ------------------------------------------------------------------------------------ the layout


def _layout(lifecycle: Lifecycle, counts: dict[str, int] | None = None) -> Layout:
    order = dict.fromkeys([lifecycle.initial, *lifecycle.ordered(lifecycle.states)])
    return Layout.of(tuple(order), lifecycle.moves, notes={}, counts=counts)


def _at(box: Box, point: tuple[float, float]) -> bool:
    return point[0] in (box.x, box.x + box.width) and abs(point[1] - box.y) < box.height / 2


def _moves_drawn(layout: Layout) -> set[tuple[str, str]]:
    """Follow the lines with a finger: from each box along its lines to the arrows they end in."""
    drawn: set[tuple[str, str]] = set()
    for box in layout.boxes:
        for back in (False, True):
            lines = [(_ends(line), line.arrow) for line in layout.lines if line.back is back]
            leaving = box.x if back else box.x + box.width
            reached = [item for item in lines if item[0][0][0] == leaving and _at(box, item[0][0])]
            while reached:
                (_, end), arrow = reached.pop()
                if arrow:
                    drawn |= {(box.state, other.state) for other in layout.boxes if _at(other, end)}
                else:
                    reached += [item for item in lines if item[0][0] == end]
    return drawn


def _ends(line: Line) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the line begins and ends as the batch goes; a lane's own stretch counts to the piece after it."""
    points = line.points[::-1] if line.back else line.points
    return points[0], points[-1]


@given(lifecycles(claims=False))
@settings(max_examples=60)
def test_the_lines_tell_the_moves_and_no_others(lifecycle: Lifecycle) -> None:
    """Whoever follows the lines from a state, also where lines run together, finds where it may go."""
    assert _moves_drawn(_layout(lifecycle)) == set(lifecycle.moves)


@given(lifecycles(), ANY_COUNTS)
@settings(max_examples=60)
def test_nothing_covers_anything(lifecycle: Lifecycle, counts: dict[str, int] | None) -> None:
    """Boxes stand apart, lines pass beside them, and everything is inside the picture."""
    layout = _layout(lifecycle, counts)
    boxes = list(layout.boxes)
    for place, one in enumerate(boxes):
        assert layout.top <= one.y - one.height / 2
        assert one.y + one.height / 2 <= layout.bottom
        assert 0 <= one.x <= one.x + one.width <= layout.width + 0.01  # a sum of floats
        for other in boxes[:place]:
            beside = one.x >= other.x + other.width or other.x >= one.x + one.width
            assert beside or abs(one.y - other.y) >= (one.height + other.height) / 2 + 10
        for line in layout.lines:
            if len(line.points) == 3 and line.points[0][0] <= one.x <= line.points[1][0]:
                assert abs(line.points[0][1] - one.y) > one.height / 2 + 5


def test_the_main_line_is_level_from_left_to_right() -> None:
    """The way from each state to the next declared one is a straight line, old to the left of new."""
    boxes = {box.state: box for box in _layout(MERGE_QUEUE).boxes}
    main = [boxes[state] for state in ("creating", "created", "speculating", "merging", "succeeded")]
    assert {box.y for box in main} == {0.0}
    assert [box.x for box in main] == sorted(box.x for box in main)


def test_the_same_picture_every_time() -> None:
    """The text of both pictures does not depend on the process that draws it."""
    program = (
        "from batchstate.readymade import MERGE_QUEUE as m;"
        "print(m, m.svg({'gone': 1, 'lost': 2}), m.mermaid({'gone': 1, 'lost': 2}))"
    )
    root = Path(__file__).parents[2]
    drawn = {
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(drawn) == 1


@pytest.mark.parametrize("count", [-1, 1.5, "3", True, None])
def test_a_count_that_is_none_is_refused(count: object) -> None:
    """Only whole numbers from 0 are counts, in both pictures."""
    for draw in (QUEUE.svg, QUEUE.mermaid):
        with pytest.raises(InvalidValueError, match=r"the count of 'queued' is .* Give a whole number, 0 or more"):
            draw({"queued": count})  # type: ignore[dict-item]
