"""Swapping the storage: the same program on another backend, by its URL alone.

python examples/swap_the_storage.py                                  # in memory, then on SQLite
python examples/swap_the_storage.py redis://localhost:6379/0         # on a server of yours
python examples/swap_the_storage.py "dynamodb://batches?region=eu-west-1"
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from batchstate import Lifecycle, open_queue

FLOW = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")


def merge_something(url: str) -> str:
    """Take a batch through the lifecycle, and tell its history."""
    with open_queue("merges", url, lifecycle=FLOW, by="example") as queue:
        queue.create("batch-17", requests=["pr-1", "pr-2"])
        queue.advance("batch-17", "testing", source="queued")
        queue.advance("batch-17", "merging", source="testing", update={"ci": "green"}, why="all green")
        queue.advance("batch-17", "merged", source="merging")
        [batch] = queue.list_by_states(["merged"])
        [found], _ = queue.find_by_request_id("pr-2")
        assert batch == found
        return " > ".join(move.to for move in batch.history)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for url in sys.argv[1:] or ["memory://", f"sqlite:///{Path(folder) / 'merges.db'}"]:
            print(f"{url.partition('://')[0]}: {merge_something(url)}")
