"""Embedding: a consumer of an at-least-once queue (SQS, Pub/Sub, Kafka …) that moves batches through a lifecycle.

The message says which move it asks for: the batch, and the version at which it entered the state it is to leave. So a
message that comes twice, late, or out of order never moves a batch twice, not even on a lifecycle with a cycle.
"""

from __future__ import annotations

from collections import deque

from batchstate import BatchStateError, Lifecycle, open_queue

FLOW = Lifecycle.parse("waiting > running > checked; running > waiting; checked > shipped")

inbox: deque[dict[str, object]] = deque()


def handle(message: dict[str, object]) -> bool:
    """Do what a message asks for; answer whether to acknowledge it, or let it come again."""
    try:
        step = queue.advance(str(message["batch"]), str(message["to"]), entered=int(str(message["entered"])))
    except BatchStateError as error:
        print(f"  {error}")
        return not error.retryable
    print(f"  {message} -> {step.outcome}")
    if (
        step.batch.state == message["to"]
    ):  # moved now or before: whoever moved it may have died before it published this
        following = {"waiting": "running", "running": "checked", "checked": "shipped"}.get(step.batch.state)
        if following is not None:
            inbox.append({"batch": step.batch.id, "to": following, "entered": step.batch.entered})
    return True


with open_queue("parcels", "memory://", lifecycle=FLOW, by="consumer-1") as queue:
    batch = queue.create("parcel-7", requests=["order-1", "order-2"])
    first: dict[str, object] = {"batch": batch.id, "to": "running", "entered": batch.entered}
    inbox.extend([first, first])  # the feed delivers it twice
    while inbox:
        message = inbox.popleft()
        if not handle(message):
            inbox.append(message)

    print(f"{batch.id} is {queue.get(batch.id).state}:")
    for move in queue.get(batch.id).history:
        print(f"  version {move.version}: {move.source} > {move.to}")
    assert queue.get(batch.id).state == "shipped"
    assert queue.get(batch.id).version == 4  # created, and three moves: nothing was done twice
