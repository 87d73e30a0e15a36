"""What the workers of `work` have done so far: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from batchstate.cli.output import errors
from batchstate.cli.safe import clean, many

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

__all__ = ["ENDS", "Tally"]

ENDS = ("completed", "retried", "delayed", "dead", "released", "lost")
"""What may become of a job, in the order it is told."""

_COLOURS = {"completed": "green", "retried": "yellow", "dead": "red", "lost": "red"}


class Tally:
    """Counts what workers report, and shows it as long as it is entered."""

    def __init__(self) -> None:
        self._ends: Counter[str] = Counter()
        self._claims = 0
        self._begun = time.monotonic()
        self._spinner = Spinner("dots")
        self._live = Live(console=errors, get_renderable=self._draw, refresh_per_second=5, transient=True)

    def __enter__(self) -> Self:
        """Begin to show it."""
        self._begun = time.monotonic()
        if errors.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last line standing."""
        if errors.is_terminal:
            self._live.stop()
            errors.print(self._line())

    def count(self, worker: int, size: int, ends: Mapping[str, int]) -> None:
        """Add what became of a claim."""
        self._claims += 1
        self._ends.update(ends)
        if not errors.is_terminal:
            said = ", ".join(f"{self._ends[name]:,} {name}" for name in ENDS if self._ends[name])
            self.says(f"worker {worker}: a claim of {many(size, 'job')}; so far {said}")

    def says(self, text: str) -> None:
        """Print a line, above the live one where there is one."""
        errors.print(Text(clean(text)), soft_wrap=True)

    def _draw(self) -> Table:
        drawn = Table.grid(padding=(0, 1))
        drawn.add_row(self._spinner, self._line())
        return drawn

    def _line(self) -> Text:
        """Answer the counts and the rate, coloured."""
        line = Text(many(self._claims, "claim"))
        for name in ENDS:
            if self._ends[name]:
                line.append(f"  {self._ends[name]:,} {name}", style=_COLOURS.get(name, ""))
        seconds = max(time.monotonic() - self._begun, 0.001)
        return line.append(f"  {self._ends.total() / seconds:,.0f} jobs/s", style="dim")
