"""`watch`: `status` on a live screen, which survives the store going away and coming back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from batchstate import BatchStateError, InvalidValueError
from batchstate.cli.output import out
from batchstate.cli.safe import clean, many
from batchstate.cli.settings import LifecycleOption, QueueOption, UrlOption, target
from batchstate.cli.summary import draw, summarise

if TYPE_CHECKING:
    from rich.console import RenderableType

    from batchstate.cli.settings import Target

__all__ = ["picture", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("watch", rich_help_panel="Looking")(watch)


def watch(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds from one look to the next.")] = 1.0,
    times: Annotated[int | None, typer.Option(min=1, help="How often to look; for ever by default.")] = None,
) -> None:
    """Watch what the queues of a store have, until Ctrl-C.

    Example: batchstate watch --queue merges
    """
    chosen = target(url, queue, lifecycle)
    looks = 0
    last: RenderableType = Text("looking …", style="dim")
    with Live(last, console=out, auto_refresh=False, screen=out.is_terminal) as live:
        try:
            while times is None or looks < times:
                seen, wrong = picture(chosen)
                last = seen or last
                live.update(Group(wrong, last) if wrong else last, refresh=True)
                looks += 1
                if times is None or looks < times:
                    time.sleep(every)
        except KeyboardInterrupt:
            return


def picture(chosen: Target) -> tuple[RenderableType | None, Text | None]:
    """Answer the present picture, or what is wrong while the store cannot be reached.

    Raises:
        InvalidValueError: what was asked for will never work, however long one waits.
    """
    try:
        summaries = summarise(chosen)
    except InvalidValueError:
        raise
    except BatchStateError as error:
        return None, Text(clean(f"{time.strftime('%H:%M:%S')}  {error}"), style="bold red")
    head = Text(f"{time.strftime('%H:%M:%S')}  {many(len(summaries), 'queue')}", style="dim")
    return Group(head, *(draw(summary) for summary in summaries)), None
