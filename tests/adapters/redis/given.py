"""Batches for the tests of the Redis adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.creation import create_batch
from batchstate.entities import Batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batchstate.storage import Storage

STATES = ("queued", "testing", "merging", "merged")


def new(batch_id: str = "b", requests: Iterable[str] = ("r-1", "r-2"), *, queue: str = "q") -> Batch:
    """Answer a batch to create."""
    return Batch(batch_id, queue, "queued", request_ids=tuple(requests), attributes={"ci": {"green": [1, 2.5, "é"]}})


def made(store: Storage, batch_id: str = "b", requests: Iterable[str] = ("r-1", "r-2")) -> Batch:
    """Create a batch."""
    return create_batch(store, new(batch_id, requests, queue=store.queue))
