"""The demo from beginning to end."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from random import Random

from rich.console import Console

from batchstate import BatchQueue, open_queue
from batchstate.cli.demo.changes import gather, read_changes
from batchstate.cli.demo.feed import Feed
from batchstate.cli.demo.jobs import work_off
from batchstate.cli.demo.messages import Create
from batchstate.cli.demo.proof import Wounds, prove
from batchstate.cli.demo.screen import jobs_progress, jobs_report, progress, report
from batchstate.cli.demo.stage import Stage
from batchstate.cli.demo.worker import FLOW, QUEUE

__all__ = ["run_demo"]

BATCH_SIZE = 12


def run_demo(
    *,
    workers: int = 4,
    kills: int = 24,
    changes: int = 3000,
    seed: int = 7,
    path: Path | None = None,
    plain: bool = False,
    console: Console | None = None,
) -> int:
    """Run the demo and answer its exit code: 0 where the store proves that nothing was lost, else 1.

    Args:
        workers: how many worker processes.
        kills: how many of them are killed on the way.
        changes: how many of the 3,000 changes to merge.
        seed: of what the feed repeats and who is killed.
        path: the SQLite file; by default one that is thrown away.
        plain: print lines instead of a live display.
        console: where to print.
    """
    console = console or Console()
    if path is not None and path.exists():
        console.print(f"{path} exists; name a file that does not, so that nothing of yours is touched")
        return 2
    with tempfile.TemporaryDirectory(prefix="batchstate-demo-") as folder:
        url = f"sqlite:///{path.resolve() if path is not None else Path(folder) / 'merges.db'}"
        with open_queue(QUEUE, url, lifecycle=FLOW, by="demo") as queue:
            return _run(queue, url, console, workers, kills, changes, seed, live=console.is_terminal and not plain)


def _run(
    queue: BatchQueue, url: str, console: Console, workers: int, kills: int, changes: int, seed: int, *, live: bool
) -> int:
    random = Random(seed)  # noqa: S311 - a demo that can be repeated
    made = gather(read_changes(changes), BATCH_SIZE)
    console.print(
        f"{changes:,} real changes in {len(made)} batches go through {FLOW} on SQLite, worked by {workers} processes. "
        f"The feed repeats and reorders messages, and {kills} workers are killed."
    )
    wounds = Wounds(queue)
    feed = Feed((Create(gathered.id, gathered.group, gathered.requests) for gathered in made), random)
    stage = Stage(url, feed, random, workers, kills, wounds.look)
    began = time.monotonic()
    with progress(console, stage, len(made), live=live) as tick:
        stage.run(tick, expected=len(made) * 4)
    seconds = time.monotonic() - began
    proof = prove(queue, made)
    report(console, stage, wounds, proof, seconds)
    with jobs_progress(console, changes, live=live) as left:
        worked = work_off(
            url, read_changes(changes), workers=workers, kills=min(kills, workers + 2), random=random, on_tick=left
        )
    jobs_report(console, worked)
    holds = proof.holds and worked.holds
    console.print("[bold green]Nothing was lost.[/]" if holds else "[bold red]Something was lost.[/]")
    return 0 if holds else 1
