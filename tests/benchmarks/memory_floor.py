"""The floor for memory: a dictionary, a lock, and the same checks and JSON."""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING, Any

from batchstate.values import encode_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate import Batch

__all__ = ["MemoryFloor"]


class MemoryFloor:
    """Moves and lists batches in dictionaries."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self._lock = Lock()
        self._rows = {
            b.id: (b.version, b.state, json.dumps(b.request_ids), encode_object(b.attributes, "")) for b in batches
        }
        self._buckets: dict[str, dict[str, int]] = {"queued": {b.id: b.version for b in batches}}
        self.held = [(b.id, b.version, b.state, b.attributes) for b in batches]

    def move(self, places: Sequence[int], to: str) -> None:
        """Move the held batches at these places."""
        for place in places:
            batch_id, version, state, attributes = self.held[place]
            encoded = encode_object(attributes, "attributes")
            with self._lock:
                stored = self._rows[batch_id]
                if stored[0] != version:
                    raise AssertionError(batch_id)
                self._rows[batch_id] = (version + 1, to, stored[2], encoded)
                self._buckets.setdefault(to, {})[batch_id] = version + 1
                self._buckets[state].pop(batch_id, None)
            self.held[place] = (batch_id, version + 1, to, attributes)

    def list_state(self, state: str) -> list[tuple[Any, ...]]:
        """List a state, requests and attributes decoded."""
        with self._lock:
            rows = [(batch_id, *self._rows[batch_id]) for batch_id in self._buckets.get(state, {})]
        return sorted((*row[:3], json.loads(row[3]), json.loads(row[4])) for row in rows if row[2] == state)
