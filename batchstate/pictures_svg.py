"""Writes a laid-out lifecycle as SVG."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batchstate.pictures_layout import Box, Layout, Line

__all__ = ["draw"]

_MARGIN = 16.0
_START = 34.0  # room for the dot and its arrow
_HEAD = 8.0  # the length of an arrowhead
_LINE_BELOW = 22.0
_ASIDE = 14.0
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Everything is under one class, so that the picture can stand inside a page.
_STYLE = """
.batchstate text{font:14px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;\
text-anchor:middle;fill:#1f2328}
.batchstate .number{font-size:15px;font-weight:600}
.batchstate .small{font-size:11px;fill:#59636e}
.batchstate .below{text-anchor:start}
.batchstate .none{font-weight:400;fill:#818b98}
.batchstate .box{fill:#f6f8fa;stroke:#59636e;stroke-width:1.5}
.batchstate .busy{fill:#ddf4ff;stroke:#0969da}
.batchstate .inner{fill:none;stroke:#59636e}
.batchstate .inner.busy{stroke:#0969da}
.batchstate .line{fill:none;stroke:#818b98;stroke-width:1.5}
.batchstate .back{stroke:#9a6700;stroke-dasharray:5 4}
.batchstate .head{fill:#59636e}
.batchstate .head.returning{fill:#9a6700}
@media (prefers-color-scheme:dark){
.batchstate text{fill:#f0f6fc}
.batchstate .small{fill:#9198a1}
.batchstate .none{fill:#656c76}
.batchstate .box{fill:#151b23;stroke:#9198a1}
.batchstate .busy{fill:#122d4f;stroke:#4493f8}
.batchstate .inner{fill:none;stroke:#9198a1}
.batchstate .inner.busy{stroke:#4493f8}
.batchstate .line{stroke:#656c76}
.batchstate .back{stroke:#d29922}
.batchstate .head{fill:#9198a1}
.batchstate .head.returning{fill:#d29922}
}
"""


def draw(
    layout: Layout,
    *,
    initial: str,
    terminal: frozenset[str],
    counts: Mapping[str, int] | None,
    notes: Mapping[str, str],
    description: str,
    below: Sequence[str],
) -> str:
    """Write the picture.

    Args:
        layout: Where everything stands.
        initial: The state that begins; a dot points at it.
        terminal: The ends; they have a double border.
        counts: The number to show in each box, or `None` for no numbers.
        notes: What to say below the name of some states.
        description: The lifecycle in words, for those who cannot see the picture.
        below: Lines of text to set under it.

    Returns:
        The text of an SVG file.
    """
    left, up = _MARGIN + _START, _MARGIN - layout.top
    width = left + layout.width + _MARGIN
    height = layout.bottom - layout.top + 2 * _MARGIN + _LINE_BELOW * len(below)
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    first = next(box for box in layout.boxes if box.state == initial)
    # Those that go back lie lowest, and every line lies under the boxes.
    lines = sorted(layout.lines, key=lambda line: not line.back)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="batchstate" role="img" {size}>',
        f"<title>{_text(', '.join(box.state for box in layout.boxes))}</title>",
        f"<desc>{_text(description)}</desc>",
        f"<style>{_STYLE}</style>",
        f'<g transform="translate({_n(left)} {_n(up)})">',
        *map(_line, lines),
        *(_head(line) for line in lines if line.arrow),
        f'<circle class="head" cx="{_n(first.x - 28)}" cy="{_n(first.y)}" r="5"/>',
        f'<path class="line" d="M{_n(first.x - 23)} {_n(first.y)}H{_n(first.x - _HEAD + 1)}"/>',
        _triangle(first.x, first.y, -_HEAD, "head"),
    ]
    for box in layout.boxes:
        count = None if counts is None else counts.get(box.state, 0)
        parts += _box(box, count, notes.get(box.state, ""), end=box.state in terminal)
    parts.append("</g>")
    for number, text in enumerate(below):
        y = height - _MARGIN - _LINE_BELOW * (len(below) - 1 - number)
        parts.append(f'<text class="small below" x="{_n(_MARGIN)}" y="{_n(y)}">{_text(text)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(line: Line) -> str:
    """Draw a line through its points, which it passes level."""
    points = list(line.points)
    if line.arrow:
        # The head covers the last bit, so that the point of the arrow stays sharp.
        end, step = (0, _HEAD - 1) if line.back else (-1, 1 - _HEAD)
        points[end] = (points[end][0] + step, points[end][1])
    (x, y), *_ = points
    path = f"M{_n(x)} {_n(y)}"
    for (x_a, y_a), (x_b, y_b) in pairwise(points):
        if abs(y_a - y_b) < 1:
            path += f"L{_n(x_b)} {_n(y_b)}"
        else:
            # A way back bends a little before the way there, which it may run beside.
            bend = (x_a + x_b) / 2 - _ASIDE * line.back
            path += f"C{_n(bend)} {_n(y_a)} {_n(bend)} {_n(y_b)} {_n(x_b)} {_n(y_b)}"
    return f'<path class="line{" back" if line.back else ""}" d="{path}"/>'


def _head(line: Line) -> str:
    x, y = line.points[0 if line.back else -1]
    return _triangle(x, y, _HEAD if line.back else -_HEAD, f"head{' returning' * line.back}")


def _triangle(x: float, y: float, length: float, style: str) -> str:
    base = _n(x + length)
    return f'<path class="{style}" d="M{_n(x)} {_n(y)}L{base} {_n(y - 4)}V{_n(y + 4)}Z"/>'


def _box(box: Box, count: int | None, note: str, *, end: bool) -> list[str]:
    """Draw a state: its border, name, number and note."""
    busy = " busy" if count else ""
    top = box.y - box.height / 2
    parts = ["<g>"]
    if box.label != box.state:
        parts.append(f"<title>{_text(box.state)}</title>")
    parts.append(_border(f"box{busy}", box.x, top, box.width, box.height, 8))
    if end:
        parts.append(_border(f"inner{busy}", box.x + 3, top + 3, box.width - 6, box.height - 6, 5.5))
    middle, y = box.x + box.width / 2, top + 24
    parts.append(_label("name", middle, y, box.label))
    if note:
        y += 15
        parts.append(_label("small", middle, y, note))
    if count is not None:
        y += 19
        parts.append(_label("number" if count else "number none", middle, y, f"{count:,}"))
    return [*parts, "</g>"]


def _border(style: str, x: float, y: float, width: float, height: float, round_: float) -> str:
    return (
        f'<rect class="{style}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(round_)}"/>'
    )


def _label(style: str, x: float, y: float, text: str) -> str:
    return f'<text class="{style}" x="{_n(x)}" y="{_n(y)}" xml:space="preserve">{_text(text)}</text>'


def _text(text: str) -> str:
    """Escape a text; a sign that no XML may hold is replaced."""
    return escape(_NOT_IN_XML.sub("\ufffd", text))


def _n(value: float) -> str:
    """Write a coordinate: one decimal, and no more digits than needed."""
    return f"{round(value, 1) + 0.0:g}"
