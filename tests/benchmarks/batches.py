"""The batches that the benchmarks move: five requests and a handful of attributes each, like those of a merge queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate import Batch, Lifecycle, create_many

if TYPE_CHECKING:
    from batchstate.storage import Storage

__all__ = ["ATTRIBUTES", "FLOW", "REQUESTS", "filled", "new_batch"]

FLOW = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed; merging > queued")
REQUESTS = tuple(f"pr-{number}" for number in range(5))
ATTRIBUTES: dict[str, object] = {
    "group": "kombu/transport",
    "ci": {"status": "green", "seconds": 81.5, "jobs": [3, 1, 4]},
    "added": 40,
    "files": ["kombu/abstract.py", "kombu/common.py"],
}


def new_batch(store: Storage, number: int) -> Batch:
    """Answer a batch that is not stored yet."""
    return Batch(f"batch-{number:06}", store.queue, "queued", request_ids=REQUESTS, attributes=dict(ATTRIBUTES))


def filled(store: Storage, count: int) -> list[Batch]:
    """Create `count` batches and answer them as they are stored."""
    made = [
        create_many(store, [new_batch(store, n) for n in range(at, min(at + 1000, count))])
        for at in range(0, count, 1000)
    ]
    return [batch for some in made for batch in some if isinstance(batch, Batch)]
