"""`check`: reads a store and says where it breaks a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from batchstate import BatchQueue, JobStorage
from batchstate.checking import Fault, check_batches
from batchstate.cli.output import errors, out, print_json, table
from batchstate.cli.settings import JsonOption, LifecycleOption, QueueOption, UrlOption, target
from batchstate.creation import associations_of
from batchstate.job_checking import check_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batchstate import Lifecycle

__all__ = ["register"]

SHOWN = 200


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", rich_help_panel="Mending")(check)


def check(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    fix: Annotated[bool, typer.Option(help="Mend what can be mended without losing anything.")] = False,
    json: JsonOption = False,
) -> None:
    """Check every promise: records against rows, requests against batches, jobs against claims and groups.

    Works on a live store. Exit code 0 where all is well, 1 where something is wrong and was not mended.

    Example: batchstate check --fix
    """
    chosen = target(url, queue, lifecycle)
    found: list[tuple[str, Fault]] = []
    mended = 0
    with _progress() as bar:
        for name in chosen.queues():
            task = bar.add_task(f"{name}: looking", total=None)
            with BatchQueue(chosen.store(name), *([chosen.lifecycle] if chosen.lifecycle else [])) as opened:
                for fault in _faults(
                    opened, chosen.lifecycle, lambda what, n: bar.update(task, description=f"{name}: {n:,} {what}")
                ):
                    if fix and fault.safe and _mend(opened, fault):
                        mended += 1
                    else:
                        found.append((name, fault))
    if json:
        print_json(
            {
                "mended": mended,
                "faults": [
                    {"queue": name, "kind": f.kind, "key": f.key, "says": f.says, "mend": f.mend, "safe": f.safe}
                    for name, f in found
                ],
            }
        )
    else:
        if found:
            rows = [(name, f.kind, f.key, f.says, f.mend) for name, f in found[:SHOWN]]
            table("", ("queue", "fault", "of", "says", "mend it with"), rows)
        out.print(
            f"{len(found):,} faults" + (f", {mended:,} mended" if fix else "") if found or mended else "All is well."
        )
    raise typer.Exit(1 if found else 0)


def _faults(queue: BatchQueue, lifecycle: Lifecycle | None, on_progress: object) -> Iterator[Fault]:
    report = on_progress if callable(on_progress) else (lambda *_: None)
    yield from check_batches(queue.store, lifecycle, on_progress=report)
    if isinstance(queue.store, JobStorage):
        yield from check_jobs(queue.jobs_context.store, on_progress=report)


def _mend(queue: BatchQueue, fault: Fault) -> bool:
    """Mend what is safe: file the batch where its row says, and remove what disagrees with it."""
    batch = queue.store.get_batches([fault.key]).get(fault.key)
    if batch is None or isinstance(batch, Exception):
        return False
    if batch.retired_at is None:
        queue.store.put_associations(associations_of(batch))
        queue.ensure_record(batch)
    if fault.record is not None and (batch.retired_at is not None or fault.record.state != batch.state):
        queue.store.delete_records([fault.record])
    return True


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )
