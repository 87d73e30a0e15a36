"""The promises of the claim half, each a function that answers what is broken, or `None`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from batchstate.testing.explorer.job_messages import JOBS
from batchstate.testing.explorer.promises import Promises

if TYPE_CHECKING:
    from batchstate.entities import Association
    from batchstate.job_calls import ClaimRow
    from batchstate.jobs import Job
    from batchstate.testing.explorer.world import World

__all__ = [
    "accounts_agree",
    "attempts_are_failures",
    "ends_once",
    "first_verdict_stands",
    "in_one_place",
    "job_promises",
    "nothing_is_held",
    "servable_or_in_the_ring",
    "under_the_ceiling",
]

SETTLED = ("completed", "retried", "delayed", "dead", "released")


def _claims(world: World) -> list[ClaimRow]:
    store: Any = world.store
    page = store.list_claims()
    found = list(page.items)
    while page.cursor is not None:
        page = store.list_claims(page.cursor)
        found += page.items
    return found


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
    for claim in _claims(world):
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
    flying = {claim.id for claim in _claims(world)}
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
    flying = [claim.id for claim in _claims(world)]
    return f"all is quiet, and {flying} are in flight" if flying else None


def job_promises(*removable: str) -> Promises:
    """Answer what holds in every scope; these jobs may be taken away by somebody."""
    accounts = partial(accounts_agree, removable=frozenset(removable))
    return Promises(
        always=(in_one_place, under_the_ceiling, servable_or_in_the_ring, ends_once, accounts),
        between=(first_verdict_stands,),
    )
