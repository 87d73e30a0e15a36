"""What the demo shows: a live display on a terminal, plain lines elsewhere, and the report at the end."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from batchstate.cli.demo.worker import FLOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from batchstate.cli.demo.jobs import Worked
    from batchstate.cli.demo.proof import Proof, Wounds
    from batchstate.cli.demo.stage import Stage

__all__ = ["jobs_progress", "jobs_report", "progress", "report"]


@contextmanager
def progress(console: Console, stage: Stage, batches: int, *, live: bool) -> Iterator[Callable[[], None]]:
    """Show how far the pipeline is; what is yielded is called whenever something happened."""
    if live:
        with _live(console, stage, batches) as tick:
            yield tick
    else:
        yield _plain(console, stage, batches)


@contextmanager
def _live(console: Console, stage: Stage, batches: int) -> Iterator[Callable[[], None]]:
    bars = _bars(console)
    tasks = {state: bars.add_task(state, total=batches, note="") for state in FLOW.states}
    with bars:

        def tick() -> None:
            for state, task in tasks.items():
                done = batches if state == FLOW.initial else stage.moves[state]
                bars.update(task, completed=done)
            bars.update(tasks[FLOW.initial], note=_summary(stage))

        yield tick


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:>9}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        expand=True,
        transient=True,
    )


def _plain(console: Console, stage: Stage, batches: int) -> Callable[[], None]:
    last = time.monotonic()

    def tick() -> None:
        nonlocal last
        if time.monotonic() - last >= 1:
            last = time.monotonic()
            ended = stage.moves["merged"] + stage.moves["failed"]
            console.print(f"{ended}/{batches} batches ended · {_summary(stage)}")

    return tick


@contextmanager
def jobs_progress(console: Console, jobs: int, *, live: bool) -> Iterator[Callable[[int, int], None]]:
    """Show how many jobs are left; what is yielded is called with that and with how many workers were killed."""
    if not live:
        yield lambda _left, _killed: None
        return
    bars = _bars(console)
    task = bars.add_task("published", total=jobs, note="")
    with bars:
        yield lambda left, killed: bars.update(task, completed=jobs - left, note=f"{killed} workers killed")


def _summary(stage: Stage) -> str:
    return f"{stage.counts['deliveries']} deliveries · {stage.counts['killed']} workers killed"


def jobs_report(console: Console, worked: Worked) -> None:
    """Print what became of the jobs."""
    table = Table(
        title="The same changes as jobs, 50 to a claim, each settled on its own",
        show_header=False,
        title_justify="left",
    )
    table.add_column(justify="right")
    table.add_column()
    for number, text in (
        (worked.claims, f"claims in {worked.seconds:.1f} s, from {worked.groups} groups in turn"),
        (worked.killed, "workers killed with SIGKILL while jobs were held"),
        (worked.stalled, "jobs of dead workers came back by themselves when their lease had lapsed"),
        (worked.done, f"of {worked.jobs:,} changes were completed by exactly one claim"),
        (
            len(worked.dead),
            "change makes its handler raise: dead after its third attempt, and none of its neighbours is",
        ),
    ):
        table.add_row(f"{number:,}", text)
    console.print(table)


def report(console: Console, stage: Stage, wounds: Wounds, proof: Proof, seconds: float) -> None:
    """Print what happened, and what the store says."""
    counts, feed = stage.counts, stage.feed
    table = Table(title="What happened", show_header=False, title_justify="left")
    table.add_column(justify="right")
    table.add_column()
    for number, text in (
        (counts["deliveries"], f"deliveries in {seconds:.1f} s"),
        (feed.repeated, "messages delivered twice on purpose, out of order"),
        (counts["killed"], "workers killed with SIGKILL, in the middle of a move or before they acknowledged it"),
        (feed.sent_again, "messages delivered again, because nobody acknowledged them"),
        (counts["already"], "deliveries found their move done already, and saw to its record"),
        (counts["stale"], "deliveries were stale: the batch had gone on"),
        (len(wounds.without_record), "batches a kill had left without a record of their state: repaired by redelivery"),
        (proof.leftovers, "records a kill had left under a state that was over: removed by reconcile"),
    ):
        table.add_row(f"{number:,}", text)
    console.print(table)
    states = ", ".join(f"{count} {state}" for state, count in proof.by_state.items() if count)
    table = Table(title="What the store says", show_header=False, title_justify="left")
    table.add_column()
    table.add_column()
    for holds, text in (
        (
            proof.found == proof.changes,
            f"{proof.found:,} of {proof.changes:,} changes are found by their ID, in one batch each",
        ),
        (
            sum(proof.by_state.values()) == proof.batches,
            f"{proof.batches:,} batches are listed by their state: {states}",
        ),
        (proof.unfiled == 0, "each is filed under the state it is in"),
        (proof.wrong_histories == 0, "no move was applied twice, and none is missing, by the histories"),
    ):
        table.add_row("[green]yes[/green]" if holds else "[red]NO[/red]", text)
    console.print(table)
