"""`storage copy`: a queue, or all of a store's, to another backend."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from batchstate import InvalidValueError, open_storage
from batchstate.cli.output import complain, errors, print_json, say, table
from batchstate.cli.settings import JsonOption, QueueOption, Target
from batchstate.cli.stores import open_or_imagine
from batchstate.copying import Copied, Survey, copy_queue, survey
from batchstate.urls import StorageURL

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate import Storage

__all__ = ["copy"]


def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The store to copy from.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The store to copy to.")],
    queue: QueueOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Look whether it can be copied; write nothing.")] = (
        False
    ),
    json: JsonOption = False,
) -> None:
    """Copy queues to another store: batches, histories, outcomes, jobs, pauses and ceilings, as they are.

    The source must be paused, and none of its claims in flight. Again, it completes what was broken off. The copy is
    compared and checked, and stays paused until you resume it. Exit code 1 where something is not as it should be.

    Example: batchstate storage copy sqlite:///batches.db redis://localhost:6379/0 --queue merges --dry-run
    """
    theirs, ours = StorageURL.parse(target), StorageURL.parse(source)
    if theirs == ours:
        msg = f"{ours} cannot be copied to itself"
        raise InvalidValueError(msg)
    at = Target(source, queue, None)
    at.doubt()
    names = at.queues()
    opening = open_or_imagine if dry_run else open_storage
    with ExitStack() as opened, _progress() as bar:
        pairs = [
            (
                opened.enter_context(at.store(name)),
                opened.enter_context(opening(target, queue=name)),
            )
            for name in names
        ]
        found = [survey(*pair, on_progress=_told(bar, pair[0])) for pair in pairs]
        copied = [] if dry_run else [copy_queue(*pair, on_progress=_told(bar, pair[0])) for pair in pairs]
    if json:
        print_json({"dry_run": dry_run, "queues": [_json(one) for one in copied or found]})
    elif dry_run:
        rows = [(one.queue, one.batches, one.present, one.jobs, one.jobs_present) for one in found]
        columns = ("queue", "batches", "there already", "jobs", "there already")
        table(f"Would be copied to {theirs}", columns, rows, right=columns[1:])
    else:
        _report(copied, str(theirs))
    raise typer.Exit(0 if all(one.ok for one in copied) else 1)


def _report(copied: list[Copied], where: str) -> None:
    columns = ("queue", "batches", "associations", "jobs")
    rows = [(one.queue, one.batches, one.associations, one.jobs) for one in copied]
    table(f"Copied to {where}", columns, rows, right=columns[1:])
    for one in copied:
        for said in (*one.differing, *(f"{fault.kind} {fault.key!r}: {fault.says}" for fault in one.faults)):
            complain(f"{one.queue}: {said}")
    if all(one.ok for one in copied):
        say("All is as it was. It is paused, as the source is: batchstate resume, when workers use the new store.")


def _json(one: Copied | Survey) -> dict[str, object]:
    if isinstance(one, Survey):
        return {
            "queue": one.queue,
            "batches": one.batches,
            "batches_present": one.present,
            "jobs": one.jobs,
            "jobs_present": one.jobs_present,
        }
    return {
        "queue": one.queue,
        "batches": one.batches,
        "associations": one.associations,
        "jobs": one.jobs,
        "differing": list(one.differing),
        "faults": [{"kind": f.kind, "key": f.key, "says": f.says, "mend": f.mend} for f in one.faults],
    }


def _told(bar: Progress, store: Storage) -> Callable[[str, int], None]:
    task = bar.add_task(f"{store.queue}: looking", total=None)

    def told(what: str, count: int) -> None:
        bar.update(task, description=f"{store.queue}: {count:,} {what}")

    return told


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )
