"""What actors are handed that work on jobs: to claim, to settle, to sweep, to remove, to revive.

Every call of a `JobStorage` is one step, so what is explored is the order of calls, crashes between them, and calls
that are sent again. The clock stands still, and a sweep takes back everything that is held: a lease may lapse at any
instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import frozen

from batchstate.errors import ClaimLostError, NotFoundError
from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate.testing.explorer.actors import Message

if TYPE_CHECKING:
    from batchstate.storage import Storage

__all__ = ["JOBS", "JobsAtStart", "Kind", "claiming", "removing", "reviving", "settling", "sweeping"]

Kind: TypeAlias = Literal["complete", "retry", "delay", "dead", "release"]

JOBS = ("a", "b")
"""The jobs that all messages are about; they are of one group."""

EVER = 10**15
"""Milliseconds after which every lease has lapsed."""


@frozen
class JobsAtStart:
    """What a store holds before anybody acts: two jobs of one group.

    Attributes:
        ceiling: how many of them may be in flight, `None` for any number.
        held: how many of them the claim `c-0` holds, whose worker may come late.
        max_attempts: after how many failures they are dead.
    """

    ceiling: int | None = None
    held: int = 1
    max_attempts: int = 9

    def put_into(self, storage: Storage) -> None:
        """Bring an empty store to it."""
        store: Any = storage
        store.add_jobs([NewJob(name, "null", "g", self.max_attempts) for name in JOBS])
        store.set_ceiling("g", self.ceiling)
        if self.held:
            store.claim_jobs(Claiming("c-0", self.held, 1000, "mark-0"))


def claiming(number: int, *kinds: Kind, limit: int = 2, extends: bool = False) -> Message:
    """Claim, perhaps extend, and settle each job on its own verdict, each in a call of its own."""

    def run(storage: Storage) -> object:
        store: Any = storage
        claimed = store.claim_jobs(Claiming(f"c-{number}", limit, 1000, f"mark-{number}"))
        if claimed is None:
            return None
        if extends:
            store.extend_claim(claimed.batch.id, 1000)
        return [
            store.settle_jobs(
                claimed.batch.id,
                [Settling(job.id, kinds[place % len(kinds)], "no")],
                keep_done=0,
            ).outcomes
            for place, job in enumerate(claimed.jobs)
        ]

    return Message(f"claim c-{number}", run, creates=f"c-{number}", drops=(ClaimLostError,))


def settling(number: int, kind: Kind, name: str = "a") -> Message:
    """Settle one job of a claim that was made before."""

    def run(storage: Storage) -> object:
        store: Any = storage
        return store.settle_jobs(f"c-{number}", [Settling(name, kind, "late")], keep_done=0)

    return Message(f"{kind} {name} of c-{number}", run, creates=f"c-{number}")


def sweeping(limit: int = 1, max_stalls: int = 9) -> Message:
    """Sweep once, everything that is held having lapsed."""

    def run(storage: Storage) -> object:
        store: Any = storage
        return store.sweep_jobs(limit, max_stalls=max_stalls, skew=-EVER)

    return Message("sweep", run)


def removing(name: str = "a") -> Message:
    """Remove a job by force."""

    def run(storage: Storage) -> object:
        store: Any = storage
        return [type(answer) for answer in store.remove_jobs([name], force=True)]

    return Message(f"remove {name}", run, drops=(NotFoundError,))


def reviving(name: str = "a") -> Message:
    """Revive a job."""

    def run(storage: Storage) -> object:
        store: Any = storage
        return [type(answer) for answer in store.revive_jobs([name])]

    return Message(f"revive {name}", run)
