"""What the model tests of jobs are about: messages that claim, settle, sweep, remove and revive, and what must hold.

Every call of a `JobStorage` is one step, so what is explored is the order of calls, crashes between them, and calls
that are sent again. The clock stands still, and a sweep takes back everything that is held: a lease may lapse at any
instant.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from batchstate.errors import ClaimLostError, NotFoundError
from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate.readymade import CLAIM
from batchstate.testing.explorer import CLOCK, Actor, Message, Promises, Scope, World
from batchstate_memory import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.entities import Association
    from batchstate.jobs import Job
    from batchstate.storage import Storage

    Kind: TypeAlias = Literal["complete", "retry", "delay", "dead", "release"]

JOBS = ("a", "b")
SETTLED = ("completed", "retried", "delayed", "dead", "released")
EVER = 10**15
"""Milliseconds after which every lease has lapsed."""


def store_with(*, ceiling: int | None = None, held: int = 1, max_attempts: int = 9) -> Callable[[], MemoryStorage]:
    """Answer what makes a store with two jobs of one group, some of them held by the claim `c-0`."""

    def make() -> MemoryStorage:
        store = MemoryStorage("q", clock=CLOCK)
        store.add_jobs([NewJob(name, "null", "g", max_attempts) for name in JOBS])
        store.set_ceiling("g", ceiling)
        if held:
            store.claim_jobs(Claiming("c-0", held, 1000, "mark-0"))
        return store

    return make


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


def on_jobs(title: str, *actors: Actor) -> Scope:
    """Let them act on the two jobs."""
    return Scope(f"jobs: {title}", CLAIM, actors)


# ------------------------------------------------------------------------------- what must hold


def _jobs(world: World) -> dict[str, Job]:
    store: Any = world.store
    return cast("dict[str, Job]", store.get_jobs(JOBS))


def _outcomes(world: World, name: str) -> dict[str, str]:
    found: list[Association] = world.store.list_associations(name)
    return {association.batch_id: association.outcome for association in found}


def in_one_place(world: World) -> str | None:
    """Every job is in exactly one place, and every claim in flight holds just the jobs that say so."""
    store: Any = world.store
    held: dict[str, str] = {}
    for claim in store.list_claims().items:
        if not claim.jobs:
            return f"claim {claim.id} is in flight and holds nothing"
        for name, _ in claim.jobs:
            if name in held:
                return f"job {name} is held by {held[name]} and {claim.id}"
            held[name] = claim.id
    for name, job in _jobs(world).items():
        if (job.place == "active") != (name in held) or (job.place == "active" and job.claim != held[name]):
            return f"job {name} is {job.place} under {job.claim}, and held by {held.get(name)}"
        if job.place != "active" and name not in {one.id for one in store.list_jobs(job.place).items}:
            return f"job {name} is {job.place}, and not listed there"
    counts = {place: getattr(store.count_jobs(), place) for place in ("waiting", "active", "scheduled", "dead")}
    places: list[str] = [job.place for job in _jobs(world).values()]
    if any(places.count(place) != number for place, number in counts.items()):
        return f"the counts are {counts}, and the jobs are {places}"
    return None


def under_the_ceiling(world: World) -> str | None:
    """No group has more in flight than its ceiling, nor a slot that was freed twice."""
    store: Any = world.store
    for group in store.count_jobs().groups:
        if group.active < 0 or (group.ceiling is not None and group.active > group.ceiling):
            return f"{group.active} jobs of {group.group} are in flight, and {group.ceiling} may be"
    return None


def servable_or_in_the_ring(world: World) -> str | None:
    """Whenever a group can be served, its turn comes: what one claim could take says so."""
    store: Any = world.store
    [group] = store.count_jobs().groups or [None]
    room = group is not None and group.waiting > 0 and (group.ceiling is None or group.active < group.ceiling)
    if bool(room) != bool(store.count_claimable(1)):
        return f"the group has {group}, and {store.count_claimable(1)} are claimable"
    return None


def ends_once(world: World) -> str | None:
    """A claim's batch is claimed while it holds something, and settled or abandoned, retired, from then on."""
    store: Any = world.store
    flying = {claim.id for claim in store.list_claims().items}
    for batch in world.rows.values():
        filed = [record.state for record in world.records if record.batch_id == batch.id]
        if batch.id in flying:
            if (batch.state, batch.version, filed) != ("claimed", 1, ["claimed"]) or batch.retired_at is not None:
                return f"claim {batch.id} is in flight, in {batch.state} at v{batch.version}, filed under {filed}"
        elif batch.state not in ("settled", "abandoned") or batch.version != 2 or batch.retired_at is None or filed:
            return f"claim {batch.id} has ended, in {batch.state} at v{batch.version}, filed under {filed}"
    return None


def accounts_agree(world: World, removable: frozenset[str] = frozenset()) -> str | None:
    """What became of a job is what its associations say: done once, none left open, gone only if done or removed."""
    jobs = _jobs(world)
    for name in JOBS:
        outcomes = _outcomes(world, name)
        done = [claim for claim, outcome in outcomes.items() if outcome == "completed"]
        job = jobs.get(name)
        if len(done) > 1 or (done and job is not None):
            return f"job {name} was completed by {done}, and is {job and job.place}"
        if job is None and not done and name not in removable:
            return f"job {name} is nowhere: {outcomes}"
        if job is not None and job.deliveries != len(outcomes):
            return f"job {name} was delivered {job.deliveries} times, to {sorted(outcomes)}"
        opened = [claim for claim, outcome in outcomes.items() if not outcome]
        if opened and (job is None or job.place != "active" or opened != [job.claim]):
            return f"job {name} is {job and job.place}, and open in {opened}"
    return None


def attempts_are_failures(world: World) -> str | None:
    """Attempts are the failures that were charged, one for each; for scopes in which nobody revives."""
    for name, job in _jobs(world).items():
        failures = [claim for claim, outcome in _outcomes(world, name).items() if outcome == "retried"]
        if job.attempts != len(failures):
            return f"job {name} has {job.attempts} attempts, and failed in {failures}"
    return None


def first_verdict_stands(before: World, after: World) -> str | None:
    """A settlement never changes; what was swept may be settled late; counters grow by one at most."""
    for name in JOBS:
        old, new = _outcomes(before, name), _outcomes(after, name)
        for claim, outcome in old.items():
            kept = outcome in (*SETTLED, "removed")
            if new[claim] != outcome and (kept or (outcome == "swept" and new[claim] not in SETTLED)):
                return f"job {name} was {outcome} in {claim}, and is {new[claim]} now"
    for name, job in _jobs(after).items():
        was = _jobs(before).get(name)
        if was is not None and not (
            job.deliveries - was.deliveries in (0, 1)
            and job.attempts - was.attempts <= 1
            and job.stalls - was.stalls <= 1
        ):
            return f"job {name} went from {was} to {job}"
    return None


def nothing_is_held(world: World) -> str | None:
    """When every message is acknowledged, nothing is held any more."""
    store: Any = world.store
    flying = [claim.id for claim in store.list_claims().items]
    return f"all is quiet, and {flying} are in flight" if flying else None


def job_promises(*removable: str) -> Promises:
    """Answer what holds in every scope; these jobs may be taken away by somebody."""
    accounts = partial(accounts_agree, removable=frozenset(removable))
    return Promises(
        always=(in_one_place, under_the_ceiling, servable_or_in_the_ring, ends_once, accounts),
        between=(first_verdict_stands,),
    )
