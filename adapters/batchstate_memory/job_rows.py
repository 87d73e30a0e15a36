"""What an in-memory store holds of a queue's jobs: rows, lines, the ring of groups, leases.

Heaps hold entries that may be out of date; whoever pops one asks the row whether it still means anything.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from attrs import define, field

from batchstate.job_calls import Ending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batchstate.job_wire import JobRow

__all__ = ["ClaimState", "GroupState", "JobRows"]


@define
class GroupState:
    """One group: its lines, its counts, its limits."""

    line: list[tuple[int, str]] = field(factory=list)
    """Heap of `(order, job ID)`: who waits."""
    alarms: list[tuple[int, int, str]] = field(factory=list)
    """Heap of `(due, order, job ID)`: who is due later."""
    counts: dict[str, int] = field(factory=lambda: dict.fromkeys(("waiting", "active", "scheduled", "dead"), 0))
    ceiling: int | None = None
    paused: str | None = None


@define
class ClaimState:
    """One claim in flight."""

    expires_at: int
    ending: Ending
    held: dict[str, None]
    """The jobs held, in their order."""


class JobRows:
    """One queue's jobs."""

    def __init__(self) -> None:
        self.rows: dict[str, JobRow] = {}
        self.done: dict[str, int] = {}
        """Remembered IDs of done jobs, with the instant they are forgotten."""
        self.forgetting: list[tuple[int, str]] = []
        """Heap of `(instant, done ID)`."""
        self.groups: dict[str, GroupState] = {}
        self.ring: dict[str, None] = {}
        """The servable groups in turn."""
        self.due_groups: list[tuple[int, str]] = []
        """Heap of `(due, group)`: groups with jobs due later."""
        self.fallen_due: set[str] = set()
        """Groups off that heap, which join the ring when a claim looks."""
        self.claims: dict[str, ClaimState] = {}
        self.leases: list[tuple[int, str]] = []
        """Heap of `(deadline, claim ID)`."""
        self.holds: dict[str, tuple[str, int]] = {}
        """Batch ID to `(token, deadline)`."""
        self.paused: str | None = None
        self.ceiling: int | None = None
        self.added = 0

    def group(self, name: str) -> GroupState:
        """Answer a group's state, made where there is none."""
        found = self.groups.get(name)
        if found is None:
            found = self.groups[name] = GroupState()
        return found

    def store(self, row: JobRow) -> None:
        """Write a row and file it in its place."""
        before = self.rows.get(row.id)
        if before is not None:
            self.group(before.group).counts[before.place] -= 1
        group = self.group(row.group)
        group.counts[row.place] += 1
        self.rows[row.id] = row
        if row.place == "waiting":
            heappush(group.line, (row.order, row.id))
        elif row.place == "scheduled":
            due = row.due_at or 0
            heappush(group.alarms, (due, row.order, row.id))
            heappush(self.due_groups, (due, row.group))

    def drop(self, row: JobRow) -> None:
        """Delete a row."""
        del self.rows[row.id]
        self.group(row.group).counts[row.place] -= 1

    def headroom(self, group: GroupState) -> int | None:
        """Answer how many more of a group may be held; `None` for no limit."""
        ceiling = group.ceiling if group.ceiling is not None else self.ceiling
        return None if ceiling is None else max(0, ceiling - group.counts["active"])

    def is_servable(self, name: str, now: int) -> bool:
        """Answer whether a claim could take a job of this group."""
        group = self.groups.get(name)
        if group is None or group.paused is not None or self.headroom(group) == 0:
            return False
        return group.counts["waiting"] > 0 or self.first_due(name, now) is not None

    def refresh(self, name: str, now: int) -> None:
        """Let a group join the ring's tail, or leave it, after a step that concerned it."""
        if self.is_servable(name, now):
            self.ring.setdefault(name)
            return
        self.ring.pop(name, None)
        group = self.groups.get(name)
        if group is not None and not any(group.counts.values()) and group.ceiling is None and group.paused is None:
            del self.groups[name]

    def joining(self, now: int) -> list[str]:
        """Answer the groups that are servable because jobs fell due, and are not in the ring yet, by due time."""
        while self.due_groups and self.due_groups[0][0] <= now:
            self.fallen_due.add(heappop(self.due_groups)[1])
        due = [
            (row.due_at or 0, name)
            for name in self.fallen_due
            if name not in self.ring and self.is_servable(name, now) and (row := self.first_due(name, now)) is not None
        ]
        return [name for _, name in sorted(due)]

    def join(self, now: int) -> None:
        """Let the groups whose jobs fell due join the ring."""
        self.ring.update(dict.fromkeys(self.joining(now)))
        self.fallen_due.clear()

    def first_due(self, name: str, now: int) -> JobRow | None:
        """Answer the scheduled job of a group that fell due first, `None` where none is due."""
        alarms = self.group(name).alarms
        while alarms:
            row = self._alarmed(name, alarms[0])
            if row is not None:
                return row if alarms[0][0] <= now else None
            heappop(alarms)
        return None

    def due_jobs(self, name: str, now: int) -> Iterator[JobRow]:
        """Go through the scheduled jobs of a group that are due, in no order; costs no more than those looked at."""
        alarms = self.group(name).alarms
        seen: set[str] = set()
        ahead = [0]
        while ahead:
            place = ahead.pop()
            if place < len(alarms) and alarms[place][0] <= now:  # what stands below a later entry of a heap is later
                ahead += (2 * place + 1, 2 * place + 2)
                row = self._alarmed(name, alarms[place])
                if row is not None and row.id not in seen:
                    seen.add(row.id)
                    yield row

    def _alarmed(self, name: str, alarm: tuple[int, int, str]) -> JobRow | None:
        """Answer the job that an entry of a group's alarms still means, if any."""
        due, order, job_id = alarm
        row = self.rows.get(job_id)
        still = row is not None and (row.place, row.group, row.due_at, row.order) == ("scheduled", name, due, order)
        return row if still else None

    def in_line(self, name: str) -> Iterator[JobRow]:
        """Pop the waiting jobs of a group, oldest first; whoever takes one files it elsewhere before the next.

        An entry may be there twice, of a job that left the line and came back, so each is compared with its row.
        """
        line = self.group(name).line
        while line:
            order, job_id = heappop(line)
            row = self.rows.get(job_id)
            if row is not None and (row.place, row.group, row.order) == ("waiting", name, order):
                yield row

    def deadline(self, row: JobRow) -> int:
        """Answer when a held job's lease ends."""
        claim = self.claims[row.claim or ""]
        return max(claim.expires_at, row.extended_to or 0)
