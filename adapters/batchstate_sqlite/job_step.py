"""`JobStep`: what one writing step on a queue's jobs has looked at, and what it is going to write.

A step moves jobs from place to place in memory, group by group, and writes everything at its end, one
`executemany` a table. It alone writes to the database meanwhile, so that what it has read stays true.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attrs import define, field

from batchstate_sqlite import job_statements as sql
from batchstate_sqlite.job_states import GroupState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Cursor

    from batchstate.job_wire import JobRow

__all__ = ["JobStep"]


@define
class _Writes:
    """What a step writes at its end, per statement."""

    jobs: list[tuple[object, ...]] = field(factory=list)
    dropped: list[str] = field(factory=list)
    into_line: list[tuple[object, ...]] = field(factory=list)
    from_line: list[tuple[object, ...]] = field(factory=list)
    into_scheduled: list[tuple[object, ...]] = field(factory=list)
    from_scheduled: list[tuple[object, ...]] = field(factory=list)
    into_dead: list[tuple[object, ...]] = field(factory=list)
    from_dead: list[tuple[object, ...]] = field(factory=list)
    outcomes: dict[tuple[str, str], list[str]] = field(factory=dict)
    """Claim and outcome to the jobs."""


class JobStep:
    """One writing step on the jobs of a queue.

    Args:
        cursor: in a writing transaction.
        queue: the queue.
        now: the time; a step reads the clock once.
    """

    def __init__(self, cursor: Cursor, queue: str, now: int) -> None:
        self.cursor = cursor
        self.queue = queue
        self.now = now
        found = cursor.execute(sql.QUEUE_OF, (queue,)).fetchone()
        self._stored = found
        self.paused: str | None
        self.ceiling: int | None
        self.added: int
        self.turns: int
        self.paused, self.ceiling, self.added, self.turns = found or (None, None, 0, 0)
        self._groups: dict[str, GroupState] = {}
        self._written: dict[str, tuple[object, ...] | None] = {}
        self._touched: dict[str, None] = {}
        self.by_name = False
        """Whether groups join the ring by name at the end of the step, as where the call names no jobs."""
        self._writes = _Writes()

    # ---------------------------------------------------------------------------------- groups

    def group(self, name: str) -> GroupState:
        """Answer a group's state, made where there is none."""
        found = self._groups.get(name)
        if found is None:
            row = self.cursor.execute(sql.GROUP_OF, (self.queue, name)).fetchone()
            found = GroupState(*row) if row is not None else GroupState(name)
            self._groups[name] = found
            self._written[name] = row
        return found

    def groups_in_turn(self, limit: int) -> list[GroupState]:
        """Answer the first groups of the ring."""
        rows = self.cursor.execute(sql.GROUPS_IN_TURN, (self.queue, limit)).fetchall()
        return [self._known(row) for row in rows]

    def all_groups(self) -> list[GroupState]:
        """Answer all groups, by name."""
        return [self._known(row) for row in self.cursor.execute(sql.GROUPS, (self.queue,)).fetchall()]

    def _known(self, row: tuple[object, ...]) -> GroupState:
        name = str(row[0])
        found = self._groups.get(name)
        if found is None:
            found = self._groups[name] = GroupState(*row)  # type: ignore[arg-type] # as the table has them
            self._written[name] = row
        return found

    def is_due(self, group: GroupState) -> bool:
        """Answer whether a scheduled job of the group has fallen due; asks what was written."""
        if not group.scheduled:
            return False
        row = self.cursor.execute(sql.DUE_JOBS, (self.queue, group.name, self.now, 1)).fetchone()
        return row is not None

    def is_servable(self, group: GroupState) -> bool:
        """Answer whether a claim could take a job of this group; asks what was written."""
        if group.paused is not None or group.headroom(self.ceiling) == 0:
            return False
        return group.waiting > 0 or self.is_due(group)

    def refresh(self, group: GroupState) -> None:
        """Let a group join the ring's tail, or leave it."""
        servable = self.is_servable(group)
        if servable and group.turn is None:
            self._join_ring(group)
        elif not servable and group.turn is not None:
            self.leave_ring(group)

    def _join_ring(self, group: GroupState) -> None:
        self.turns += 1
        group.turn = self.turns
        self.cursor.execute(sql.PUT_TURN, (self.queue, group.turn, group.name))

    def leave_ring(self, group: GroupState) -> None:
        """Take a group out of the ring."""
        self.cursor.execute(sql.LEAVE_TURN, (self.queue, group.turn))
        group.turn = None

    def served(self, group: GroupState) -> None:
        """Put a group that was served by its turn behind all others."""
        if group.turn is not None and group.turn != self.turns:
            self.leave_ring(group)
        self.refresh(group)

    def touch(self, name: str) -> None:
        """Look at a group at the end of the step: it may have to join the ring, or to leave it."""
        self._touched[name] = None

    def _touch(self, group: GroupState) -> None:
        """Let a group that has become servable by its line join at once, before those that do so after it."""
        self._touched[group.name] = None
        if self.by_name:
            return
        if group.turn is None and group.waiting > 0 and group.paused is None and group.headroom(self.ceiling) != 0:
            self._join_ring(group)

    def wake_due_groups(self) -> None:
        """Let the groups whose jobs fell due join the ring, by due time."""
        while True:
            row = self.cursor.execute(sql.NEXT_ALARM, (self.queue, self.now)).fetchone()
            if row is None:
                return
            due, name = row
            group = self.group(name)
            if self._next_due(name, due - 1) == due:
                self.refresh(group)
                due = self.now
            self.set_alarm(group, self._next_due(name, due))

    def _next_due(self, name: str, after: int) -> int | None:
        [due] = self.cursor.execute(sql.NEXT_DUE, (self.queue, name, after)).fetchone()
        return None if due is None else int(due)

    def set_alarm(self, group: GroupState, due: int | None) -> None:
        """Set when a group must be looked at next."""
        if group.alarm is not None:
            self.cursor.execute(sql.LEAVE_ALARM, (self.queue, group.alarm, group.name))
        if due is not None:
            self.cursor.execute(sql.PUT_ALARM, (self.queue, due, group.name))
        group.alarm = due

    # ------------------------------------------------------------------------------------ jobs

    def leave(self, row: JobRow) -> None:
        """Take a job out of its place."""
        group = self.group(row.group)
        if row.place == "active":
            group.active -= 1
        elif row.place == "waiting":
            group.waiting -= 1
            self._writes.from_line.append((self.queue, row.group, row.order))
        elif row.place == "scheduled":
            group.scheduled -= 1
            self._writes.from_scheduled.append((self.queue, row.group, row.due_at, row.order))
        else:
            group.dead -= 1
            self._writes.from_dead.append((self.queue, row.dead_at, row.order))
            return
        self._touch(group)

    def free(self, name: str, count: int) -> None:
        """Let so many jobs of a group be held no longer, which go nowhere."""
        group = self.group(name)
        group.active -= count
        self._touch(group)

    def enter(self, row: JobRow) -> None:
        """File a job in its place: in line, among the scheduled or among the dead."""
        group = self.group(row.group)
        if row.place == "waiting":
            group.waiting += 1
            self._writes.into_line.append((self.queue, row.group, row.order, row.id))
        elif row.place == "scheduled":
            due = row.due_at or 0
            group.scheduled += 1
            self._writes.into_scheduled.append((self.queue, row.group, due, row.order, row.id))
            if group.alarm is None or due < group.alarm:
                self.set_alarm(group, due)
        else:
            group.dead += 1
            self._writes.into_dead.append((self.queue, row.dead_at, row.order, row.id))
        self._touch(group)

    def move(self, before: JobRow, after: JobRow) -> None:
        """Move a job from the place of one row to that of the other."""
        self.leave(before)
        self.enter(after)
        self._writes.jobs.append(
            (
                *(after.group, after.place, after.deliveries, after.attempts, after.stalls, after.error, after.claim),
                *(after.due_at, after.extended_to, after.dead_at, self.queue, after.id),
            )
        )

    def drop(self, row: JobRow) -> None:
        """Delete a job."""
        self.leave(row)
        self._writes.dropped.append(row.id)

    def remember(self, claim_id: str, job_id: str, outcome: str) -> None:
        """Write into the association of a job with a claim what became of it."""
        self._writes.outcomes.setdefault((claim_id, outcome), []).append(job_id)

    # ------------------------------------------------------------------------------------- end

    def write_jobs(self) -> None:
        """Write what was done to jobs so far."""
        writes, self._writes = self._writes, _Writes()
        self._many(sql.WRITE_JOB, writes.jobs)
        if writes.dropped:
            self.cursor.execute(sql.DROP_JOBS, (self.queue, json.dumps(writes.dropped)))
        self._many(sql.LEAVE_LINE, writes.from_line)
        self._many(sql.PUT_IN_LINE, writes.into_line)
        self._many(sql.LEAVE_SCHEDULED, writes.from_scheduled)
        self._many(sql.PUT_SCHEDULED, writes.into_scheduled)
        self._many(sql.LEAVE_DEAD, [(queue, order) for queue, _, order in writes.from_dead])
        self._many(sql.LEAVE_DEAD_SINCE, writes.from_dead)
        self._many(sql.PUT_DEAD, [(queue, order, job_id) for queue, _, order, job_id in writes.into_dead])
        self._many(sql.PUT_DEAD_SINCE, writes.into_dead)
        for (claim_id, outcome), ids in writes.outcomes.items():
            self.cursor.execute(sql.SET_OUTCOMES, (outcome, self.queue, json.dumps(ids), claim_id))

    def finish(self) -> None:
        """Write all that is left: jobs, the ring, groups, the queue."""
        self.write_jobs()
        for name in sorted(self._touched) if self.by_name else self._touched:
            self.refresh(self.group(name))
        self._write_groups()
        queue = (self.paused, self.ceiling, self.added, self.turns)
        if queue != self._stored:
            self.cursor.execute(sql.PUT_QUEUE, (self.queue, *queue))

    def _write_groups(self) -> None:
        for name, group in self._groups.items():
            if group.alarm is not None and not group.scheduled:
                self.set_alarm(group, None)
            stored, values = self._written[name], group.values()
            if group.is_void:
                if stored is not None:
                    self.cursor.execute(sql.DROP_GROUP, (self.queue, name))
            elif values != stored:
                self.cursor.execute(sql.PUT_GROUP, (self.queue, *values))

    def _many(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            self.cursor.executemany(statement, rows)
