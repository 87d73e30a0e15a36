"""Commands that mend: each says what it would do, asks before it changes more than one thing, reports what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from batchstate import BatchQueue, BatchStateError
from batchstate.cli.looking import GroupOption
from batchstate.cli.output import out, print_json, when
from batchstate.cli.settings import JsonOption, LifecycleOption, QueueOption, UrlOption, target
from batchstate.creation import associations_of
from batchstate.jobs import UNGROUPED, Group
from batchstate.times import milliseconds, wall_clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.storage import Outcome

__all__ = ["register"]

DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Why = Annotated[str, typer.Option(help="The reason, for the history.")]
By = Annotated[str | None, typer.Option(help="Who does it, for the history; by default you.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Which.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (
        *(advance, ensure, reconcile, sweep, tidy, retire, purge),
        *(revive, remove, release, pause, resume, ceiling),
    ):
        app.command(command.__name__, rich_help_panel="Mending")(command)


def advance(
    batch_id: Annotated[str, typer.Argument(metavar="ID", help="The batch.")],
    to: Annotated[str, typer.Argument(help="The state to move it into.")],
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
    with target(url, queue, lifecycle).moving() as opened:
        batch = opened.get(batch_id)
        opened.lifecycle.check_move(batch.state, to)
        if dry_run:
            _say(
                f"would move {batch_id} from {batch.state} to {to}",
                {"batch": batch_id, "from": batch.state, "to": to},
                json=json,
            )
            return
        step = opened.advance(batch_id, to, entered=batch.entered, by=by, why=why)
        _say(
            f"{batch_id}: {step.outcome}, now in {step.batch.state} at version {step.batch.version}",
            {"batch": batch_id, "outcome": step.outcome, "state": step.batch.state, "version": step.batch.version},
            json=json,
        )


def ensure(
    ids: Ids, url: UrlOption = None, queue: QueueOption = None, dry_run: DryRun = False, json: JsonOption = False
) -> None:
    """Put the record and the associations of batches where their rows say they belong. Always safe.

    Example: batchstate ensure batch-17
    """
    with target(url, queue).queue() as opened:
        batches = [opened.get(batch_id) for batch_id in ids]
        for batch in batches:
            if not dry_run and batch.retired_at is None:
                opened.store.put_associations(associations_of(batch))
                opened.ensure_record(batch)
    did = "would file" if dry_run else "filed"
    _say("\n".join(f"{did} {batch.id} under {batch.state}" for batch in batches), {"ensured": list(ids)}, json=json)


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
    with target(url, queue, lifecycle).moving() as opened:
        if dry_run:
            from batchstate.checking import check_batches  # noqa: PLC0415 - only here

            faults = [
                fault for fault in check_batches(opened.store, opened.lifecycle) if fault.mend == "batchstate reconcile"
            ]
            _say(f"would mend {len(faults)} records", {"would_mend": len(faults)}, json=json)
            return
        _ask(f"mend the records of queue {opened.name}", yes=yes)
        done = opened.reconcile(on_problem=problems.append)
    _say(
        f"looked at {done.looked:,} records, put {done.put:,}, removed {done.removed:,}",
        {"looked": done.looked, "put": done.put, "removed": done.removed, "problems": [str(p) for p in problems]},
        json=json,
    )
    _fail_for(problems)


def sweep(
    url: UrlOption = None,
    queue: QueueOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many jobs at most.")] = None,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Take back the jobs of dead workers, whose lease has lapsed. What a consumer does all the time.

    Example: batchstate sweep
    """
    with target(url, queue).queue() as opened:
        if dry_run:
            counts = opened.counts()
            _say(f"{counts.lapsed} claims have lapsed", {"lapsed": counts.lapsed}, json=json)
            return
        swept = opened.sweep(limit=limit)
    _say(
        f"{len(swept.returned):,} jobs are back in their places, {len(swept.dead):,} stalled once too often: dead",
        {"returned": list(swept.returned), "dead": list(swept.dead), "ended": list(swept.ended), "more": swept.more},
        json=json,
    )


