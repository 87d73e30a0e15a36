"""Every adapter keeps its promises in the interleavings that the explorer works out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.testing import ExplorerContract
from batchstate_sqlite import SQLiteDatabase
from tests.contract.test_dynamodb import DynamoDBHarness, on_a_table, watched
from tests.contract.test_memory import MemoryHarness
from tests.contract.test_redis import RedisHarness
from tests.contract.test_sqlite import FileHarness, SQLiteHarness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from types_boto3_dynamodb import DynamoDBClient

    from batchstate.testing import Harness
    from tests.servers.redis_servers import RedisEndpoint


class TestMemory(ExplorerContract):
    """The interleavings on memory."""

    schedules = 50

    @pytest.fixture
    def harness(self) -> MemoryHarness:
        """Open an empty store."""
        return MemoryHarness()


class TestSQLiteInMemory(ExplorerContract):
    """The interleavings on a SQLite database in memory."""

    @pytest.fixture
    def harness(self) -> Iterator[SQLiteHarness]:
        """Open an empty database."""
        harness = SQLiteHarness(SQLiteDatabase())
        yield harness
        harness.database.close()


class TestSQLiteFile(ExplorerContract):
    """The interleavings on a SQLite file."""

    schedules = 10

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[FileHarness]:
        """Open an empty file."""
        harness = FileHarness(tmp_path / "batches.db")
        yield harness
        harness.database.close()


class TestValkey(ExplorerContract):
    """The interleavings on a Valkey server."""

    schedules = 10

    @pytest.fixture
    def harness(self, valkey_server: RedisEndpoint) -> Iterator[RedisHarness]:
        """Take a prefix."""
        with valkey_server.client() as client:
            harness = RedisHarness(client)
            yield harness
            harness.clear()


class TestDynamoDB(ExplorerContract):
    """The interleavings on an emulator of DynamoDB, whose puts cannot see the row; emulators are slow."""

    schedules = 1

    @pytest.fixture
    def harness(self, moto_client: DynamoDBClient) -> Iterator[Harness]:
        """Make a table; every schedule has a queue of its own in it."""
        with on_a_table(DynamoDBHarness, watched(moto_client), one_at_a_time=False) as harness:
            yield harness
