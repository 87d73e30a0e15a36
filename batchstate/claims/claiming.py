"""Claiming: taking jobs together, one claim or one after the other, and taking up a claim of another process."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from attrs import evolve
from uuid6 import uuid7

from batchstate.claims.claim import Claim
from batchstate.claims.upkeep import sweep
from batchstate.claims.waiting import Nudge, listening
from batchstate.errors import ClaimLostError, InvalidValueError
from batchstate.job_calls import Claiming
from batchstate.jobs import UNGROUPED, Group
from batchstate.marks import new_mark
from batchstate.names import check_name
from batchstate.times import milliseconds
from batchstate.values import encode_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from batchstate.claims.context import JobContext
    from batchstate.times import Duration

    OnLost = Callable[[Claim, Sequence[str]], None]

__all__ = ["claim", "claim_of", "claims", "group_name", "new_claim_id", "plan_claim", "send_claim"]


def claim(
    context: JobContext,
    limit: int,
    *,
    lease: Duration = "30s",
    group: Group | None = None,
    across_groups: bool = False,
    state: str | None = None,
    attributes: Mapping[str, object] | None = None,
    claim_id: str | None = None,
    on_lost: OnLost | None = None,
    by: str | None = None,
) -> Claim | None:
    """Claim up to `limit` jobs together: one batch, one lease.

    Args:
        context: the queue.
        limit: how many jobs at most; fewer are served at once where fewer wait.
        lease: how long they are held.
        group: the group to serve; without one, the group whose turn it is.
        across_groups: one job a group, round after round, instead of all jobs from one group.
        state: the state of the lifecycle in which the claim's batch begins, to walk it while the lease holds; without
            one it is the built-in `claimed`.
        attributes: the batch's attributes.
        claim_id: sent again after an unknown outcome, the same ID answers with the same claim; a fresh one by
            default.
        on_lost: called with the claim and the IDs of jobs found lost.
        by: who claims, for the history.

    Returns:
        The claim, or `None` where nothing can be served; never an empty claim.

    Raises:
        InvalidValueError: the limit or the lease is not positive, or a name or an attribute is none. Nothing was
            claimed.
        InvalidLifecycleError: `state` with a lifecycle that does not say where claims end. Nothing was claimed.
        ClaimLostError: the claim of this ID holds nothing any more.
        StorageUnavailableError: the store could not be reached; whether jobs were claimed is unknown: send the same
            ID again, or let the lease lapse.
    """
    claiming = plan_claim(context, limit, lease, group, state, attributes, by, across_groups=across_groups)
    if claim_id is not None:
        claiming = evolve(claiming, id=check_name("claim", claim_id))
    return send_claim(context, claiming, on_lost)


def claims(
    context: JobContext,
    limit: int,
    *,
    lease: Duration = "30s",
    group: Group | None = None,
    across_groups: bool = False,
    state: str | None = None,
    follow: bool = False,
    poll: Duration = "1s",
    on_lost: OnLost | None = None,
) -> Iterator[Claim]:
    """Claim again and again until nothing can be served; with `follow=True`, wait for more and never end.

    Whenever nothing can be served, the jobs of dead workers are swept back first. Arguments are checked when it is
    called.

    Args:
        context, limit, lease, group, across_groups, state, on_lost: as for `claim`.
        follow: whether to wait for work where there is none.
        poll: how long to wait at most before looking again, where the backend does not wake who waits.

    Raises:
        As `claim` does.
    """
    claiming = plan_claim(context, limit, lease, group, state, across_groups=across_groups)
    poll_ms = milliseconds(poll, "poll")

    def generate() -> Iterator[Claim]:
        nudge = Nudge()
        with listening(context.store, nudge) if follow else nullcontext():
            while True:
                found = send_claim(context, evolve(claiming, id=new_claim_id(), mark=new_mark()), on_lost)
                if found is not None:
                    yield found
                elif sweep(context).returned:
                    continue
                elif follow:
                    nudge.wait(poll_ms)
                else:
                    return

    return generate()


def claim_of(context: JobContext, batch_id: str, *, lease: Duration = "30s", on_lost: OnLost | None = None) -> Claim:
    """Take up a claim that is in flight again, in another process than the one that made it.

    The lease is neither restarted nor passed on: whoever knows the claim's ID may extend and settle it.

    Args:
        context: the queue.
        batch_id: the claim's ID, which is its batch's.
        lease: by how long `Claim.extend` extends it from now on.
        on_lost: as for `claim`.

    Raises:
        ClaimLostError: there is no such claim, or it holds nothing any more.
        StorageUnavailableError: the store could not be reached.
    """
    lease_ms = milliseconds(lease, "lease")
    claimed = context.store.get_claims([check_name("batch", batch_id)]).get(batch_id)
    if claimed is None:
        msg = f"no claim {batch_id!r} is in flight in queue {context.store.queue!r}: it ended, or never was"
        raise ClaimLostError(msg)
    return Claim(context, claimed, lease_ms, on_lost=on_lost)


def plan_claim(
    context: JobContext,
    limit: int,
    lease: Duration,
    group: Group | None,
    state: str | None = None,
    attributes: Mapping[str, object] | None = None,
    by: str | None = None,
    *,
    across_groups: bool = False,
) -> Claiming:
    """Answer what the store is asked, with a fresh ID; raises what `claim` does for arguments that make no sense."""
    if type(limit) is not int or limit < 1:
        msg = f"limit must be an int of 1 or more, not {limit!r}"
        raise InvalidValueError(msg)
    if group is not None and across_groups:
        msg = "give either group= or across_groups=True"
        raise InvalidValueError(msg)
    return Claiming(
        new_claim_id(),
        limit,
        milliseconds(lease, "lease"),
        new_mark(),
        None if group is None else group_name(group),
        across_groups,
        "claimed" if state is None else state,
        context.ending(state),
        encode_object(dict(attributes or {}), "attributes"),
        context.by if by is None else by,
    )


def send_claim(context: JobContext, claiming: Claiming, on_lost: OnLost | None = None) -> Claim | None:
    """Make the claim, or have the one that was made answered again; raises as `claim` does."""
    claimed = context.store.claim_jobs(claiming)
    return None if claimed is None else Claim(context, claimed, claiming.lease, on_lost=on_lost)


def new_claim_id() -> str:
    """Answer a fresh claim ID: a UUIDv7, so that claims sort by time; see RFC 9562, section 5.7."""
    return str(uuid7())


def group_name(group: Group) -> str:
    """Answer the name under which storages know a group, `""` for the jobs without one."""
    return "" if group is UNGROUPED else check_name("group", group)
