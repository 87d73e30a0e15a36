"""Repair: a worker dies between two steps of a move, the batch is missing from a listing, the message comes again.

`atomic=False` takes the protocol's three steps one by one, as on a backend without transactions, so that there is a
middle to die in.
"""

from __future__ import annotations

from batchstate import Lifecycle, open_queue
from batchstate.testing import Crash, FaultStore, crash_after

FLOW = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")

queue = open_queue("merges", "memory://", lifecycle=FLOW, atomic=False)
queue.create("batch-17", requests=["pr-1"])

whole = queue.store
queue.store = FaultStore(whole, crash_after(1))  # the worker dies after its next write
try:
    queue.advance("batch-17", "testing", source="queued")
except Crash:
    print("the worker died after the swap, before its record was put")
queue.store = whole

print("its row says:", queue.get("batch-17").state)
print("the listing of testing:", [batch.id for batch in queue.list_by_states(["testing"])])
print("the complete listing:", [batch.id for batch in queue.list_by_states(["testing"], complete=True)])

step = queue.advance("batch-17", "testing", source="queued")  # nobody acknowledged the message, so it comes again
print("the message comes again:", step.outcome)
print("the listing of testing:", [batch.id for batch in queue.list_by_states(["testing"])])
print("a left-over record costs a read until somebody tidies:", queue.reconcile())
assert step.outcome == "already"
assert [batch.id for batch in queue.list_by_states(["testing"])] == ["batch-17"]
