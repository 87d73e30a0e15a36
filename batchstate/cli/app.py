"""The command and its subcommands."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from batchstate.cli import checks, looking, mending, serving, storing, watching, working

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False)
for part in (looking, watching, checks, mending, serving, working, storing):
    part.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"batchstate {metadata.version('batchstate')}")
        except metadata.PackageNotFoundError:
            typer.echo("batchstate, from its sources")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """See and mend what batchstate keeps, and work it off.

    The store, the queue and its lifecycle come from --url, --queue and --lifecycle, else from BATCHSTATE_URL,
    BATCHSTATE_QUEUE and BATCHSTATE_LIFECYCLE, else from `batchstate.toml` in the current folder.

    Begin with `batchstate status`, go on with `batchstate check`, which finds what is wrong and says what mends it, and
    `batchstate show ID`. Dead jobs are told by `batchstate dead`, with why they died, and taken back by
    `batchstate revive`. A name that begins with `-` goes behind a `--`: `batchstate show -- -odd-name`.

    Exit codes: 0 done; 1 something was found or refused; 2 the command was not understood; 3 the store cannot be
    reached, try again; 4 the grace of `work` ran out; 5 its workers crashed again and again.
    """
    del version
    context.obj = {"debug": debug}


@app.command(rich_help_panel="Trying")
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
    from batchstate.cli.demo import run_demo  # noqa: PLC0415 - no other command needs it

    raise typer.Exit(run_demo(workers=workers, kills=kills, changes=changes, seed=seed, path=path, plain=plain))
