"""What each queue has, at a glance: gathered for `status` and `watch`, shown as a table or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from batchstate import BatchQueue, JobStorage, QueueCounts, Storage
from batchstate.checking import mending
from batchstate.cli.output import ago, group_json, out, say, state_text
from batchstate.cli.safe import clean
from batchstate.cli.settings import states_seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from batchstate import GroupCounts
    from batchstate.cli.settings import Target

__all__ = ["Summary", "draw", "print_summaries", "summarise"]


@frozen
class Summary:
    """What one queue has.

    Attributes:
        queue: its name.
        states: how many batches are filed under each state that has any.
        jobs: its jobs; `None` where the backend keeps none.
    """

    queue: str
    states: dict[str, int]
    jobs: QueueCounts | None

    def as_json(self) -> dict[str, Any]:
        """Answer it in the shape that `--json` prints."""
        counts = self.jobs
        return {
            "queue": self.queue,
            "batches": self.states,
            "estimated": ["batches"],
            "jobs": None
            if counts is None
            else {
                "waiting": counts.waiting,
                "active": counts.active,
                "scheduled": counts.scheduled,
                "dead": counts.dead,
                "paused": counts.paused,
                "ceiling": counts.ceiling,
                "claims": counts.claims,
                "lapsed": counts.lapsed,
                "now": counts.now,
                "groups": [group_json(group) for group in counts.groups],
            },
        }


def summarise(chosen: Target) -> list[Summary]:
    """Look at the queues that were asked for."""
    return [_summary(chosen, name) for name in chosen.queues()]


def _summary(chosen: Target, name: str) -> Summary:
    with chosen.store(name) as store:
        states = {state: count for state in states_seen(store, chosen.lifecycle) if (count := _filed(store, state))}
        jobs = BatchQueue(store).counts() if isinstance(store, JobStorage) else None
    return Summary(name, states, jobs)


def _filed(store: Storage, state: str) -> int:
    count, page = 0, store.list_records(state)
    while True:
        count += len(page.items)
        if page.cursor is None:
            return count
        page = store.list_records(state, page.cursor)


def print_summaries(summaries: Sequence[Summary]) -> None:
    """Print what the queues have."""
    if not summaries:
        say("The store has no queues yet.")
    for summary in summaries:
        out.print(draw(summary))
    if any(summary.states for summary in summaries):
        out.print(Text("Batches are counted by their records; batchstate check finds those without one.", style="dim"))


def draw(summary: Summary) -> RenderableType:
    """Answer a queue's summary, drawn."""
    return Group(*_parts(summary))


def _parts(summary: Summary) -> Iterator[RenderableType]:
    jobs = summary.jobs
    yield Text(clean(summary.queue), style="bold underline")
    if jobs is not None and jobs.paused is not None:
        yield Text(f"  paused   {clean(jobs.paused)}", style="bold yellow")
    if summary.states:
        batches = Text("  batches  ")
        for state, count in summary.states.items():
            batches.append_text(state_text(state)).append(f" {count:,}   ")
        yield batches
    if jobs is not None and jobs.groups:
        yield _claims(summary.queue, jobs)
        yield _groups(jobs)
        yield from _pauses(jobs)
    if not summary.states and (jobs is None or not jobs.groups):
        yield Text("  nothing in it", style="dim")


def _claims(queue: str, jobs: QueueCounts) -> Text:
    line = Text(f"  claims   {jobs.claims:,} in flight")
    if jobs.lapsed:
        line.append(f", {jobs.lapsed:,} of them lapsed: {mending(queue, 'sweep')}", style="red")
    return line


def _groups(jobs: QueueCounts) -> Table:
    drawn = Table(header_style="bold", box=SIMPLE_HEAD)
    for column in ("group", "waiting", "active", "scheduled", "dead", "ceiling", "oldest"):
        drawn.add_column(column, justify="left" if column == "group" else "right", overflow="fold")
    for group in jobs.groups:
        drawn.add_row(
            Text(
                clean(_named(group)),
                style="dim" if group.group is None else "yellow" if group.paused is not None else "",
            ),
            f"{group.waiting:,}",
            f"{group.active:,}",
            f"{group.scheduled:,}",
            Text(f"{group.dead:,}", style="red" if group.dead else ""),
            "" if group.ceiling is None else str(group.ceiling),
            ago(group.oldest, jobs.now),
        )
    return drawn


def _pauses(jobs: QueueCounts) -> Iterator[Text]:
    """Answer why groups are paused, a line each: a reason may be long."""
    for group in jobs.groups:
        if group.paused is not None:
            yield Text(clean(f"  {_named(group)} is paused: {group.paused}"), style="yellow")


def _named(group: GroupCounts) -> str:
    return "(none)" if group.group is None else group.group
