"""What the commands that change something have in common: their options, the question, the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from batchstate.cli.output import complain, print_json, say
from batchstate.cli.safe import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate import BatchStateError

__all__ = ["NAMED", "By", "DryRun", "Ids", "Why", "Yes", "ask", "fail_for", "tell"]

NAMED = 20
"""How many of many are named in a line for people."""

DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Why = Annotated[str, typer.Option(help="The reason, for the history.")]
By = Annotated[str | None, typer.Option(help="Who does it, for the history; by default you.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Which; one that begins with - goes behind --.")]


def ask(what: str, *, yes: bool) -> None:
    """Ask before more than one thing is changed; end the command where the answer is no, or there is none."""
    if yes:
        return
    try:
        agreed = typer.confirm(clean(f"{what[0].upper()}{what[1:]}?"), err=True)
    except typer.Abort:
        agreed = False
        typer.echo(err=True)  # the question has no answer, and its line no end
    if not agreed:
        complain("nothing was done; --yes answers for a script, --dry-run only looks")
        raise typer.Exit(1)


def tell(text: str, value: object, *, json: bool) -> None:
    """Say what was done: a line for people, or the value as JSON."""
    if json:
        print_json(value)
    else:
        say(text)


def fail_for(problems: Sequence[BatchStateError]) -> None:
    """End the command with what went wrong; do nothing where nothing did."""
    for problem in problems[:NAMED]:
        complain(str(problem))
    if problems:
        raise typer.Exit(1)
