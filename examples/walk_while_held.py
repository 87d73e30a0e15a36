"""A claim is a batch: it walks the lifecycle while its lease holds, and is handed from one process to another.

The first process claims changes into `testing`, tests them, and moves the batch on to `merging`. The second, which
knows nothing but the batch's ID, takes the claim up and settles its jobs. The last settlement ends the batch.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

from batchstate import Lifecycle, open_queue

FLOW = Lifecycle.parse(
    "testing > merging > merged; testing | merging > failed",
    settled="merged",  # where a claim goes whose jobs are all settled
    abandoned="failed",  # and one whose worker died
)


def test(url: str, handed_over: multiprocessing.Queue[str]) -> None:
    """Claim the changes, test them together, hand the batch on."""
    with open_queue("merges", url, lifecycle=FLOW, by="tester") as queue:
        claim = queue.claim(10, lease="1m", state="testing")
        assert claim is not None
        print(f"tester: {len(claim)} changes, all green")
        queue.advance(claim.id, "merging", source="testing", why="all green")
        handed_over.put(claim.id)


def merge(url: str, handed_over: multiprocessing.Queue[str]) -> None:
    """Take the claim up, merge its changes one by one."""
    with open_queue("merges", url, lifecycle=FLOW, by="merger") as queue, queue.claim_of(handed_over.get()) as claim:
        for job in claim:
            with claim.attempt(job):
                print(f"merger: {job.id}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'merges.db'}"
        with open_queue("merges", url, lifecycle=FLOW) as queue:
            for number in (1, 2, 3):
                queue.add(f"pr-{number}")
            context = multiprocessing.get_context("spawn")
            handed_over: multiprocessing.Queue[str] = context.Queue()
            for stage in (test, merge):
                process = context.Process(target=stage, args=(url, handed_over))
                process.start()
                process.join()
            [(batch, outcome)] = queue.attempts("pr-2")
            print(f"pr-2 was {outcome} in a batch that is {batch.state}:")
            for move in batch.history:
                print(f"  {move.by}: {move.source} > {move.to} {move.why}".rstrip())
            assert (batch.state, outcome) == ("merged", "completed")
