"""A table in moto inside the process, watched, and storages on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from batchstate.entities import Batch
from batchstate.lifecycle import Lifecycle
from batchstate.testing import ManualClock
from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage, create_table
from tests.adapters.dynamodb.fakes import Fakes
from tests.adapters.dynamodb.rules import Watch

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

TABLE = "batches"
FLOW = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")

Kind = TypeVar("Kind", bound=DynamoDBStorage)


@dataclass(frozen=True)
class Table:
    """A table of its own for a test.

    Attributes:
        client: of moto inside this process; every request is held to the service's rules.
        watch: what was sent.
        fakes: what is answered by hand.
        clock: the clock of the storages.
        waits: how long the storages waited before they sent something again.
    """

    client: DynamoDBClient
    watch: Watch
    fakes: Fakes
    clock: ManualClock = field(default_factory=ManualClock)
    waits: list[float] = field(default_factory=list)

    def open(self, kind: type[Kind], queue: str = "q", **options: Any) -> Kind:
        """Open a storage."""
        settings: dict[str, Any] = {"client": self.client, "clock": self.clock, "sleep": self.waits.append, **options}
        return kind(TABLE, queue, **settings)

    def items(self) -> list[dict[str, Any]]:
        """Everything in the table."""
        pages = self.client.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
        return [dict(item) for page in pages for item in page["Items"]]

    def held(self) -> list[tuple[str, str]]:
        """The keys of everything in the table, sorted."""
        return sorted((item["pk"]["S"], item["sk"]["S"]) for item in self.items())


@pytest.fixture
def table(moto_client: DynamoDBClient) -> Table:
    """An empty table."""
    create_table(moto_client, TABLE)
    return Table(moto_client, Watch(moto_client), Fakes(moto_client))


@pytest.fixture
def plain(table: Table) -> DynamoDBStorage:
    """A storage that takes three steps. It has one thread: moto inside the process has no locks."""
    return table.open(DynamoDBStorage, threads=1)


@pytest.fixture
def transacting(table: Table) -> TransactingDynamoDBStorage:
    """A storage with transactions."""
    return table.open(TransactingDynamoDBStorage, threads=1)


@pytest.fixture(params=[DynamoDBStorage, TransactingDynamoDBStorage], ids=["three steps", "transactions"])
def either(table: Table, request: pytest.FixtureRequest) -> DynamoDBStorage:
    """A storage of the one kind and of the other."""
    kind: type[DynamoDBStorage] = request.param
    return table.open(kind, threads=1)


def new(batch_id: str = "b", *requests: str, state: str = "queued", **attributes: Any) -> Batch:
    """Answer a batch that is not stored yet, of two requests unless said."""
    return Batch(batch_id, "q", state, request_ids=requests or ("r-1", "r-2"), attributes=attributes)
