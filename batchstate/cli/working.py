"""Commands that work: `add` puts jobs in, `work` works them off with a function of yours."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Task as ProgressTask
from rich.text import Text

from batchstate import BatchStateError, InvalidValueError, JobSpec, Shape
from batchstate.cli.crew import Crew
from batchstate.cli.output import complain, errors, print_json, say
from batchstate.cli.safe import many
from batchstate.cli.settings import JsonOption, QueueOption, UrlOption, target
from batchstate.cli.tally import Tally
from batchstate.cli.worker import Task, load_handler
from batchstate.times import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["register"]

AT_ONCE = 500


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (add, work):
        app.command(command.__name__, rich_help_panel="Working")(command)


def add(
    path: Annotated[str, typer.Argument(metavar="FILE", help="One JSON object a line; '-' reads standard input.")],
    url: UrlOption = None,
    queue: QueueOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add jobs from a file. Safe to run again: what is there already is a duplicate.

    A line is an object with an `id`, and if you like `payload`, `group`, `delay` ("30s"), `at` (milliseconds since the
    epoch), `max_attempts` and `again`. Without a `payload` the whole object is the payload.

    Example: batchstate add jobs.jsonl --queue emails
    """
    added: Counter[str] = Counter()
    bad: list[str] = []
    chosen = target(url, queue, creates=True)
    if chosen.name is None:
        raise InvalidValueError("which queue? name it with --queue")
    with ExitStack() as stack:
        opened = stack.enter_context(chosen.queue())
        source = sys.stdin.fileno() if path == "-" else path
        lines = stack.enter_context(open(source, encoding="utf-8", errors="surrogateescape", closefd=path != "-"))
        bar = stack.enter_context(_bar())
        task = bar.add_task("adding", total=None if path == "-" else _count_lines(Path(path)))
        for numbers, specs, refused in _read(lines):
            bad += refused
            for number, answer in zip(numbers, opened.add_many(specs), strict=True):
                if isinstance(answer, BatchStateError):
                    bad.append(f"line {number}: {answer}")
                else:
                    added[answer] += 1
            bar.update(task, completed=added.total() + len(bad))
    if as_json:
        print_json({"added": added["added"], "duplicates": added["duplicate"], "refused": bad})
    else:
        bad_lines = many(len(bad), "line")
        say(f"added {many(added['added'], 'job')}, {added['duplicate']:,} there already, {bad_lines} refused")
        for line in bad[:50]:
            complain(line)
    raise typer.Exit(1 if bad else 0)


def work(
    handler: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="A function of a job, or of several.")],
    url: UrlOption = None,
    queue: QueueOption = None,
    batch: Annotated[bool, typer.Option("--batch", help="Call it with all jobs of a claim instead of each.")] = False,
    bisect: Annotated[bool, typer.Option("--bisect", help="Where it raises, find the culprit by halves.")] = False,
    min_size: Annotated[int, typer.Option(min=1, help="Claim as soon as so many wait.")] = 1,
    max_size: Annotated[int, typer.Option(min=1, help="Claim no more than these.")] = 50,
    timeout: Annotated[str, typer.Option(help="Claim what is there after so long.")] = "1s",
    lease: Annotated[str, typer.Option(help="How long jobs are held at a time.")] = "30s",
    processes: Annotated[int, typer.Option(min=1, help="How many worker processes.")] = 1,
    burst: Annotated[bool, typer.Option("--burst", help="End when nothing is left to do.")] = False,
    grace: Annotated[str, typer.Option(help="How long SIGTERM lets the jobs in hand take.")] = "30s",
    restarts: Annotated[int, typer.Option(min=0, help="How many workers in a row may crash before any settled.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Work a queue's jobs off with a function of yours, until SIGTERM or Ctrl-C.

    A worker that crashes is replaced: at once, and after longer and longer waits where one after the other crashes
    before it has settled anything.

    Exit codes: 0 drained; 1 the handler broke its contract; 3 the store cannot be reached; 4 the grace ran out, or
    Ctrl-C came twice, and jobs were left to their leases; 5 workers crashed more often in a row than --restarts allows.

    Example: batchstate work app:send_email --queue emails --processes 4
    """
    load_handler(handler)  # so that a name that leads nowhere is told before anything starts
    Shape(min_size, max_size, timeout)
    task = Task(
        target(url, queue, creates=True),
        handler,
        batch or bisect,
        {"min_size": min_size, "max_size": max_size, "timeout": timeout, "lease": lease, "bisect": bisect},
        burst,
    )
    crew = Crew(task, processes, milliseconds(grace, "--grace") / 1000, restarts, Tally(json=as_json))
    raise typer.Exit(crew.run())


class RateColumn(ProgressColumn):
    """How many a second."""

    def render(self, task: ProgressTask) -> Text:
        """Answer the rate of a task, drawn."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "")


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )


def _count_lines(path: Path) -> int:
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def _read(lines: TextIO) -> Iterator[tuple[list[int], list[JobSpec], list[str]]]:
    """Answer the jobs of a file, some at a time: their line numbers, the jobs, and the lines that are none."""
    numbers: list[int] = []
    specs: list[JobSpec] = []
    refused: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                specs.append(_spec(line))
                numbers.append(number)
            except UnicodeEncodeError:
                refused.append(f"line {number}: it is no UTF-8")
            except ValueError as error:
                refused.append(f"line {number}: {error}")
        if len(specs) + len(refused) >= AT_ONCE:
            yield numbers, specs, refused
            numbers, specs, refused = [], [], []
    yield numbers, specs, refused


def _spec(line: str) -> JobSpec:
    """Read a line as a job; raises `ValueError` where it is none."""
    line.encode()  # bytes that are no UTF-8 were kept, to be refused here and in no other line
    row = json.loads(line)
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        msg = "a line must be a JSON object with an id, a text"
        raise ValueError(msg)  # noqa: TRY004 - it is the line that is wrong, not the program
    payload = row["payload"] if "payload" in row else {key: value for key, value in row.items() if key != "id"}
    known = {name: row[name] for name in ("group", "delay", "at", "max_attempts", "again") if name in row}
    return JobSpec(row["id"], payload, **known)
