"""The front door: a storage and a lifecycle together, and what they both know, so that no call has to say it."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any, Self

from batchstate.advance import advance, load
from batchstate.claims.methods import JobMethods
from batchstate.claims.policy import JobPolicy
from batchstate.creation import create_batch, create_many
from batchstate.entities import Attributes, Batch, Found, Step
from batchstate.listing import (
    OnProblem,
    find_by_request_id,
    iter_by_states,
    list_by_states,
    raise_problem,
)
from batchstate.readymade import CLAIM
from batchstate.tidying import RETENTION, Purged, Reconciled, purge, reconcile, retire
from batchstate.times import Clock, Duration, wall_clock
from batchstate.transition import ensure_record, transition, transition_many
from batchstate.urls import open_storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from batchstate.errors import BatchStateError
    from batchstate.lifecycle import Lifecycle
    from batchstate.storage import Storage

__all__ = ["BatchQueue", "open_queue"]


def open_queue(
    name: str,
    url: str | None = None,
    *,
    lifecycle: Lifecycle = CLAIM,
    by: str | None = None,
    policy: JobPolicy | None = None,
    atomic: bool = True,
    clock: Clock | None = None,
) -> BatchQueue:
    """Open a queue of the store that `url` names.

    Args:
        name: the queue.
        url: the store, such as `sqlite:///merges.db`; without one, the environment's
            `BATCHSTATE_URL`.
        lifecycle: the states of its batches; by default that of claims alone.
        by: who works here, for the histories; by default this machine's name and the process ID.
        policy: what it does with its jobs.
        atomic: `False` takes the protocol's three steps also where the backend has a single one.
        clock: answers the time in milliseconds since the epoch, in place of the store's own clock
            or this machine's.

    Raises:
        InvalidValueError: as for `open_storage`, as are all other errors.
    """
    store = open_storage(url, queue=name, atomic=atomic, clock=clock)
    return BatchQueue(store, lifecycle, by=by, policy=policy, clock=clock)


class BatchQueue(JobMethods):
    """One queue of batches: the functions of this package, plus what the queue knows: store, lifecycle, clock and `by`.

    Every method raises what the function of its name raises. Closing it, or leaving it as a context
    manager, closes the storage.

    Args:
        store: the queue's storage.
        lifecycle: the states of its batches; by default that of claims alone.
        by: who works here, for the histories; by default this machine's name and the process ID.
        policy: what it does with its jobs.
        clock: answers the time in milliseconds since the epoch.
    """

    def __init__(
        self,
        store: Storage,
        lifecycle: Lifecycle = CLAIM,
        *,
        by: str | None = None,
        policy: JobPolicy | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.store = store
        self.lifecycle = lifecycle
        self.policy: JobPolicy = policy or JobPolicy()
        self.by: str = by if by is not None else f"{socket.gethostname()}:{os.getpid()}"
        self._clock = clock or wall_clock

    def __repr__(self) -> str:
        return f"<BatchQueue {self.name!r} on {self.store!r}>"

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.store.queue

    def create(
        self,
        batch_id: str,
        *,
        requests: Iterable[str],
        attributes: Mapping[str, Any] | None = None,
        by: str | None = None,
        why: str = "",
    ) -> Batch:
        """Create a batch in the lifecycle's initial state; again, for the same requests: the stored one, repaired.

        See `create_batch`.
        """
        batch = self.new(batch_id, requests=requests, attributes=attributes)
        return create_batch(self.store, batch, by=self._who(by), why=why, clock=self._clock)

    def create_many(
        self, batches: Sequence[Batch], *, by: str | None = None, why: str = ""
    ) -> list[Batch | BatchStateError]:
        """Create many batches, such as `new` makes them, each with its own outcome. See `create_many`."""
        return create_many(self.store, batches, by=self._who(by), why=why, clock=self._clock)

    def new(self, batch_id: str, *, requests: Iterable[str], attributes: Mapping[str, Any] | None = None) -> Batch:
        """Answer a batch of this queue in the lifecycle's initial state, for `create_many`. Nothing is written."""
        return Batch(
            batch_id,
            self.name,
            self.lifecycle.initial,
            request_ids=tuple(requests),
            attributes=dict(attributes or {}),
        )

    def get(self, batch_id: str) -> Batch:
        """Load a batch by its ID; raises `NotFoundError` where there is none."""
        return load(self.store, batch_id)

    def advance(
        self,
        batch_id: str,
        to: str,
        *,
        source: str | None = None,
        entered: int | None = None,
        update: Attributes | None = None,
        by: str | None = None,
        why: str = "",
    ) -> Step:
        """Do the move that a message asks for, unless it is done already; then repair it. See `advance`."""
        return advance(
            self.store,
            batch_id,
            to,
            source=source,
            entered=entered,
            lifecycle=self.lifecycle,
            update=update,
            by=self._who(by),
            why=why,
            clock=self._clock,
        )

    def transition(
        self,
        batch: Batch,
        new_state: str,
        *,
        update: Attributes | None = None,
        by: str | None = None,
        why: str = "",
    ) -> Batch:
        """Move a batch, if its row is still the one that was read. See `transition`."""
        return transition(
            self.store,
            batch,
            new_state,
            lifecycle=self.lifecycle,
            update=update,
            by=self._who(by),
            why=why,
            clock=self._clock,
        )

    def transition_many(
        self,
        batches: Sequence[Batch],
        new_state: str,
        *,
        update: Attributes | None = None,
        by: str | None = None,
        why: str = "",
    ) -> list[Batch | BatchStateError]:
        """Move many batches, each with its own outcome. See `transition_many`."""
        return transition_many(
            self.store,
            batches,
            new_state,
            lifecycle=self.lifecycle,
            update=update,
            by=self._who(by),
            why=why,
            clock=self._clock,
        )

    def ensure_record(self, batch: Batch) -> None:
        """File the record of the state that a batch is in. See `ensure_record`."""
        ensure_record(self.store, batch)

    def list_by_states(
        self,
        states: Iterable[str],
        *,
        complete: bool = False,
        on_problem: OnProblem = raise_problem,
    ) -> list[Batch]:
        """List the batches that are in one of `states`. See `list_by_states`."""
        return list_by_states(self.store, states, lifecycle=self.lifecycle, complete=complete, on_problem=on_problem)

    def iter_by_states(
        self,
        states: Iterable[str],
        *,
        complete: bool = False,
        on_problem: OnProblem = raise_problem,
        page: int = 500,
    ) -> Iterator[Batch]:
        """Go through the batches that are in one of `states`, a page in memory. See `iter_by_states`."""
        return iter_by_states(
            self.store,
            states,
            lifecycle=self.lifecycle,
            complete=complete,
            on_problem=on_problem,
            page=page,
        )

    def find_by_request_id(self, request_id: str, *, on_problem: OnProblem = raise_problem) -> Found:
        """Find every attempt at a request. See `find_by_request_id`."""
        return find_by_request_id(self.store, request_id, on_problem=on_problem)

    def reconcile(self, *, on_problem: OnProblem = raise_problem) -> Reconciled:
        """Make the records agree with their rows. See `reconcile`."""
        return reconcile(self.store, self.lifecycle.states, on_problem=on_problem)

    def retire(self, batch_id: str, *, by: str | None = None, why: str = "retired") -> Batch:
        """Take an ended batch out of the queue. See `retire`; raises `NotFoundError` where there is none."""
        return retire(
            self.store,
            load(self.store, batch_id),
            lifecycle=self.lifecycle,
            by=self._who(by),
            why=why,
            clock=self._clock,
        )

    def purge(
        self,
        *,
        older_than: Duration = RETENTION,
        limit: int | None = None,
        on_problem: OnProblem = raise_problem,
    ) -> Purged:
        """Delete the batches that were retired long enough ago. See `purge`."""
        return purge(
            self.store,
            self.lifecycle.states,
            older_than=older_than,
            limit=limit,
            on_problem=on_problem,
            clock=self._clock,
        )

    def close(self) -> None:
        """Close the storage. Twice is harmless."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _who(self, by: str | None) -> str:
        return self.by if by is None else by
