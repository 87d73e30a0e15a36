"""The DynamoDB adapter keeps the contract, on three emulators; with transactions where the emulator has them.

Emulators slow down with the size of a table, moto above all: the tests of large numbers take a
hundred rows and some here, so that no reading and no writing fits into one request, and not thousands.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from typing_extensions import override

from batchstate.storage import AtomicCreates, AtomicMoves
from batchstate.testing import ExplorerContract, Harness, JobContract, JobExplorerContract, StorageContract
from batchstate.wire import BatchRow
from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage, create_table
from batchstate_dynamodb.layout import MOST, Layout, item_key, row_item
from tests.adapters.dynamodb.rules import hold_to_rules
from tests.servers.available import Server, need
from tests.servers.dynamo_servers import DynamoEndpoint, moto_in_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from types_boto3_dynamodb import DynamoDBClient

_numbers = count(1)


class DynamoDBHarness(Harness):
    """A table of its own in an emulator, every request to which is held to the service's rules."""

    kind: ClassVar[type[DynamoDBStorage]] = DynamoDBStorage
    sees_rows = False
    scale = 120
    checked_every = 10
    examples = 5
    threads = 4
    schedules = 1

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        super().__init__()
        self.client = client
        self.table = table

    @override
    def open(self, queue: str = "q") -> DynamoDBStorage:
        return self.kind(self.table, queue, client=self.client, clock=self.clock, sleep=lambda _: None)

    @override
    def plant(self, queue: str, batch_id: str, values: Sequence[Any]) -> None:
        item = row_item(Layout(queue).row(batch_id), BatchRow._make(values))
        self.client.put_item(TableName=self.table, Item=item)

    @override
    def lose(self, queue: str, batch_id: str) -> None:
        self.client.delete_item(TableName=self.table, Key=item_key(Layout(queue).row(batch_id)))


class DynaliteHarness(DynamoDBHarness):
    """The same where sizes are counted as the service counts them; moto counts what an update replaces twice."""

    largest = MOST


class TransactingHarness(DynamoDBHarness):
    """The same with transactions."""

    kind = TransactingDynamoDBStorage
    capabilities = frozenset({AtomicMoves, AtomicCreates})


@pytest.fixture(scope="class")
def moto_in_this_process() -> Iterator[DynamoDBClient]:
    """Moto inside this process."""
    need(Server.MOTO, ours=True)
    with moto_in_process() as client:
        yield ruled(client)


@pytest.fixture(scope="class")
def moto_over_http(moto_server: DynamoEndpoint) -> DynamoDBClient:
    """Moto over HTTP."""
    return ruled(moto_server.client())


@pytest.fixture(scope="class")
def dynalite(dynalite_server: DynamoEndpoint) -> DynamoDBClient:
    """Dynalite."""
    return ruled(dynalite_server.client())


def ruled(client: DynamoDBClient) -> DynamoDBClient:
    """Hold a client's requests to the rules."""
    hold_to_rules(client)
    return client


class OneAtATime:
    """A client whose calls wait for each other, for moto.

    It looks and writes in two steps without a lock, and a cancelled transaction puts all its tables
    back to what they were when it began, whatever others wrote meanwhile.
    """

    def __init__(self, client: DynamoDBClient) -> None:
        self._client = client
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if name == "meta" or not callable(attribute):
            return attribute

        def call(**parameters: Any) -> Any:
            with self._lock:
                return attribute(**parameters)

        return call


@contextmanager
def on_a_table(kind: type[DynamoDBHarness], client: DynamoDBClient, *, one_at_a_time: bool = True) -> Iterator[Harness]:
    """Give a harness on a table for one test; making and dropping one takes less than emptying it.

    Args:
        kind: the harness.
        client: a client of the emulator.
        one_at_a_time: whether its calls wait for each other.
    """
    table = f"contract-{next(_numbers)}"
    create_table(client, table)
    # It has what a client has.
    yield kind(OneAtATime(client) if one_at_a_time else client, table)  # type: ignore[arg-type]
    client.delete_table(TableName=table)


class OneWayContract(StorageContract, ExplorerContract):
    """The contract with the storage as it is, where hiding its capabilities says nothing new."""

    @pytest.fixture
    @override
    def variant(self) -> str:
        return "fused"


class TransactingContract(StorageContract, ExplorerContract):
    """The contract of a storage whose hidden capabilities leave just the storage of the classes beside it."""

    @pytest.fixture(params=["fused", "mixed"])
    @override
    def variant(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


@pytest.mark.measured_elsewhere
class TestDynamoDBOnMotoInProcess(OneWayContract):
    """The contract on moto inside this process."""

    @pytest.fixture
    def harness(self, moto_in_this_process: DynamoDBClient) -> Iterator[Harness]:
        """Give a table."""
        with on_a_table(DynamoDBHarness, moto_in_this_process) as harness:
            yield harness


@pytest.mark.measured_elsewhere
class TestTransactingDynamoDBOnMotoInProcess(TransactingContract):
    """The contract with transactions on moto inside this process."""

    @pytest.fixture
    def harness(self, moto_in_this_process: DynamoDBClient) -> Iterator[Harness]:
        """Give a table."""
        with on_a_table(TransactingHarness, moto_in_this_process) as harness:
            yield harness


class JobHarness(TransactingHarness):
    """The same for jobs; each step of the state machine is followed by some thirty requests that look at it all."""

    scale = 60
    threads = 3
    steps = 100


@pytest.mark.measured_elsewhere
class TestDynamoDBJobsOnMotoInProcess(JobContract, JobExplorerContract):
    """The claim half's contract on moto inside this process."""

    @pytest.fixture
    def harness(self, moto_in_this_process: DynamoDBClient) -> Iterator[Harness]:
        """Give a table."""
        with on_a_table(JobHarness, moto_in_this_process) as harness:
            yield harness


class JobOverHTTPHarness(JobHarness):
    """The same where each request takes three times as long."""

    steps = 50


class TestDynamoDBJobsOnMoto(JobContract, JobExplorerContract):
    """The claim half's contract on moto over HTTP."""

    @pytest.fixture
    def harness(self, moto_over_http: DynamoDBClient) -> Iterator[Harness]:
        """Give a table."""
        with on_a_table(JobOverHTTPHarness, moto_over_http) as harness:
            yield harness


class TestDynamoDBOnMoto(OneWayContract):
    """The contract on moto over HTTP."""

    @pytest.fixture
    def harness(self, moto_over_http: DynamoDBClient) -> Iterator[Harness]:
        """Give a table."""
        with on_a_table(DynamoDBHarness, moto_over_http) as harness:
            yield harness


class TestTransactingDynamoDBOnMoto(OneWayContract):
    """The contract with transactions on moto over HTTP; mixed with three steps it is tried inside this process."""

    @pytest.fixture
    def harness(self, moto_over_http: DynamoDBClient) -> Iterator[Harness]:
        """Give a table."""
        with on_a_table(TransactingHarness, moto_over_http) as harness:
            yield harness


@pytest.mark.measured_elsewhere
class TestDynamoDBOnDynalite(OneWayContract):
    """The contract on dynalite, which knows no transactions."""

    @pytest.fixture
    def harness(self, dynalite: DynamoDBClient) -> Iterator[Harness]:
        """Give a table."""
        with on_a_table(DynaliteHarness, dynalite, one_at_a_time=False) as harness:
            yield harness
