"""Opening a storage by URL, and the client that it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from pydantic import BaseModel, ConfigDict, Field

from batchstate.errors import InvalidValueError
from batchstate.urls import read_options
from batchstate_dynamodb.requests import DEFAULT_THREADS
from batchstate_dynamodb.sharding import DEFAULT_SHARDS
from batchstate_dynamodb.storage import DynamoDBStorage
from batchstate_dynamodb.table import check_table, cloudformation, create_table, iam_policy
from batchstate_dynamodb.transactions import TransactingDynamoDBStorage

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from batchstate.times import Clock
    from batchstate.urls import StorageURL

__all__ = ["URLOptions", "client_of", "make_client", "open_url", "provision_url", "template_of"]

_CONNECT_SECONDS = 5
_READ_SECONDS = 10


class URLOptions(BaseModel):
    """The options of `dynamodb://table?…`.

    Attributes:
        region: the region; by default what the environment or the profile says.
        endpoint: another address than the service's own, such as an emulator's.
        profile: a profile of the AWS configuration.
        shards, other_shards, threads: as for `DynamoDBStorage`.
        transact: whether a move is one transaction: one round trip, at twice the write units.
        create: whether to create the table if there is none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    region: str | None = Field(default=None, min_length=1)
    endpoint: str | None = Field(default=None, pattern="^https?://")
    profile: str | None = Field(default=None, min_length=1)
    shards: int = DEFAULT_SHARDS
    other_shards: int | None = None
    threads: int = DEFAULT_THREADS
    transact: bool = False
    create: bool = False


def open_url(url: StorageURL, queue: str, *, clock: Clock | None = None) -> DynamoDBStorage:
    """Open what a URL names; raises as `open_storage` does."""
    options = read_options(url, URLOptions)
    table = table_of(url)
    kind = TransactingDynamoDBStorage if options.transact else DynamoDBStorage
    store = kind(
        table,
        queue,
        client=lambda: client_of(options),
        shards=options.shards,
        other_shards=options.other_shards,
        threads=options.threads,
        clock=clock,
    )
    if options.create:
        create_table(store.client, table)
    return store


def provision_url(url: StorageURL, *, recovery: bool) -> list[str]:
    """Create the table that a URL names if there is none; answer what was done or is wrong with it, a sentence each.

    Raises:
        InvalidValueError: the URL is wrong, or the service refuses the table's name.
        StorageUnavailableError: the service cannot be reached, or does not allow it.
    """
    table, options = table_of(url), read_options(url, URLOptions)
    client = client_of(options)
    try:
        created = create_table(client, table, recovery=recovery)
        done = [f"table {table!r} was created" if created else f"table {table!r} was there"]
        return [*done, *(["it has point-in-time recovery"] if recovery else []), *check_table(client, table)]
    finally:
        client.close()


def template_of(url: StorageURL, form: str) -> str:
    """Answer the template of the table that a URL names, or a worker's policy; raises `InvalidValueError`."""
    table, options = table_of(url), read_options(url, URLOptions)
    if form == "cloudformation":
        return cloudformation(table)
    if form == "iam":
        return iam_policy(table, region=options.region or "*")
    msg = f"a table can be described as cloudformation or as iam, not as {form!r:.40}"
    raise InvalidValueError(msg)


def table_of(url: StorageURL) -> str:
    """Answer the table that a URL names; raises `InvalidValueError` where it names none."""
    if not url.host or url.path not in ("", "/") or url.username or url.password:
        msg = "a table is named by a URL such as dynamodb://table?region=eu-west-1, without a user or a path"
        raise InvalidValueError(msg)
    return url.host


def client_of(options: URLOptions) -> DynamoDBClient:
    """Make the client that a URL's options ask for."""
    return make_client(
        region=options.region, endpoint=options.endpoint, profile=options.profile, threads=options.threads
    )


def make_client(
    *,
    region: str | None = None,
    endpoint: str | None = None,
    profile: str | None = None,
    threads: int = DEFAULT_THREADS,
) -> DynamoDBClient:
    """Make a low-level client with a connection for each thread, which leaves all sending again to us.

    Raises:
        InvalidValueError: there is no such profile, or no region.
    """
    config = Config(
        max_pool_connections=threads,
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    try:
        session = boto3.session.Session(profile_name=profile, region_name=region)
        client: DynamoDBClient = session.client("dynamodb", endpoint_url=endpoint, config=config)
    except (BotoCoreError, ValueError) as error:
        msg = f"no client for DynamoDB can be made: {error}"
        raise InvalidValueError(msg) from error
    return client
