"""The promises of the lifecycle half, each a function that answers what is broken, or `None`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import attrs
from attrs import frozen

from batchstate.entities import Association
from batchstate.errors import BatchStateError
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.testing.explorer.world import World
from batchstate.three_steps import ThreeSteps

__all__ = [
    "PROMISES",
    "Promise",
    "Promises",
    "StepPromise",
    "found_by_requests",
    "listed",
    "no_record_dangles",
    "no_record_of_retired",
    "nothing_is_applied_twice",
    "nothing_is_left",
    "reachable",
    "record_of_present_state",
    "retired_stays_retired",
]

Promise: TypeAlias = Callable[[World], str | None]
StepPromise: TypeAlias = Callable[[World, World], str | None]


@frozen
class Promises:
    """What is held against every state that is explored.

    Attributes:
        always: hold at every instant.
        at_rest: hold when every message is acknowledged.
        between: hold between an instant and the one after a single call.
    """

    always: tuple[Promise, ...] = ()
    at_rest: tuple[Promise, ...] = ()
    between: tuple[StepPromise, ...] = ()

    def broken(self, world: World) -> str | None:
        """Answer what is broken at this instant."""
        return _first(self.always, world)

    def broken_at_rest(self, world: World) -> str | None:
        """Answer what is broken now that all is quiet."""
        return _first(self.at_rest, world)

    def broken_between(self, before: World, after: World) -> str | None:
        """Answer what is broken from one instant to the next."""
        return next((told for promise in self.between if (told := promise(before, after))), None)

    def also(
        self,
        *,
        always: tuple[Promise, ...] = (),
        at_rest: tuple[Promise, ...] = (),
        between: tuple[StepPromise, ...] = (),
    ) -> Promises:
        """Answer these promises and some more."""
        return attrs.evolve(
            self,
            always=self.always + always,
            at_rest=self.at_rest + at_rest,
            between=self.between + between,
        )


def _first(promises: tuple[Promise, ...], world: World) -> str | None:
    try:
        return next((told for promise in promises if (told := promise(world))), None)
    except BatchStateError as error:
        return f"looking at the store raises {type(error).__name__}: {error}"


def reachable(world: World) -> str | None:
    """At every instant, some record names each live batch."""
    filed = {record.batch_id for record in world.records}
    for batch in world.live:
        if batch.id not in filed:
            return f"batch {batch.id} is in {batch.state} at v{batch.version}, and no record names it"
    return None


def listed(world: World) -> str | None:
    """At every instant, a complete listing of its state, and one of all states, shows each live batch."""
    everywhere = {batch.id for batch in list_by_states(ThreeSteps(world.store), world.lifecycle.states)}
    for batch in world.live:
        if batch.id not in everywhere:
            return f"a listing of all states does not show batch {batch.id}, in {batch.state} at v{batch.version}"
        complete = list_by_states(ThreeSteps(world.store), [batch.state], lifecycle=world.lifecycle, complete=True)
        if batch.id not in {each.id for each in complete}:
            return f"a complete listing of {batch.state} does not show batch {batch.id}, in it at v{batch.version}"
    if ghosts := sorted(everywhere & {batch.id for batch in world.rows.values() if batch.retired_at is not None}):
        return f"a listing shows batch {ghosts[0]}, which is retired"
    return None


def found_by_requests(world: World) -> str | None:
    """At every instant, every row that is not retired is found by each of its requests, acknowledged or not."""
    for batch in world.rows.values():
        for request_id in batch.request_ids if batch.retired_at is None else ():
            if batch.id not in {each.id for each in find_by_request_id(world.store, request_id).batches}:
                return f"batch {batch.id} is not found by its request {request_id}"
    return None


def no_record_dangles(world: World) -> str | None:
    """At every instant, every record's batch has a row."""
    for record in world.records:
        if record.batch_id not in world.rows:
            return f"the record of batch {record.batch_id} under {record.state} has no row"
    return None


def nothing_is_applied_twice(world: World) -> str | None:
    """At every instant, no message has moved a batch more than once."""
    for batch in world.rows.values():
        counts = Counter(move.by for move in batch.history if move.by)
        for text, times in counts.items():
            if times > 1:
                return f"the message {text!r} was applied {times} times"
    return None


def record_of_present_state(world: World) -> str | None:
    """At rest, the record of each live batch's present state is there."""
    filed = {(record.state, record.batch_id) for record in world.records}
    for batch in world.live:
        if (batch.state, batch.id) not in filed:
            return f"all is quiet, and batch {batch.id} has no record under its state {batch.state}"
    return None


def retired_stays_retired(before: World, after: World) -> str | None:
    """A retired row never changes, except that it goes; no other row goes; a version grows by one."""
    for batch in before.rows.values():
        now = after.rows.get(batch.id)
        if now is None:
            if batch.retired_at is None:
                return f"the row of batch {batch.id} is gone, and it was not retired"
        elif batch.retired_at is not None and (now.version, now.retired_at) != (batch.version, batch.retired_at):
            return f"batch {batch.id} was retired, and has come back in {now.state}"
        elif now.version not in (batch.version, batch.version + 1):
            return f"batch {batch.id} went from v{batch.version} to v{now.version} in one step"
        elif now.request_ids != batch.request_ids:
            return f"the requests of batch {batch.id} changed"
    return None


def no_record_of_retired(world: World) -> str | None:
    """At rest, no record names a retired batch; for stores whose put sees the row."""
    for record in world.records:
        row = world.rows.get(record.batch_id)
        if row is not None and row.retired_at is not None:
            return f"all is quiet, and batch {row.id} is retired and has a record under {record.state}"
    return None


def nothing_is_left(world: World) -> str | None:
    """At rest, of a batch without a row there is no record and no association."""
    for record in world.records:
        if record.batch_id not in world.rows:
            return f"the record of batch {record.batch_id} under {record.state} was left behind"
    for association in world.store.scan("associations").items:
        if isinstance(association, Association) and association.batch_id not in world.rows:
            return f"the association of {association.request_id} with batch {association.batch_id} was left behind"
    return None


PROMISES = Promises(
    always=(reachable, listed, found_by_requests, no_record_dangles, nothing_is_applied_twice),
    at_rest=(record_of_present_state,),
    between=(retired_stays_retired,),
)
"""What holds for every backend."""
