"""`check`: reads a store and says where it breaks a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from batchstate import BatchStateError, ensure_record
from batchstate.checking import Fault, check_batches
from batchstate.claims.context import has_jobs
from batchstate.cli.output import errors, print_json, say, table
from batchstate.cli.safe import many
from batchstate.cli.settings import JsonOption, LifecycleOption, QueueOption, UrlOption, target
from batchstate.creation import associations_of
from batchstate.job_checking import check_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batchstate.cli.settings import Target

__all__ = ["register"]

SHOWN = 200


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", rich_help_panel="Looking")(check)


def check(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    fix: Annotated[bool, typer.Option(help="Mend what can be mended without losing anything.")] = False,
    json: JsonOption = False,
) -> None:
    """Check every promise: records against rows, requests against batches, jobs against claims and groups.

    Works on a live store: what was written within the last minute may be on its way, and is not judged. Without a
    lifecycle, any state will do. Exit code 0 where all is well, 1 where something is wrong and was not mended.

    Example: batchstate check --fix
    """
    chosen = target(url, queue, lifecycle)
    found: list[tuple[str, Fault]] = []
    mended = 0
    chosen.doubt()
    with _progress() as bar:
        for name in chosen.queues():
            for fault in _faults_of(chosen, name, bar):
                if fix and fault.safe and _mend(chosen, name, fault):
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
        more = f", of which {SHOWN} are shown; --json has all" if len(found) > SHOWN else ""
        say(
            many(len(found), "fault") + more + (f", {mended:,} mended" if fix else "")
            if found or mended
            else "All is well."
        )
    raise typer.Exit(1 if found else 0)


def _faults_of(chosen: Target, name: str, bar: Progress) -> Iterator[Fault]:
    task = bar.add_task(f"{name}: looking", total=None)

    def told(what: str, count: int) -> None:
        bar.update(task, description=f"{name}: {count:,} {what}")

    with chosen.store(name) as store:
        yield from check_batches(store, chosen.lifecycle, on_progress=told)
        if has_jobs(store):
            yield from check_jobs(store, on_progress=told)


def _mend(chosen: Target, name: str, fault: Fault) -> bool:
    """Mend what is safe: file the batch where its row says, and only then remove what disagrees with it."""
    with chosen.store(name) as store:
        batch = store.get_batches([fault.key]).get(fault.key)
        if batch is None or isinstance(batch, BatchStateError):
            return False
        if batch.retired_at is None:
            store.put_associations(associations_of(batch))
            ensure_record(store, batch)
        if fault.record is not None and (batch.retired_at is not None or fault.record.state != batch.state):
            store.delete_records([fault.record])
    return True


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )
