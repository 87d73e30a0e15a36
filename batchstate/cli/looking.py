"""Commands that look: `status`, `queues`, `list`, `show`, `jobs`, `dead`, `lifecycle`. They change nothing."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from batchstate import BatchQueue, BatchStateError, InvalidValueError, Job, Lifecycle, list_by_states
from batchstate.cli.output import ago, batch_json, complain, job_json, out, print_json, say, state_text, table, when
from batchstate.cli.safe import clean, clean_json, many
from batchstate.cli.settings import JsonOption, LifecycleOption, QueueOption, UrlOption, states_seen, target
from batchstate.cli.shown import show_batch, show_request
from batchstate.cli.summary import print_summaries, summarise
from batchstate.jobs import UNGROUPED, Group, Place
from batchstate.times import milliseconds, wall_clock

__all__ = ["register"]

GroupOption = Annotated[
    str | None, typer.Option("--group", "-g", help="Only this group; '-' for the jobs without one.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (status, queues, list_, show, jobs, dead, lifecycle):
        app.command(command.__name__.rstrip("_"), rich_help_panel="Looking")(command)


def status(
    url: UrlOption = None, queue: QueueOption = None, lifecycle: LifecycleOption = None, json: JsonOption = False
) -> None:
    """Show what each queue of a store has: batches per state, jobs per place and group, claims, pauses.

    Example: batchstate status --url sqlite:///merges.db
    """
    chosen = target(url, queue, lifecycle)
    chosen.doubt()
    summaries = summarise(chosen)
    if json:
        print_json([summary.as_json() for summary in summaries])
    else:
        print_summaries(summaries)


def queues(url: UrlOption = None, json: JsonOption = False) -> None:
    """Name the queues of a store.

    Example: batchstate queues --url redis://localhost:6379/0
    """
    names = target(url).queues()
    if json:
        print_json(names)
    else:
        for name in names:
            say(name)


def list_(
    states: Annotated[list[str] | None, typer.Argument(metavar="STATE", help="The states; all without any.")] = None,
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    since: Annotated[str | None, typer.Option(help="Only batches changed within so long, such as 2h.")] = None,
    sort: Annotated[Literal["state", "id", "created", "updated"], typer.Option(help="The order.")] = "state",
    columns: Annotated[
        str, typer.Option(help="Which columns, with commas between.")
    ] = "id,state,version,requests,updated",
    complete: Annotated[bool, typer.Option(help="Also find batches whose record is not up to date.")] = False,
    json: JsonOption = False,
) -> None:
    """List the batches that are in the given states.

    Example: batchstate list testing merging --since 1h --sort updated
    """
    chosen = target(url, queue, lifecycle)
    problems: list[BatchStateError] = []
    with chosen.queue() as opened:
        asked = states or states_seen(opened.store, chosen.lifecycle)
        found = list_by_states(
            opened.store, asked, lifecycle=chosen.lifecycle, complete=complete, on_problem=problems.append
        )
    now = wall_clock()
    if since is not None:
        found = [batch for batch in found if batch.updated_at >= now - milliseconds(since, "--since")]
    if sort != "state":
        keys: dict[str, Any] = {
            "id": lambda b: b.id,
            "created": lambda b: b.created_at,
            "updated": lambda b: b.updated_at,
        }
        found.sort(key=keys[sort])
    if json:
        print_json([batch_json(batch) for batch in found])
    else:
        cells: dict[str, Any] = {
            "id": lambda b: b.id,
            "state": lambda b: state_text(b.state),
            "version": lambda b: b.version,
            "requests": lambda b: len(b.request_ids),
            "created": lambda b: when(b.created_at),
            "updated": lambda b: ago(b.updated_at, now),
            "attributes": lambda b: dumps(b.attributes, ensure_ascii=False),
        }
        wanted = [column.strip() for column in columns.split(",")]
        unknown = [column for column in wanted if column not in cells]
        if unknown:
            msg = f"there is no column {unknown[0]!r}; there are {', '.join(cells)}"
            raise InvalidValueError(msg)
        rows = [[cells[column](batch) for column in wanted] for batch in found]
        table("", wanted, rows, right=("version", "requests"))
        say(many(len(found), "batch", "batches"))
    _report(problems)


def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="A batch, a job or a request.")],
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    json: JsonOption = False,
) -> None:
    """Show all that is known of a batch, a job or a request.

    Of a batch: its row, its history, its requests with outcomes, its lease, and whether its records agree with it. Of a
    job or a request: where it is, and every attempt with its outcome.

    Example: batchstate show batch-17
    """
    chosen = target(url, queue, lifecycle)
    with chosen.queue() as opened:
        row = opened.store.get_batches([name]).get(name)
        if isinstance(row, BatchStateError):
            raise row
        if row is not None:
            show_batch(opened, row, states_seen(opened.store, chosen.lifecycle), json=json)
        else:
            show_request(opened, name, json=json)


def jobs(
    place: Annotated[
        Literal["waiting", "active", "scheduled", "dead"], typer.Argument(help="Where they are.")
    ] = "waiting",
    url: UrlOption = None,
    queue: QueueOption = None,
    group: GroupOption = None,
    error: Annotated[str | None, typer.Option(help="Only those whose error contains this.")] = None,
    older: Annotated[str | None, typer.Option(help="Only those added at least so long ago, such as 2h.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 100,
    json: JsonOption = False,
) -> None:
    """List the jobs in a place.

    Example: batchstate jobs scheduled --group emails --older 1h
    """
    with target(url, queue).queue() as opened:
        _print_jobs(opened, place, group, error, older, limit, json=json)


def dead(
    url: UrlOption = None,
    queue: QueueOption = None,
    group: GroupOption = None,
    error: Annotated[str | None, typer.Option(help="Only those whose error contains this.")] = None,
    older: Annotated[str | None, typer.Option(help="Only those added at least so long ago, such as 2h.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 100,
    json: JsonOption = False,
) -> None:
    """List the dead jobs, with their errors. `batchstate revive` takes them back.

    Example: batchstate dead --error "connection refused"
    """
    with target(url, queue).queue() as opened:
        _print_jobs(opened, "dead", group, error, older, limit, json=json)


def lifecycle(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    form: Annotated[
        Literal["text", "mermaid", "svg", "dot"], typer.Option("--format", help="How to draw it.")
    ] = "text",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write it into this file.")] = None,
    counts: Annotated[bool, typer.Option(help="With the number of batches in each state.")] = True,
    json: JsonOption = False,
) -> None:
    """Draw the lifecycle, with how many batches are in each state.

    Example: batchstate lifecycle --format svg -o merges.svg
    """
    chosen = target(url, queue, lifecycle)
    with chosen.moving() as opened:
        live = _live_counts(opened) if counts else None
        flow = opened.lifecycle
    drawn = dumps(_lifecycle_json(flow, live), ensure_ascii=False, indent=2) if json else _draw(flow, form, live)
    if output is not None:
        output.write_text(drawn.rstrip("\n") + "\n", encoding="utf-8")
    else:
        out.file.write((clean_json(drawn) if json else clean(drawn)).rstrip("\n") + "\n")


def _print_jobs(
    queue: BatchQueue, place: Place, group: str | None, error: str | None, older: str | None, limit: int, *, json: bool
) -> None:
    named: Group | None = UNGROUPED if group == "-" else group
    found: list[Job] = []
    for job in queue.jobs(place, group=named, error=error, older_than=older):
        found.append(job)
        if len(found) > limit:
            break
    shown = found[:limit]
    if json:
        print_json([job_json(job) for job in shown])
        return
    now = wall_clock()
    rows = [
        (
            job.id,
            job.group or "",
            f"{job.attempts}/{job.max_attempts}",
            job.stalls,
            ago(job.added_at, now),
            *(() if place == "waiting" else (_moment(job, now),)),
            job.error,
        )
        for job in shown
    ]
    moment = {"waiting": (), "active": ("lease",), "scheduled": ("due",), "dead": ("dead",)}[place]
    columns = ("id", "group", "tries", "stalls", "age", *moment, "error")
    table(f"{place} jobs of {queue.name}", columns, rows, right=("tries", "stalls"))
    say(many(len(shown), "job") + (f"; more than {limit:,}, see --limit" if len(found) > limit else ""))


def _moment(job: Job, now: int) -> str:
    """Answer the instant that matters of a job in its place."""
    if job.place == "active" and job.expires_at is not None:
        return f"lapsed {ago(job.expires_at, now)}" if job.expires_at <= now else f"ends {ago(job.expires_at, now)}"
    return ago(job.due_at if job.place == "scheduled" else job.dead_at, now)


def _live_counts(queue: BatchQueue) -> dict[str, int]:
    counts = dict.fromkeys(queue.lifecycle.states, 0)
    for batch in queue.iter_by_states(queue.lifecycle.states):
        counts[batch.state] += 1
    return counts


def _lifecycle_json(flow: Lifecycle, counts: dict[str, int] | None) -> dict[str, Any]:
    states = [
        {
            "state": state,
            "initial": state == flow.initial,
            "terminal": flow.is_terminal(state),
            "batches": None if counts is None else counts[state],
        }
        for state in flow.states
    ]
    return {"states": states, "moves": [{"from": source, "to": to} for source, to in flow.moves]}


def _draw(flow: Lifecycle, form: str, counts: dict[str, int] | None) -> str:
    if form == "mermaid":
        return flow.mermaid(counts)
    if form == "svg":
        return flow.svg(counts)
    label = {state: f"{state} ({counts[state]})" if counts is not None else state for state in flow.states}
    if form == "dot":
        quoted = {state: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for state, text in label.items()}
        edges = "\n".join(f"  {quoted[source]} -> {quoted[to]};" for source, to in flow.moves)
        return f"digraph lifecycle {{\n  rankdir=LR;\n{edges}\n}}"
    lines = [
        f"{label[state]:<24} > {' | '.join(to for source, to in flow.moves if source == state)}"
        if not flow.is_terminal(state)
        else f"{label[state]:<24} (an end)"
        for state in flow.states
    ]
    return "\n".join(lines)


def _report(problems: list[BatchStateError]) -> None:
    if problems:
        for problem in problems[:20]:
            complain(str(problem))
        complain(f"{many(len(problems), 'row')} left out; batchstate check tells more")
        raise typer.Exit(1)
