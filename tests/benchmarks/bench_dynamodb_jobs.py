"""DynamoDB: what a job costs from its addition to its completion, one by one and by fifty, in requests and units."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from attrs import frozen

from batchstate.job_calls import Claiming, NewJob, Settling
from batchstate_dynamodb import TransactingDynamoDBStorage, create_table
from tests.adapters.dynamodb.conftest import TABLE, Table
from tests.adapters.dynamodb.fakes import Fakes
from tests.adapters.dynamodb.meter import Meter, spent
from tests.adapters.dynamodb.rules import Watch
from tests.servers.dynamo_servers import moto_in_process

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Count", "dynamodb"]

JOBS = 100
KEPT = 3_600_000


@frozen
class Count:
    """What a step costs for each job.

    Attributes:
        title: the step, and by how many jobs at a time.
        requests, reads, writes: requests, read units and write units a job.
    """

    title: str
    requests: float
    reads: float
    writes: float


def dynamodb() -> Iterator[Count]:
    """Count on moto, whose requests are weighed by the service's rules."""
    for together in (1, 50):
        with moto_in_process() as client:
            create_table(client, TABLE)
            table = Table(client, Watch(client), Fakes(client))
            yield from _counted(table, together)


def _counted(table: Table, together: int) -> Iterator[Count]:
    store = table.open(TransactingDynamoDBStorage, threads=1)
    store.add_jobs([NewJob("first", "1", "g")])
    meter = Meter(table)
    meter.start()
    total: Counter[str] = Counter()

    def count(step: str) -> Count:
        requests, reads, writes = spent(meter)
        counts = Counter(requests=sum(requests.values()), reads=reads, writes=writes)
        total.update(counts)
        return _a_job(f"dynamodb: {step} by {together}", counts)

    for start in range(0, JOBS, together):
        store.add_jobs([NewJob(f"job-{number}", '{"n":1}', "g") for number in range(start, start + together)])
    yield count("add")
    claims = [
        store.claim_jobs(Claiming(f"c-{start}", together, KEPT, "mark", "g")) for start in range(0, JOBS, together)
    ]
    yield count("claim")
    for claim in claims:
        if claim is None:
            raise AssertionError
        store.settle_jobs(claim.batch.id, [Settling(job.id, "complete") for job in claim.jobs], keep_done=KEPT)
    yield count("complete")
    yield _a_job(f"dynamodb: all of a job by {together}", total)


def _a_job(title: str, counts: Counter[str]) -> Count:
    return Count(title, counts["requests"] / JOBS, counts["reads"] / JOBS, counts["writes"] / JOBS)
