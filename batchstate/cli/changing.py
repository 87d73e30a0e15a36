"""What the commands that change something have in common: their options, the question, the report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from batchstate.cli.output import complain, print_json, say
from batchstate.cli.safe import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate import BatchStateError

__all__ = ["NAMED", "By", "DryRun", "Ids", "Why", "Yes", "ask", "fail_for", "read_answer", "tell"]

NAMED = 20
"""How many of many are named in a line for people."""

DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Why = Annotated[str, typer.Option(help="The reason, for the history.")]
By = Annotated[str | None, typer.Option(help="Who does it, for the history; by default you.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID", help="Which; one that begins with - goes behind --.")]


def ask(what: str, *, yes: bool) -> None:
    """Ask before more than one thing is changed; end the command where the answer is no, or there is none."""
    if not yes and read_answer(f"{what[0].upper()}{what[1:]}? [y/N]").lower() not in ("y", "yes"):
        complain("nothing was done; --yes answers for a script, --dry-run only looks")
        raise typer.Exit(1)


def read_answer(question: str) -> str:
    """Ask where errors go, since what is printed may be JSON, and answer what was typed; `""` where nobody answers."""
    typer.echo(clean(question), nl=False, err=True)
    typer.echo(" ", nl=False, err=True)
    line = sys.stdin.readline()
    if not line:
        typer.echo(err=True)  # the question has no answer, and its line no end
    return line.strip()


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
