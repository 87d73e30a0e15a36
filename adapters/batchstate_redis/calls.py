"""What the scripts are told: the keys and arguments of each kind of call, as the heads of the Lua files list them.

Answers of these functions that are costs count commands, see `scripts.in_chunks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from batchstate_redis.rows import expected_head, first_line, last_lines, row_text
from batchstate_redis.scripts import BYTES_A_COMMAND, Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.entities import Association, Batch, MembershipRecord
    from batchstate.storage import Swap
    from batchstate.wire import BatchRow
    from batchstate_redis.keys import Keys

    Creation: TypeAlias = tuple[Batch, BatchRow, Sequence[str]]
    """A batch, its row, and the requests whose associations are filed with it."""
    RowSwap: TypeAlias = tuple[Swap, BatchRow]
    Deletion: TypeAlias = tuple[Batch, Sequence[str], bool]
    """A batch, the requests whose associations go, and whether the row goes too."""

__all__ = [
    "association_call",
    "cost_of_creation",
    "cost_of_swap",
    "creation_call",
    "deletion_call",
    "get_records_call",
    "record_deletion_call",
    "record_put_call",
    "swap_call",
]


def cost_of_swap(item: RowSwap) -> int:
    """Answer what a swap costs: its row is read, joined and written."""
    return 4 + item[1].size // BYTES_A_COMMAND


def cost_of_creation(item: Creation) -> int:
    """Answer what a creation costs."""
    return 4 + len(item[2]) + item[1].size // BYTES_A_COMMAND


def swap_call(keys: Keys, swaps: Sequence[RowSwap], *, records: bool) -> Call:
    """Answer the call of `swap_batches`; `records` files them in the same step."""
    call = Call(*[keys.batch(row.id) for _, row in swaps])
    buckets: dict[str, int] = {}
    for swap, row in swaps:
        before, new, old = swap.before, 0, 0
        if records:
            new = buckets.get(row.state) or buckets.setdefault(row.state, call.place(keys.state(row.state)))
            if before.state != row.state:
                old = buckets.get(before.state) or buckets.setdefault(
                    before.state, call.place(keys.state(before.state))
                )
        call.arguments += (
            expected_head(before.version, before.mark).encode(),
            first_line(row).encode(),
            last_lines(row).encode(),
            row.version,
            new,
            old,
            0 if row.retired_at is None else call.place(keys.retired),
        )
    return call


def creation_call(keys: Keys, creations: Sequence[Creation], *, records: bool) -> Call:
    """Answer the call of `create_batches`; `records` files them in the same step."""
    call = Call(keys.count, *[keys.batch(row.id) for _, row, _ in creations])
    for _, row, requests in creations:
        call.arguments += (
            row_text(row).encode(),
            row.version,
            call.place(keys.state(row.state)) if records else 0,
            0 if row.retired_at is None else call.place(keys.retired),
            len(requests),
            *[call.place(keys.request(request)) for request in requests],
        )
    return call


def record_put_call(keys: Keys, records: Sequence[MembershipRecord]) -> Call:
    """Answer the call of `put_records`."""
    call = Call(*[keys.batch(record.batch_id) for record in records])
    for record in records:
        call.arguments += (call.place(keys.state(record.state)), record.version)
    return call


def record_deletion_call(keys: Keys, records: Sequence[MembershipRecord]) -> Call:
    """Answer the call of `delete_records`."""
    call = Call()
    for record in records:
        call.arguments += (call.place(keys.state(record.state)), record.batch_id.encode(), record.version)
    return call


def get_records_call(keys: Keys, wanted: Sequence[tuple[str, str]]) -> Call:
    """Answer the call of `get_records`."""
    call = Call()
    for state, batch_id in wanted:
        call.arguments += (call.place(keys.state(state)), batch_id.encode("utf-8", "surrogatepass"))
    return call


def association_call(keys: Keys, associations: Sequence[Association]) -> Call:
    """Answer the call of `put_associations`."""
    call = Call()
    for association in associations:
        call.arguments += (
            call.place(keys.request(association.request_id)),
            association.batch_id.encode(),
            association.outcome.encode(),
        )
    return call


def deletion_call(keys: Keys, deletions: Sequence[Deletion], states: Sequence[str]) -> Call:
    """Answer the call of `delete_batches`."""
    call = Call(keys.count, keys.retired, keys.job_part("holds"), *[keys.batch(batch.id) for batch, _, _ in deletions])
    call.arguments += (len(states), *[call.place(keys.state(state)) for state in states])
    for batch, requests, whole in deletions:
        call.arguments += (
            batch.version,
            int(whole),
            len(requests),
            *[call.place(keys.request(request)) for request in requests],
        )
    return call
