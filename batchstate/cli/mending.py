"""Commands that mend batches: each says what it would do, asks before it changes more than one thing, reports."""

from __future__ import annotations

from typing import Annotated

import typer

from batchstate import BatchQueue, BatchStateError, Lifecycle
from batchstate import purge as purge_batches
from batchstate import reconcile as reconcile_records
from batchstate.checking import check_batches
from batchstate.claims.context import has_jobs
from batchstate.claims.upkeep import tidy as tidy_jobs
from batchstate.cli.changing import By, DryRun, Ids, Why, Yes, ask, fail_for, tell
from batchstate.cli.output import when
from batchstate.cli.safe import many
from batchstate.cli.settings import JsonOption, LifecycleOption, QueueOption, UrlOption, states_seen, target
from batchstate.creation import associations_of
from batchstate.tidying import RETENTION, check_ended
from batchstate.times import milliseconds, wall_clock

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (advance, ensure, reconcile, tidy, retire, purge):
        app.command(command.__name__, rich_help_panel="Mending batches")(command)


def advance(
    batch_id: Annotated[str, typer.Argument(metavar="ID", help="The batch.")],
    to: Annotated[str, typer.Argument(metavar="STATE", help="The state to move it into.")],
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    why: Why = "",
    by: By = None,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Move a batch on from the state it is in now, if the lifecycle allows it.

    Example: batchstate advance batch-17 failed --why "the tests hang"
    """
    with target(url, queue, lifecycle).moving(by) as opened:
        batch = opened.get(batch_id)
        opened.lifecycle.check_move(batch.state, to)
        if dry_run:
            tell(
                f"would move {batch_id} from {batch.state} to {to}",
                {"batch": batch_id, "from": batch.state, "to": to},
                json=json,
            )
            return
        step = opened.advance(batch_id, to, entered=batch.entered, why=why)
        tell(
            f"{batch_id}: {step.outcome}, now in {step.batch.state} at version {step.batch.version}",
            {"batch": batch_id, "outcome": step.outcome, "state": step.batch.state, "version": step.batch.version},
            json=json,
        )


def ensure(
    ids: Ids,
    url: UrlOption = None,
    queue: QueueOption = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Put the record and the associations of batches where their rows say they belong. Always safe.

    Example: batchstate ensure batch-17
    """
    with target(url, queue).queue() as opened:
        found = [opened.get(batch_id) for batch_id in ids]
        batches = [batch for batch in found if batch.retired_at is None]
        if len(batches) > 1 and not dry_run:
            ask(f"file {len(batches):,} batches", yes=yes)
        for batch in batches:
            if not dry_run:
                opened.store.put_associations(associations_of(batch))
                opened.ensure_record(batch)
    left = [batch.id for batch in found if batch.retired_at is not None]
    lines = [f"{'would file' if dry_run else 'filed'} {batch.id} under {batch.state}" for batch in batches]
    lines += [f"left {batch_id} alone: it is retired" for batch_id in left]
    done = [batch.id for batch in batches]
    tell("\n".join(lines), {"would_ensure" if dry_run else "ensured": done, "retired": left}, json=json)


def reconcile(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Make all records agree with their rows. Safe beside working pipelines.

    Example: batchstate reconcile --yes
    """
    problems: list[BatchStateError] = []
    chosen = target(url, queue, lifecycle)
    with chosen.queue() as opened:
        if dry_run:
            wrong = _wrong_records(opened, chosen.lifecycle)
            tell(f"would mend {many(wrong, 'record')}", {"would_mend": wrong}, json=json)
            return
        ask(f"mend the records of queue {opened.name}", yes=yes)
        done = reconcile_records(opened.store, states_seen(opened.store, chosen.lifecycle), on_problem=problems.append)
    tell(
        f"looked at {many(done.looked, 'record')}, put {done.put:,}, removed {done.removed:,}",
        {"looked": done.looked, "put": done.put, "removed": done.removed, "problems": [str(p) for p in problems]},
        json=json,
    )
    fail_for(problems)


def tidy(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Sweep, reconcile and purge, once each.

    Example: batchstate tidy --yes
    """
    chosen = target(url, queue, lifecycle)
    with chosen.queue() as opened:
        store = opened.store
        if dry_run:
            lapsed = opened.counts().lapsed if has_jobs(store) else 0
            wrong = _wrong_records(opened, chosen.lifecycle)
            old = _retired_until(opened, wall_clock() - milliseconds(RETENTION, "retention"))
            tell(
                f"would take back the jobs of {many(lapsed, 'lapsed claim')}, mend {many(wrong, 'record')} and delete "
                f"{many(old, 'batch', 'batches')}",
                {"lapsed": lapsed, "would_mend": wrong, "would_delete": old},
                json=json,
            )
            return
        ask(f"sweep, reconcile and purge queue {opened.name}", yes=yes)
        states = states_seen(store, chosen.lifecycle)
        if has_jobs(store):
            done = tidy_jobs(opened.jobs_context, states)
            returned, reconciled, purged, forgotten = done.swept.returned, done.reconciled, done.purged, done.forgotten
        else:
            returned, reconciled = (), reconcile_records(store, states)
            purged, forgotten = purge_batches(store, states), 0
    tell(
        f"put {many(len(returned), 'job')} back, removed {many(reconciled.removed, 'record')}, "
        f"deleted {many(purged.batches, 'batch', 'batches')} and {many(forgotten, 'other row')}",
        {
            "returned": len(returned),
            "records_removed": reconciled.removed,
            "batches_deleted": purged.batches,
            "forgotten": forgotten,
        },
        json=json,
    )


def retire(
    ids: Ids,
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    why: Why = "retired",
    by: By = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Take ended batches out of the queue: listings no longer show them, `purge` deletes them one day.

    Example: batchstate retire batch-17 batch-18
    """
    with target(url, queue, lifecycle).moving(by) as opened:
        batches = [opened.get(batch_id) for batch_id in ids]
        for batch in batches:
            check_ended(batch, opened.lifecycle)
        if dry_run:
            tell(
                "\n".join(f"would retire {b.id}, in {b.state}" for b in batches), {"would_retire": list(ids)}, json=json
            )
            return
        if len(ids) > 1:
            ask(f"retire {len(ids)} batches", yes=yes)
        for batch_id in ids:
            opened.retire(batch_id, why=why)
    tell(f"retired {', '.join(ids)}", {"retired": list(ids)}, json=json)


def purge(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    older_than: Annotated[str, typer.Option(help="How long ago they must have been retired.")] = RETENTION,
    limit: Annotated[int | None, typer.Option(min=1, help="How many batches at most.")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Delete the batches that were retired long enough ago. A message redelivered later would create them anew.

    Example: batchstate purge --older-than 30d --yes
    """
    chosen = target(url, queue, lifecycle)
    with chosen.queue() as opened:
        if dry_run:
            due = wall_clock() - milliseconds(older_than, "--older-than", zero=True)
            count = _retired_until(opened, due)
            tell(
                f"would delete {many(count, 'batch', 'batches')}, retired until {when(due)}",
                {"would_delete": count},
                json=json,
            )
            return
        ask(f"delete the batches of queue {opened.name} that were retired more than {older_than} ago", yes=yes)
        states = states_seen(opened.store, chosen.lifecycle)
        done = purge_batches(opened.store, states, older_than=older_than, limit=limit)
    tell(
        f"deleted {many(done.batches, 'batch', 'batches')}" + ("; there are more" if done.more else ""),
        {"deleted": done.batches, "more": done.more},
        json=json,
    )


def _wrong_records(queue: BatchQueue, lifecycle: Lifecycle | None) -> int:
    return sum(fault.record is not None for fault in check_batches(queue.store, lifecycle))


def _retired_until(queue: BatchQueue, due: int) -> int:
    count, page = 0, queue.store.list_retired()
    while True:
        for row in page.items:
            if isinstance(row, BatchStateError):
                continue
            if row.retired_at is not None and row.retired_at > due:
                return count
            count += 1
        if page.cursor is None:
            return count
        page = queue.store.list_retired(page.cursor)
