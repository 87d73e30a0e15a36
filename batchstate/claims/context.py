"""What every call of the claim half knows: the storage, the policy, the lifecycle, who works, and the lease keeper."""

from __future__ import annotations

from typing import Protocol, TypeGuard

from attrs import field, frozen

from batchstate.claims.keeper import LeaseKeeper
from batchstate.claims.policy import JobPolicy
from batchstate.errors import InvalidLifecycleError, InvalidValueError
from batchstate.job_calls import Ending
from batchstate.job_storage import JobStorage
from batchstate.lifecycle import Lifecycle
from batchstate.storage import Storage
from batchstate.times import Clock, wall_clock

__all__ = ["JobContext", "JobStore", "has_jobs"]


class JobStore(Storage, JobStorage, Protocol):
    """A storage that keeps jobs as well as batches."""


_BUILT_IN = Ending()


def has_jobs(store: Storage) -> TypeGuard[JobStore]:
    """Answer whether this storage keeps jobs."""
    return isinstance(store, JobStorage)


@frozen
class JobContext:
    """What every call of the claim half knows.

    Attributes:
        store: the queue's storage.
        lifecycle: the states of its batches.
        policy: what it does with its jobs.
        by: who works here.
        clock: answers the time in milliseconds since the epoch.
        keeper: extends what is held here.
    """

    store: JobStore
    lifecycle: Lifecycle
    policy: JobPolicy = field(factory=JobPolicy)
    by: str = ""
    clock: Clock = wall_clock
    keeper: LeaseKeeper = field(factory=LeaseKeeper)

    @classmethod
    def of(cls, store: Storage, lifecycle: Lifecycle, policy: JobPolicy, by: str, clock: Clock) -> JobContext:
        """Answer the context; raises `InvalidValueError` where the storage keeps no jobs."""
        if not has_jobs(store):
            msg = f"{store!r} keeps batches but no jobs; open a backend that does, DynamoDB with transact=true"
            raise InvalidValueError(msg)
        return cls(store, lifecycle, policy, by, clock)

    def ending(self, state: str | None) -> Ending:
        """Answer what the end of a claim does to its batch, which begins in `state`; `None` for the built-in one.

        Raises:
            InvalidLifecycleError: the claim is to walk the user's lifecycle, which does not say where it ends.
        """
        if state is None:
            return _BUILT_IN
        self.lifecycle.check_state(state)
        if self.lifecycle.settled is None or self.lifecycle.abandoned is None:
            msg = (
                f"a claim that begins in {state!r} must end somewhere: give the lifecycle settled= (where a "
                "settled claim goes) and abandoned= (where one goes whose worker died)"
            )
            raise InvalidLifecycleError(msg)
        return Ending(self.lifecycle.settled, self.lifecycle.abandoned, tuple(sorted(self.lifecycle.terminal)))
