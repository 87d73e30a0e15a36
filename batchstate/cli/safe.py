r"""Keeps what is stored from steering the terminal it is shown on.

A payload, an error, a reason or a name may have been written by somebody else, with escapes in it that clear the
screen, set the window's title or turn text round. They are shown as `\\x1b` and the like, never sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType

__all__ = ["SafeConsole", "clean", "clean_json", "many"]

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of the text round
    "\u2028\u2029\ufeff\ud800-\udfff]"  # other line ends, and halves of characters, which cannot be written
)


def clean(text: str) -> str:
    """Answer a text with its control characters made visible; tabs and line feeds stay."""
    return _CONTROLS.sub(lambda found: _visible(ord(found[0])), text)


def clean_json(text: str) -> str:
    """Answer the same JSON with control characters escaped that JSON itself would let pass."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def many(count: int, one: str, more: str | None = None) -> str:
    """Answer a count with what is counted: `1 job`, `2,000 jobs`."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


class SafeConsole(Console):
    """A console that sends no control character of a text to the terminal, whatever it is asked to draw."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Draw something, as `Console.render`, with the texts cleaned; rich's own control codes pass."""
        for segment in super().render(renderable, options):
            if segment.control or not _CONTROLS.search(segment.text):
                yield segment
            else:
                yield Segment(clean(segment.text), segment.style)


def _visible(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - one byte or two