def tidy(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    yes: Yes = False,
    json: JsonOption = False,
) -> None:
    """Sweep, reconcile and purge, once each.

    Example: batchstate tidy --yes
    """
    with target(url, queue, lifecycle).queue() as opened:
        _ask(f"sweep, reconcile and purge queue {opened.name}", yes=yes)
        done = opened.tidy()
    _say(
        f"{len(done.swept.returned):,} jobs back, {done.reconciled.removed:,} records removed, "
        f"{done.purged.batches:,} batches and {done.forgotten:,} other rows deleted",
        {
            "returned": len(done.swept.returned),
            "records_removed": done.reconciled.removed,
            "batches_deleted": done.purged.batches,
            "forgotten": done.forgotten,
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
    with target(url, queue, lifecycle).moving() as opened:
        batches = [opened.get(batch_id) for batch_id in ids]
        if dry_run:
            _say(
                "\n".join(f"would retire {b.id}, in {b.state}" for b in batches), {"would_retire": list(ids)}, json=json
            )
            return
        if len(ids) > 1:
            _ask(f"retire {len(ids)} batches", yes=yes)
        for batch_id in ids:
            opened.retire(batch_id, by=by, why=why)
    _say(f"retired {', '.join(ids)}", {"retired": list(ids)}, json=json)


def purge(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    older_than: Annotated[str, typer.Option(help="How long ago they must have been retired.")] = "15d",
    limit: Annotated[int | None, typer.Option(min=1, help="How many batches at most.")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Delete the batches that were retired long enough ago. A message redelivered later would create them anew.

    Example: batchstate purge --older-than 30d --yes
    """
    with target(url, queue, lifecycle).queue() as opened:
        if dry_run:
            due = wall_clock() - milliseconds(older_than, "--older-than", zero=True)
            count = _retired_until(opened, due)
            _say(f"would delete {count:,} batches, retired until {when(due)}", {"would_delete": count}, json=json)
            return
        _ask(f"delete the batches of queue {opened.name} that were retired more than {older_than} ago", yes=yes)
        done = opened.purge(older_than=older_than, limit=limit)
    _say(f"deleted {done.batches:,} batches", {"deleted": done.batches, "more": done.more}, json=json)


def revive(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Which jobs.")] = None,
    url: UrlOption = None,
    queue: QueueOption = None,
    group: GroupOption = None,
    error: Annotated[str | None, typer.Option(help="All dead jobs whose error contains this.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead jobs.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Take dead jobs back to their places, with their attempts and stalls cleared.

    Example: batchstate revive --error "connection refused"
    """
    with target(url, queue).queue() as opened:
        chosen = list(ids or ())
        if not chosen and (error is not None or group is not None or everything):
            named: Group | None = UNGROUPED if group == "-" else group
            chosen = [job.id for job in opened.jobs("dead", group=named, error=error)]
        elif not chosen:
            raise typer.BadParameter("name jobs, or choose them with --error, --group or --all")
        _change_jobs("revive", chosen, opened.revive, yes=yes, dry_run=dry_run, json=json)


def remove(
    ids: Ids,
    url: UrlOption = None,
    queue: QueueOption = None,
    force: Annotated[bool, typer.Option(help="Remove a job that a worker holds, too.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Remove jobs for good, from whatever place they are in.

    Example: batchstate remove order-17
    """
    with target(url, queue).queue() as opened:
        _change_jobs("remove", ids, lambda some: opened.remove(some, force=force), yes=yes, dry_run=dry_run, json=json)


def release(
    claim_id: Annotated[str, typer.Argument(metavar="CLAIM", help="The claim.")],
    url: UrlOption = None,
    queue: QueueOption = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Give all jobs of a claim back to their places, uncharged. Its worker, if it lives, finds them lost.

    Example: batchstate release 0192f0c1-...
    """
    with target(url, queue).queue() as opened:
        claim = opened.claim_of(claim_id)
        if dry_run:
            _say(f"would release {len(claim)} jobs", {"would_release": [job.id for job in claim]}, json=json)
            return
        _ask(f"release {len(claim)} jobs that a worker holds", yes=yes)
        settlement = claim.release()
    _say(f"released {len(settlement.released)} jobs", {"released": list(settlement.released)}, json=json)


def pause(
    why: Annotated[str, typer.Option(help="The reason, which status shows.", prompt="Why")],
    url: UrlOption = None,
    queue: QueueOption = None,
    group: GroupOption = None,
) -> None:
    """Serve nothing of a queue, or of one of its groups, until it is resumed. What is held goes on.

    Example: batchstate pause --group emails --why "the mail server is down"
    """
    with target(url, queue).queue() as opened:
        opened.pause(UNGROUPED if group == "-" else group, reason=why)
        _say(f"paused {_named(opened, group)}", {}, json=False)


def resume(url: UrlOption = None, queue: QueueOption = None, group: GroupOption = None) -> None:
    """Serve a queue, or one of its groups, again.

    Example: batchstate resume --group emails
    """
    with target(url, queue).queue() as opened:
        opened.resume(UNGROUPED if group == "-" else group)
        _say(f"resumed {_named(opened, group)}", {}, json=False)


def ceiling(
    most: Annotated[str, typer.Argument(metavar="N|none", help="How many jobs of a group may be held at once.")],
    url: UrlOption = None,
    queue: QueueOption = None,
    group: GroupOption = None,
) -> None:
    """Limit how many jobs of a group may be held at once; without --group, of each group without a limit of its own.

    Example: batchstate ceiling 4 --group emails
    """
    if most != "none" and not most.isdigit():
        raise typer.BadParameter("give a number of 1 or more, or none")
    with target(url, queue).queue() as opened:
        opened.set_ceiling(None if most == "none" else int(most), group=UNGROUPED if group == "-" else group)
        _say(f"the ceiling of {_named(opened, group)} is {most}", {}, json=False)


def _change_jobs(verb: str, ids: Sequence[str], change: object, *, yes: bool, dry_run: bool, json: bool) -> None:
    """Do something to jobs, with one line about each that was refused."""
    if dry_run:
        _say(f"would {verb} {len(ids)} jobs: {', '.join(ids[:20])}", {f"would_{verb}": list(ids)}, json=json)
        return
    if len(ids) > 1:
        _ask(f"{verb} {len(ids):,} jobs", yes=yes)
    outcomes: list[Outcome] = change(ids) if callable(change) and ids else []
    refused = {job_id: outcome for job_id, outcome in zip(ids, outcomes, strict=True) if outcome is not None}
    done = [job_id for job_id in ids if job_id not in refused]
    _say(
        f"{verb}d {len(done):,} jobs", {f"{verb}d": done, "refused": {k: str(v) for k, v in refused.items()}}, json=json
    )
    _fail_for(list(refused.values()))


def _ask(what: str, *, yes: bool) -> None:
    if not yes and not typer.confirm(f"{what[0].upper()}{what[1:]}?", err=True):
        raise typer.Exit(1)


def _say(text: str, value: object, *, json: bool) -> None:
    if json:
        print_json(value)
    else:
        out.print(text, markup=False)


def _fail_for(problems: Sequence[BatchStateError]) -> None:
    for problem in problems[:20]:
        typer.echo(f"batchstate: {problem}", err=True)
    if problems:
        raise typer.Exit(1)


def _named(queue: BatchQueue, group: str | None) -> str:
    return f"queue {queue.name}" if group is None else f"group {group} of queue {queue.name}"


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
