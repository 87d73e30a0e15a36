"""`watch`: `status` again and again, live on a terminal; it survives the store going away and coming back."""

from __future__ import annotations

import time
from signal import SIGINT, signal
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer
from attrs import frozen
from rich.console import Group
from rich.live import Live
from rich.text import Text

from batchstate import BatchStateError, InvalidValueError
from batchstate.cli.output import out, print_json_line
from batchstate.cli.safe import clean, many
from batchstate.cli.settings import JsonOption, LifecycleOption, QueueOption, UrlOption, target
from batchstate.cli.summary import Summary, draw, summarise
from batchstate.times import wall_clock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from batchstate.cli.settings import Target

__all__ = ["Look", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("watch", rich_help_panel="Looking")(watch)


def watch(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds from one look to the next.")] = 1.0,
    times: Annotated[int | None, typer.Option(min=1, help="How often to look; for ever by default.")] = None,
    json: JsonOption = False,
) -> None:
    """Watch what the queues of a store have, until Ctrl-C; in a pipe, and with --json, one look after the other.

    Example: batchstate watch --queue merges
    """
    looks = _looks(target(url, queue, lifecycle), every, times, _interrupted())
    try:
        if json:
            for look in looks:
                print_json_line(look.as_json())
        elif out.is_terminal:
            _live(looks)
        else:
            for look in looks:
                out.print(look.draw())
                out.file.flush()
    except KeyboardInterrupt:
        return


@frozen
class Look:
    """What was seen at one look.

    Attributes:
        at: when, in milliseconds since the epoch.
        queues: what each queue has; `None` while the store could not be reached.
        error: why it could not be.
    """

    at: int
    queues: Sequence[Summary] | None
    error: str = ""

    @classmethod
    def at_store(cls, chosen: Target) -> Look:
        """Look; raises `InvalidValueError` where what was asked for will never work, however long one waits."""
        try:
            return cls(wall_clock(), summarise(chosen))
        except InvalidValueError:
            raise
        except BatchStateError as error:
            return cls(wall_clock(), None, str(error))

    def as_json(self) -> dict[str, object]:
        """Answer it in the shape that `--json` prints."""
        queues = None if self.queues is None else [summary.as_json() for summary in self.queues]
        return {"at": self.at, "queues": queues, "error": self.error or None}

    def draw(self) -> RenderableType:
        """Answer it drawn."""
        clock = time.strftime("%H:%M:%S", time.localtime(self.at / 1000))
        if self.queues is None:
            return Text(clean(f"{clock}  {self.error}"), style="bold red")
        head = Text(f"{clock}  {many(len(self.queues), 'queue')}", style="dim")
        return Group(head, *(draw(summary) for summary in self.queues))


def _interrupted() -> Event:
    """Answer what tells that Ctrl-C was pressed, also where its exception was lost: Python drops it in finalizers."""
    interrupted = Event()

    def interrupt(_signal: int, _frame: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    signal(SIGINT, interrupt)
    return interrupted


def _looks(chosen: Target, every: float, times: int | None, interrupted: Event) -> Iterator[Look]:
    yield Look.at_store(chosen)
    seen = 1
    while (times is None or seen < times) and not interrupted.wait(every):
        yield Look.at_store(chosen)
        seen += 1


def _live(looks: Iterator[Look]) -> None:
    """Show each look in the place of the last; an error stands above what was seen last."""
    last: RenderableType = Text("looking …", style="dim")
    with Live(last, console=out, auto_refresh=False, screen=True) as live:
        for look in looks:
            drawn = look.draw()
            last = drawn if look.queues is not None else last
            live.update(drawn if look.queues is not None else Group(drawn, last), refresh=True)
