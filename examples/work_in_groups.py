"""Jobs claimed together and settled apart: real changes in groups that take turns, with a poison change among them.

Each folder of the repository is a group. A group's changes are claimed fifty at a time; the one that makes the handler
raise is found by halving, charged, retried and at last dead, and costs its neighbours nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path

from batchstate import Backoff, Done, JobPolicy, JobSpec, Part, Verdict, open_queue

CHANGES = Path(__file__).parent / "data" / "changes.jsonl"


def read_changes(most: int) -> list[JobSpec]:
    """Read changes as jobs: the ID is the request, the rest its payload."""
    with CHANGES.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(most), strict=False)]
    return [JobSpec(row["id"], row, group=row["group"]) for row in rows]


served: Counter[str] = Counter()


def count_files(part: Part) -> dict[str, Verdict]:
    """Work on all jobs of a claim at once, such as with one bulk request; one bad job makes all of it fail."""
    for job in part:
        if not job.payload["files"] or job.id == poison:
            raise ValueError(f"{job.id} makes the bulk request fail")
    served.update(str(job.group) for job in part)
    return {job.id: Done() for job in part}


with (
    tempfile.TemporaryDirectory() as folder,
    open_queue(
        "changes",
        f"sqlite:///{Path(folder) / 'changes.db'}",
        policy=JobPolicy(max_attempts=2, backoff=Backoff(first="10ms", jitter=False)),
    ) as queue,
):
    jobs = read_changes(600)
    poison = jobs[300].id
    print(f"added: {queue.add_many(jobs).count('added')}; again: {queue.add_many(jobs).count('duplicate')} duplicates")

    consumer = queue.consumer(batch=count_files, bisect=True, max_size=50, poll="10ms")
    while queue.counts().waiting + queue.counts().scheduled:
        consumer.run(burst=True)

    counts = queue.counts()
    print(f"{served.total()} done in {len(served)} groups, {counts.dead} dead, {counts.waiting} waiting")
    [dead] = queue.jobs("dead")
    print(f"dead: {dead.id} after {dead.attempts} attempts: {dead.error}")
    for batch, outcome in queue.attempts(poison):
        print(f"  attempt {batch.id}: {len(batch.request_ids)} jobs, this one {outcome}, the batch {batch.state}")
    assert served.total() == len(jobs) - 1
    assert dead.id == poison
