"""The command and its subcommands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batchstate.cli.demo import run_demo

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="See and mend what batchstate keeps, and work it off.")


@app.callback()
def _root() -> None:
    """See and mend what batchstate keeps, and work it off."""


@app.command()
def demo(
    workers: Annotated[int, typer.Option(min=2, help="How many worker processes.")] = 4,
    kills: Annotated[int, typer.Option(min=0, help="How many of them are killed on the way.")] = 24,
    changes: Annotated[int, typer.Option(min=1, max=3000, help="How many real changes to merge.")] = 3000,
    seed: Annotated[int, typer.Option(help="Makes the feed's repeats and kills repeatable.")] = 7,
    path: Annotated[Path | None, typer.Option(help="Keep the SQLite file here; by default it is thrown away.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live display.")] = False,
) -> None:
    """Watch real changes go through a merge pipeline while workers are killed and messages come twice.

    Example: batchstate demo --kills 50
    """
    raise typer.Exit(run_demo(workers=workers, kills=kills, changes=changes, seed=seed, path=path, plain=plain))
