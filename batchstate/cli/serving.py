"""Commands that mend jobs, and that say which jobs are served."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from batchstate import BatchQueue
from batchstate.cli.changing import NAMED, By, DryRun, Ids, Why, Yes, ask, fail_for, read_answer, tell
from batchstate.cli.looking import GroupOption
from batchstate.cli.safe import many
from batchstate.cli.settings import JsonOption, QueueOption, UrlOption, target
from batchstate.jobs import UNGROUPED, Group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.storage import Outcome

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (sweep, revive, remove, release, pause, resume, ceiling):
        app.command(command.__name__, rich_help_panel="Mending jobs")(command)


def sweep(
    url: UrlOption = None,
    queue: QueueOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="How many jobs at most.")] = None,
    by: By = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Take back the jobs of dead workers, whose lease has lapsed. What a consumer does all the time.

    Example: batchstate sweep
    """
    with target(url, queue).queue(by) as opened:
        lapsed = many((count := opened.counts().lapsed), "lapsed claim")
        if dry_run:
            tell(f"would take back the jobs of {lapsed}", {"lapsed": count}, json=json)
            return
        if count > 1:
            ask(f"take back the jobs of {lapsed}", yes=yes)
        swept = opened.sweep(limit=limit)
    tell(
        f"put {many(len(swept.returned), 'job')} back, {len(swept.dead):,} stalled once too often and are dead"
        + ("; more have lapsed, sweep again" if swept.more else ""),
        {"returned": list(swept.returned), "dead": list(swept.dead), "ended": list(swept.ended), "more": swept.more},
        json=json,
    )


def revive(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Which jobs.")] = None,
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
        if chosen and (error is not None or group is not None or everything):
            raise typer.BadParameter("name jobs, or choose them with --error, --group or --all; not both")
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
    by: By = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Remove jobs for good, from whatever place they are in.

    Example: batchstate remove order-17
    """
    with target(url, queue).queue(by) as opened:
        _change_jobs("remove", ids, lambda some: opened.remove(some, force=force), yes=yes, dry_run=dry_run, json=json)


def release(
    claim_id: Annotated[str, typer.Argument(metavar="CLAIM", help="The claim.")],
    url: UrlOption = None,
    queue: QueueOption = None,
    why: Why = "released",
    by: By = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Give all jobs of a claim back to their places, uncharged. Its worker, if it lives, finds them lost.

    Example: batchstate release 0192f0c1-7a63-7c1e-9d0a-3f1f5d1b2c3d --why "its worker hangs"
    """
    with target(url, queue).queue(by) as opened:
        claim = opened.claim_of(claim_id)
        if dry_run:
            tell(f"would release {many(len(claim), 'job')}", {"would_release": [job.id for job in claim]}, json=json)
            return
        if len(claim) > 1:
            ask(f"release {len(claim):,} jobs that a worker holds", yes=yes)
        settlement = claim.release(why=why)
    for error in settlement.errors.values():
        raise error
    tell(f"released {many(len(settlement.released), 'job')}", {"released": list(settlement.released)}, json=json)


def pause(
    why: Annotated[str | None, typer.Option(help="The reason, which status shows; asked for on a terminal.")] = None,
    url: UrlOption = None,
    queue: QueueOption = None,
    group: GroupOption = None,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Serve nothing of a queue, or of one of its groups, until it is resumed. What is held goes on.

    Example: batchstate pause --group emails --why "the mail server is down"
    """
    with target(url, queue).queue() as opened:
        if why is None:
            why = read_answer("Why?") if sys.stdin.isatty() else ""
        if not why:
            raise typer.BadParameter("say why: --why 'the mail server is down'")
        _set_pause(opened, group, why, dry_run=dry_run, json=json)


def resume(
    url: UrlOption = None,
    queue: QueueOption = None,
    group: GroupOption = None,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Serve a queue, or one of its groups, again.

    Example: batchstate resume --group emails
    """
    with target(url, queue).queue() as opened:
        _set_pause(opened, group, None, dry_run=dry_run, json=json)


def ceiling(
    most: Annotated[str, typer.Argument(metavar="N|none", help="How many jobs of a group may be held at once.")],
    url: UrlOption = None,
    queue: QueueOption = None,
    group: GroupOption = None,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Limit how many jobs of a group may be held at once; without --group, of each group without a limit of its own.

    Example: batchstate ceiling 4 --group emails
    """
    if most != "none" and (not most.isdecimal() or int(most) == 0):
        raise typer.BadParameter("give a number of 1 or more, or none")
    with target(url, queue).queue() as opened:
        number = None if most == "none" else int(most)
        limit = "no ceiling of its own" if number is None else f"a ceiling of {many(number, 'job')} in flight"
        of = _whole(opened, group)
        if dry_run:
            tell(f"{_named(opened, group)} would have {limit}", {**of, "would_be_ceiling": number}, json=json)
            return
        opened.set_ceiling(number, group=UNGROUPED if group == "-" else group)
        tell(f"{_named(opened, group)} has {limit}", {**of, "ceiling": number}, json=json)


def _set_pause(queue: BatchQueue, group: str | None, why: str | None, *, dry_run: bool, json: bool) -> None:
    named: Group | None = UNGROUPED if group == "-" else group
    verb = "resume" if why is None else "pause"
    if dry_run:
        tell(f"would {verb} {_named(queue, group)}", {**_whole(queue, group), "would_be_paused": why}, json=json)
        return
    if why is None:
        queue.resume(named)
    else:
        queue.pause(named, reason=why)
    tell(f"{verb}d {_named(queue, group)}", {**_whole(queue, group), "paused": why}, json=json)


def _change_jobs(verb: str, ids: Sequence[str], change: object, *, yes: bool, dry_run: bool, json: bool) -> None:
    """Do something to jobs, with one line about each that was refused."""
    if dry_run:
        says = f"would {verb} {many(len(ids), 'job')}" + (f": {', '.join(ids[:NAMED])}" if ids else "")
        tell(says + (" …" if len(ids) > NAMED else ""), {f"would_{verb}": list(ids)}, json=json)
        return
    if len(ids) > 1:
        ask(f"{verb} {len(ids):,} jobs", yes=yes)
    outcomes: list[Outcome] = change(ids) if callable(change) and ids else []
    refused = {job_id: outcome for job_id, outcome in zip(ids, outcomes, strict=True) if outcome is not None}
    done = [job_id for job_id in ids if job_id not in refused]
    tell(
        f"{verb}d {many(len(done), 'job')}",
        {f"{verb}d": done, "refused": {k: str(v) for k, v in refused.items()}},
        json=json,
    )
    fail_for(list(refused.values()))


def _named(queue: BatchQueue, group: str | None) -> str:
    if group is None:
        return f"queue {queue.name}"
    return f"{'the jobs without a group' if group == '-' else f'group {group}'} of queue {queue.name}"


def _whole(queue: BatchQueue, group: str | None) -> dict[str, object]:
    """Answer what a pause or a ceiling is of, as `--json` prints it."""
    return {"queue": queue.name, "of": "queue" if group is None else "group", "group": None if group == "-" else group}
