"""What the workers of `work` do: a live line on a terminal, plain lines elsewhere, or a line of JSON for each event."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from batchstate.cli.output import errors, print_json_line
from batchstate.cli.safe import clean, many
from batchstate.times import wall_clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

__all__ = ["ENDS", "Tally"]

ENDS = ("completed", "retried", "delayed", "dead", "released", "lost")
"""What may become of a job, in the order it is told."""

_COLOURS = {"completed": "green", "retried": "yellow", "dead": "red", "lost": "red"}


class Tally:
    """Counts what workers report, and shows it as long as it is entered.

    Args:
        json: whether each event is printed as a line of JSON, and nothing else is shown.
    """

    def __init__(self, *, json: bool = False) -> None:
        self._json = json
        self._alive = errors.is_terminal and not json
        self._ends: Counter[str] = Counter()
        self._claims = 0
        self._begun = time.monotonic()
        self._spinner = Spinner("dots")
        self._live = Live(console=errors, get_renderable=self._draw, refresh_per_second=5, transient=True)

    def __enter__(self) -> Self:
        """Begin to show it."""
        self._begun = time.monotonic()
        if self._alive:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the live line away."""
        if self._alive:
            self._live.stop()

    def settled(self, worker: int, size: int, ends: Mapping[str, int]) -> None:
        """Add what became of a claim."""
        self._claims += 1
        self._ends.update(ends)
        if self._json:
            self._event("settled", worker=worker, jobs=size, ends={name: ends.get(name, 0) for name in ENDS})
        elif not self._alive:
            said = ", ".join(f"{self._ends[name]:,} {name}" for name in ENDS if self._ends[name])
            self._say(f"worker {worker}: a claim of {many(size, 'job')}; so far {said}")

    def crashed(self, worker: int, code: int, again: float | None) -> None:
        """Tell of a worker that crashed.

        Args:
            worker: its process ID.
            code: its exit code; a negative one names the signal that killed it.
            again: in how many seconds another takes its place, `None` where none does.
        """
        if self._json:
            self._event("crashed", worker=worker, code=code, again_in=again)
            return
        how = f"was killed by signal {-code}" if code < 0 else f"crashed with exit code {code}"
        then = "another takes its place" + (f" in {again:g} s" if again else "")
        if again is None:
            then = "too many in a row crashed before they had settled anything, so this ends"
        self._say(f"worker {worker} {how}; {then}")

    def draining(self, grace: float) -> None:
        """Tell that the jobs in hand are finished, for up to so many seconds, and no more are claimed."""
        if self._json:
            self._event("draining", grace=grace)
        else:
            self._say(f"finishing what is in hand, for up to {grace:g} s; once more ends it at once")

    def late(self, count: int) -> None:
        """Tell that so many workers did not finish in time."""
        if self._json:
            self._event("late", workers=count)
        else:
            workers = many(count, "worker")
            self._say(f"{workers} did not finish within the grace; their jobs come back when the leases lapse")

    def ended(self, code: int) -> None:
        """Tell the exit code, and what was done in all."""
        if self._json:
            seconds = round(time.monotonic() - self._begun, 3)
            ends = {name: self._ends[name] for name in ENDS}
            self._event("ended", code=code, seconds=seconds, claims=self._claims, ends=ends)
        else:
            errors.print(self._line(), soft_wrap=True)

    def _event(self, event: str, **facts: object) -> None:
        print_json_line({"event": event, "at": wall_clock(), **facts})

    def _say(self, text: str) -> None:
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
