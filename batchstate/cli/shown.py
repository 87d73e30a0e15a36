"""What `show` tells of one batch, or of one job or request."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any

from rich.text import Text

from batchstate import Batch, BatchQueue, BatchStateError, Job, JobStorage, NotFoundError
from batchstate.checking import mending
from batchstate.cli.output import ago, batch_json, job_json, out, print_json, state_text, table, when
from batchstate.cli.safe import clean, many
from batchstate.times import wall_clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate import Attempt, MembershipRecord
    from batchstate.job_calls import Claimed

__all__ = ["show_batch", "show_request"]

SHOWN = 1_000
"""How many characters of a payload are shown at a terminal."""


def show_batch(queue: BatchQueue, batch: Batch, states: Sequence[str], *, json: bool) -> None:
    """Show a batch: its row, its history, its requests, its lease, its records."""
    store = queue.store
    records = store.get_records((state, batch.id) for state in dict.fromkeys([batch.state, *states]))
    outcomes = {request_id: _outcome(queue, request_id, batch.id) for request_id in dict.fromkeys(batch.request_ids)}
    held = store.get_claims([batch.id]).get(batch.id) if isinstance(store, JobStorage) else None
    says, mend = _agreement(queue.name, batch, records)
    if json:
        print_json(
            {
                **batch_json(batch),
                "outcomes": outcomes,
                "records": [{"state": record.state, "version": record.version} for record in records],
                "records_agree": not says,
                "lease": None
                if held is None
                else {"expires_at": held.expires_at, "held": [job.id for job in held.jobs]},
            }
        )
        return
    now = wall_clock()
    out.print(Text.assemble(("batch ", "dim"), (batch.id, "bold"), ("  in ", "dim"), state_text(batch.state)))
    out.print(f"  version {batch.version}, entered its state at version {batch.entered}")
    out.print(f"  created {when(batch.created_at)}, changed {ago(batch.updated_at, now)} ago")
    if batch.retired_at is not None:
        out.print(f"  retired {when(batch.retired_at)}")
    if batch.attributes:
        out.print(_value("attributes", batch.attributes))
    _print_lease(queue.name, held, now)
    out.print(Text(f"  {says or 'its record agrees with it'}", style="yellow" if says else "green"))
    if mend:
        out.print(Text(f"  mend it with {mend}", style="yellow"))
    moves = [(m.version, when(m.at), m.source or "", state_text(m.to), m.by, m.why) for m in batch.history]
    table("history", ("version", "when", "from", "to", "by", "why"), moves, right=("version",))
    table("requests", ("request", "outcome"), [(request, outcome or "-") for request, outcome in outcomes.items()])


def show_request(queue: BatchQueue, name: str, *, json: bool) -> None:
    """Show a job or a request: where it is, and every attempt.

    Raises:
        NotFoundError: the queue knows nothing of this name.
    """
    job: Job | None = None
    if isinstance(queue.store, JobStorage):
        found = queue.store.get_jobs([name]).get(name)
        if isinstance(found, BatchStateError):
            raise found
        job = found
    attempts = queue.attempts(name)
    if job is None and not attempts:
        msg = f"queue {queue.name!r} knows no batch, job or request {name!r}; batchstate queues names the others"
        raise NotFoundError(msg)
    if json:
        print_json({"job": None if job is None else job_json(job), "attempts": [_attempt_json(a) for a in attempts]})
        return
    now = wall_clock()
    if job is not None:
        _print_job(job, now)
    else:
        out.print(Text.assemble(("request ", "dim"), (name, "bold"), ("  no job of this ID is in the queue", "dim")))
    rows = [
        (
            a.batch.id,
            state_text(a.batch.state),
            a.outcome or "-",
            ago(a.batch.created_at, now),
            len(a.batch.request_ids),
        )
        for a in attempts
    ]
    table("attempts", ("batch", "in", "outcome", "begun", "requests"), rows, right=("requests",))


def _outcome(queue: BatchQueue, request_id: str, batch_id: str) -> str | None:
    """Answer what became of a request in a batch; `None` where no association leads there."""
    for association in queue.store.list_associations(request_id):
        if association.batch_id == batch_id:
            return association.outcome
    return None


def _agreement(queue: str, batch: Batch, records: Sequence[MembershipRecord]) -> tuple[str, str]:
    """Answer what is wrong with the records of a batch, and what mends it; empty where all is well."""
    filed = {record.state for record in records}
    reconcile = mending(queue, "reconcile")
    if batch.retired_at is not None:
        return (f"it is retired and still filed under {', '.join(sorted(filed))}", reconcile) if filed else ("", "")
    if batch.state not in filed:
        return f"it is not filed under {batch.state!r}, so listings miss it", mending(queue, "ensure", batch.id)
    others = sorted(filed - {batch.state})
    return (f"it is also filed under {', '.join(others)}, which costs a read", reconcile) if others else ("", "")


def _print_lease(queue: str, held: Claimed | None, now: int) -> None:
    if held is None:
        return
    lapsed = held.expires_at <= now
    moment = ago(held.expires_at, now)
    until = f"lapsed {moment} ago: {mending(queue, 'sweep')}" if lapsed else f"ends {moment}"
    out.print(Text(f"  a claim of {many(len(held.jobs), 'job')}, whose lease {until}", style="red" if lapsed else ""))


def _print_job(job: Job, now: int) -> None:
    out.print(Text.assemble(("job ", "dim"), (job.id, "bold"), ("  ", ""), state_text(job.place)))
    out.print(Text(f"  group {job.group or '(none)'}, added {when(job.added_at)} ({ago(job.added_at, now)} ago)"))
    delivered = many(job.deliveries, "delivery", "deliveries")
    out.print(f"  {delivered}, {job.attempts} of {many(job.max_attempts, 'attempt')}, {many(job.stalls, 'stall')}")
    for label, instant in (("due", job.due_at), ("held until", job.expires_at), ("dead since", job.dead_at)):
        if instant is not None:
            out.print(f"  {label} {when(instant)} ({ago(instant, now)})")
    if job.error:
        out.print(Text(clean(f"  error {job.error}"), style="red"))
    out.print(_value("payload", job.payload))


def _value(label: str, value: object) -> Text:
    """Answer a value of the user's as JSON; at a terminal a long one is cut."""
    text = dumps(value, ensure_ascii=False)
    if out.is_terminal and len(text) > SHOWN:
        text = f"{text[:SHOWN]} … {len(text):,} characters, see --json"
    return Text(clean(f"  {label} {text}"))


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {"batch": batch_json(attempt.batch), "outcome": attempt.outcome}
