"""`check`: what it mends, what it leaves to somebody who knows the data, and that it is quiet beside workers."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate import Batch, Done, Lifecycle, MembershipRecord, Retry, create_batch, open_queue, open_storage
from batchstate.checking import Fault, check_batches
from batchstate.claims.context import has_jobs
from batchstate.job_checking import check_jobs

if TYPE_CHECKING:
    from batchstate import BatchQueue, Storage
    from tests.cli.terminal import Command

FAULTS = {
    "unfiled batch": "DELETE FROM batchstate_records WHERE batch_id = 'a'",
    "missing association": "DELETE FROM batchstate_associations WHERE batch_id = 'a'",
    "stale record": "INSERT INTO batchstate_records VALUES ('q', 'testing', 'a', 1)",
    "record of a retired batch": "UPDATE batchstate_batches SET retired_at = 1 WHERE id = 'a'",
    "dangling record": "DELETE FROM batchstate_batches WHERE id = 'a'",
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_is_safe_is_mended(sqlite: Command, kind: str) -> None:
    """Each fault is named; with `--fix` it is mended where nothing can be lost by that, and else told again."""
    with open_storage(sqlite.url, queue="q") as store:
        for name in ("a", "b"):
            create_batch(store, Batch(name, "q", "queued", request_ids=("r-1", f"r-{name}")), clock=lambda: 0)
    assert sqlite("check").code == 0
    with closing(sqlite3.connect(sqlite.url.removeprefix("sqlite:///"))) as connection:
        connection.execute(FAULTS[kind])
        connection.commit()

    said = sqlite("check", "--json")
    assert (said.code, [(f["kind"], f["key"]) for f in said.json["faults"]]) == (1, [(kind, "a")])
    mended = sqlite("check", "--fix", "--json")
    is_safe = kind != "dangling record"
    assert (mended.code, mended.json["mended"]) == ((0, 1) if is_safe else (1, 0))
    assert sqlite("check").code == (0 if is_safe else 1)


def test_what_is_safe_is_mended_anywhere(anywhere: Command) -> None:
    """On each backend a batch that is filed nowhere, and one that is filed twice, are mended by `--fix`."""
    with open_storage(anywhere.url, queue="q") as store:
        for name in ("a", "b", "c"):
            create_batch(store, Batch(name, "q", "queued", request_ids=(f"r-{name}",)), clock=lambda: 0)
        store.delete_records([MembershipRecord("q", "queued", "a", 1)])
        store.put_records([MembershipRecord("q", "testing", "b", 1)])
    assert sorted(f["kind"] for f in anywhere("check", "--json").json["faults"]) == ["stale record", "unfiled batch"]
    assert anywhere("check", "--fix", "--json").json == {"mended": 2, "faults": []}
    assert anywhere("check").out == "All is well.\n"


FLOW = Lifecycle.parse("queued > testing > merged")


def test_no_alarm_beside_workers(anywhere: Command) -> None:
    """While workers move batches and claim, settle and add jobs, checks find nothing wrong, nor does one after them."""
    is_moto = anywhere.url.startswith("dynamodb")  # which mixes up what is written side by side
    workers, steps = (1, 4) if is_moto else (2, 25)

    def work(name: str) -> None:
        with open_queue("q", anywhere.url, lifecycle=FLOW, by=name) as queue:
            for step in range(steps):
                worked(queue, name, step)

    with ThreadPoolExecutor(workers) as pool, open_storage(anywhere.url, queue="q") as store:
        running = [pool.submit(work, f"w{number}") for number in range(workers)]
        found = faults_of(store, "1m")
        while not all(worker.done() for worker in running):
            found += faults_of(store, "1m")
        for worker in running:
            worker.result()
        assert found + faults_of(store, "0s") == []


def faults_of(store: Storage, settled_for: str) -> list[Fault]:
    """Answer what a check finds."""
    assert has_jobs(store)
    return [*check_batches(store, FLOW, settled_for=settled_for), *check_jobs(store)]


def worked(queue: BatchQueue, name: str, step: int) -> None:
    """Move a batch through its lifecycle, add three jobs, and work a claim off."""
    batch = queue.create(f"{name}-{step}", requests=[f"r-{step}", name])
    queue.transition(queue.transition(batch, "testing"), "merged")
    for number in range(3):
        queue.add(f"{name}-{step}-{number}", group=name if number % 2 else None)
    claim = queue.claim(3)
    if claim is not None:
        claim.settle({job.id: Done() if place else Retry("x", 0) for place, job in enumerate(claim)})
