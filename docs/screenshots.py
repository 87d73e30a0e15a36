"""Makes the pictures of the command that the README shows.

`python docs/screenshots.py` writes `docs/*.svg`; a folder that is named behind it takes them instead.

The store that is shown is made here, in a folder that is thrown away: a merge queue with a batch that a dead worker
left half moved, and a mail queue with dead jobs. What is drawn is what the command draws, by the same functions.
"""

from __future__ import annotations

import sys
from io import StringIO
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from batchstate import Dead, Lifecycle, Retry, open_queue
from batchstate.cli import looking, output, shown, summary, watching
from batchstate.cli.safe import SafeConsole
from batchstate.cli.settings import target
from batchstate.testing import Crash, FaultStore, crash_after
from batchstate.times import wall_clock

FLOW = "queued > testing > merging > merged; testing | merging > failed"
WIDTH = 88


def fill(url: str) -> None:
    """Make a store as one finds it at three in the morning."""
    began = wall_clock() - 40 * 60_000
    ticks = count(began, 23_000)
    with open_queue(
        "merges", url, lifecycle=Lifecycle.parse(FLOW), atomic=False, by="ci-3", clock=lambda: next(ticks)
    ) as queue:
        for number in range(11, 20):
            queue.create(f"batch-{number}", requests=[f"pr-{2 * number}", f"pr-{2 * number + 1}"], why="asked for")
        for number in (11, 12, 17, 18):
            queue.advance(f"batch-{number}", "testing", source="queued")
        queue.advance("batch-11", "merging", source="testing", why="all green")
        queue.advance("batch-11", "merged", source="merging")
        queue.advance("batch-12", "failed", source="testing", why="test_login timed out")
        whole = queue.store
        queue.store = FaultStore(whole, crash_after(1))
        try:
            queue.advance("batch-17", "merging", source="testing", why="all green")
        except Crash:
            queue.store = whole
    with open_queue("emails", url, by="worker-2", clock=lambda: began) as queue:
        for number in range(60):
            queue.add(f"email-{number}", {"to": number}, group=("news", "orders", None)[number % 3], max_attempts=1)
        for reason in (Dead("connection refused"), Dead("no such user"), Retry("greylisted")):
            claim = queue.claim(6)
            if claim is not None:
                claim.settle({job.id: reason for job in claim})
        queue.claim(8, lease="1h", group="orders")
        queue.set_ceiling(8, group="orders")
        queue.pause("news", reason="the newsletter has a broken link, see the incident of tonight")


def main() -> None:
    """Draw each picture."""
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/store.db"
        fill(url)
        for name, typed in (("status", "status"), ("show", "show batch-17"), ("watch", "watch")):
            console = SafeConsole(
                record=True,
                width=WIDTH,
                file=StringIO(),
                force_terminal=True,
                color_system="truecolor",
                highlight=False,
            )
            for module in (output, looking, shown, summary, watching):
                module.out = console  # type: ignore[attr-defined]  # the command's one place to print to
            if name == "status":
                looking.status(url)
            elif name == "show":
                looking.show("batch-17", url, "merges", FLOW)
            else:
                console.print(watching.Look.at_store(target(url)).draw())
            (into / f"{name}.svg").write_text(
                console.export_svg(title=f"batchstate {typed}", unique_id=name), encoding="utf-8"
            )
            sys.stdout.write(f"{into / name}.svg\n")


if __name__ == "__main__":
    main()
