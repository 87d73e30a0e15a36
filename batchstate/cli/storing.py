"""Commands for stores: `storage init`, `storage info` and `storage copy`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from attrs import evolve

from batchstate import InvalidValueError, open_storage
from batchstate.cli.copying import copy
from batchstate.cli.output import complain, out, print_json, say
from batchstate.cli.settings import JsonOption, UrlOption, target
from batchstate.cli.summary import summarise
from batchstate.provisioning import Described, Provisioned, adapter_of
from batchstate.urls import StorageURL

__all__ = ["register"]

PROBE = "-"
"""The queue that a store is opened for where none is meant; nothing is written into it."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    storage = typer.Typer(no_args_is_help=True, help="Make a store ready, and look at it.")
    for command in (init, info, copy):
        storage.command(command.__name__)(command)
    app.add_typer(storage, name="storage", rich_help_panel="Stores")


def init(
    url: Annotated[str | None, typer.Argument(metavar="URL", help="The store; by default the one that is set.")] = None,
    recovery: Annotated[bool, typer.Option(help="DynamoDB: with point-in-time recovery.")] = False,
    form: Annotated[
        Literal["cloudformation", "iam"] | None, typer.Option("--print", help="DynamoDB: print it, and do nothing.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Create what a store needs; again, it changes nothing and says what is wrong, if anything is.

    Example: batchstate storage init "dynamodb://batches?region=eu-west-1" --recovery
    """
    chosen = target(url).url
    parsed = StorageURL.parse(chosen)
    adapter = adapter_of(parsed)
    if form is not None:
        if not isinstance(adapter, Provisioned):
            msg = f"{parsed.scheme}:// needs nothing that a template could make"
            raise InvalidValueError(msg)
        out.file.write(adapter.template(parsed, form) + "\n")
        return
    did: list[str] = []
    if isinstance(adapter, Provisioned):
        did = list(adapter.provision(parsed, recovery=recovery))
    else:
        open_storage(chosen, queue=PROBE).close()
    if json:
        print_json({"store": str(parsed), "did": did})
        return
    for line in (*did, f"{parsed} is ready"):
        say(line)


def info(url: UrlOption = None, json: JsonOption = False) -> None:
    """Say what is there: versions, counts, sizes, and settings that endanger data.

    Example: batchstate storage info --url redis://localhost:6379/0
    """
    chosen = target(url)
    summaries = summarise(evolve(chosen, name=None))
    jobs = [summary.jobs for summary in summaries if summary.jobs is not None]
    with chosen.store(PROBE) as store:
        facts = {
            "store": str(StorageURL.parse(chosen.url)),
            "queues": f"{len(summaries):,}",
            "batches": f"{sum(sum(summary.states.values()) for summary in summaries):,} filed",
            "jobs": f"{sum(one.waiting + one.active + one.scheduled + one.dead for one in jobs):,}",
        }
        warnings: list[str] = []
        if isinstance(store, Described):
            more, warnings = store.describe()
            facts.update(more)
    if json:
        print_json({"facts": facts, "warnings": warnings})
        return
    for name, value in facts.items():
        say(f"{name:<20} {value}")
    for warning in warnings:
        complain(f"warning: {warning}")
