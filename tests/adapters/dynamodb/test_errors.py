"""Every error of the service and of its client becomes the one error of ours that says what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from batchstate.creation import create_batch
from batchstate.errors import (
    InvalidValueError,
    NotFoundError,
    StorageUnavailableError,
    TransitionIncompleteError,
    VersionMismatchError,
)
from batchstate.moves import Move
from batchstate.transition import swap_to, transition
from batchstate_dynamodb.layout import Layout, item_key
from batchstate_dynamodb.requests import TRIES
from tests.adapters.dynamodb.conftest import TABLE, new
from tests.adapters.dynamodb.fakes import cancellation, failure

if TYPE_CHECKING:
    from batchstate_dynamodb import DynamoDBStorage, TransactingDynamoDBStorage
    from tests.adapters.dynamodb.conftest import Table

PASSING = [
    "InternalServerError",
    "ProvisionedThroughputExceededException",
    "ReplicatedWriteConflictException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingException",
    "TransactionConflictException",
    "TransactionInProgressException",
]


@pytest.mark.parametrize("code", PASSING)
def test_what_passes_is_sent_again(plain: DynamoDBStorage, table: Table, code: str) -> None:
    """A write that the service is too busy for, or that meets another's transaction, is sent again after a wait."""
    batch = create_batch(plain, new())
    table.fakes.next("UpdateItem", failure(code), failure(code))

    assert transition(plain, batch, "testing").version == 2

    assert len(table.waits) == 2


@pytest.mark.parametrize("code", PASSING)
def test_what_does_not_pass_is_an_outage(plain: DynamoDBStorage, table: Table, code: str) -> None:
    """The same for ever ends after a bounded number of tries, each wait longer, as an error that may be retried."""
    batch = create_batch(plain, new())
    table.watch.forget()
    table.fakes.always("UpdateItem", failure(code))

    with pytest.raises(StorageUnavailableError, match=code) as caught:
        transition(plain, batch, "testing")

    assert caught.value.retryable
    assert table.watch.counts["UpdateItem"] == TRIES
    assert table.waits == sorted(set(table.waits))
    assert len(table.waits) == TRIES - 1


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="http://nowhere"),
        ConnectTimeoutError(endpoint_url="http://nowhere"),
        ReadTimeoutError(endpoint_url="http://nowhere"),
    ],
)
def test_an_unreachable_service_is_an_outage(plain: DynamoDBStorage, table: Table, error: Exception) -> None:
    """A service that cannot be reached is tried again, and then an error that may be retried, with its cause."""

    def fail(_: object) -> None:
        raise error

    table.fakes.always("GetItem", fail)

    with pytest.raises(StorageUnavailableError) as caught:
        plain.get_batches(["b"])

    assert caught.value.__cause__ is error
    assert len(table.waits) == TRIES - 1


def test_lacking_credentials_are_an_outage(plain: DynamoDBStorage, table: Table) -> None:
    """Credentials that cannot be had, for now, are nothing that a message should be dropped for; nor is waiting."""

    def fail(_: object) -> None:
        raise NoCredentialsError

    table.fakes.always("GetItem", fail)

    with pytest.raises(StorageUnavailableError, match="nothing was sent"):
        plain.get_batches(["b"])

    assert table.waits == []


@pytest.mark.parametrize("code", ["AccessDeniedException", "ExpiredTokenException", "UnrecognizedClientException"])
def test_lacking_rights_are_told_at_once(plain: DynamoDBStorage, table: Table, code: str) -> None:
    """What only somebody else can change is not tried again."""
    table.fakes.always("GetItem", failure(code))

    with pytest.raises(StorageUnavailableError, match=code):
        plain.get_batches(["b"])

    assert table.waits == []


def test_a_missing_table_says_how_to_make_it(plain: DynamoDBStorage, table: Table) -> None:
    """Without its table the error names the command that makes it."""
    table.client.delete_table(TableName=TABLE)

    with pytest.raises(StorageUnavailableError, match="batchstate storage init"):
        plain.get_batches(["b"])


def test_a_refused_request_is_permanent(plain: DynamoDBStorage, table: Table) -> None:
    """A request that will never be accepted is no outage: it is an error of the call and is not sent again."""
    table.fakes.always("GetItem", failure("ValidationException", "the key element does not match the schema"))

    with pytest.raises(InvalidValueError, match="does not match the schema") as caught:
        plain.get_batches(["b"])

    assert not caught.value.retryable
    assert table.waits == []


def test_a_refused_item_costs_the_others_nothing(plain: DynamoDBStorage, table: Table) -> None:
    """What the service refuses of one item is that item's outcome; the others are written."""
    batches = [create_batch(plain, new(name)) for name in ("a", "b", "c")]
    table.fakes.next("UpdateItem", None, failure("ValidationException"), None)
    swaps = [swap_to(batch, Move("queued", "testing", 2, 0)) for batch in batches]

    outcomes = plain.update_batches(swaps)

    assert [type(outcome) for outcome in outcomes] == [type(None), InvalidValueError, type(None)]


def test_a_request_that_the_client_refuses_is_permanent(plain: DynamoDBStorage, table: Table) -> None:
    """A request that the client itself refuses is an error of the call."""

    def fail(_: object) -> None:
        raise ParamValidationError(report="nonsense")

    table.fakes.always("GetItem", fail)

    with pytest.raises(InvalidValueError, match="nonsense"):
        plain.get_batches(["b"])


def test_a_failed_condition_with_its_row_costs_no_read(plain: DynamoDBStorage, table: Table) -> None:
    """A lost race is told from the row that the failed condition brings, without another request."""
    batch = create_batch(plain, new())
    transition(plain, batch, "testing")
    table.watch.forget()

    with pytest.raises(VersionMismatchError) as caught:
        transition(plain, batch, "failed")

    assert caught.value.actual == 2
    assert table.watch.counts == {"UpdateItem": 1}


def test_a_failed_condition_without_its_row_costs_one_read(plain: DynamoDBStorage, table: Table) -> None:
    """Where the backend does not return the row that was met, it is read once."""
    batch = create_batch(plain, new())
    transition(plain, batch, "testing")
    table.watch.forget()
    table.fakes.next("UpdateItem", failure("ConditionalCheckFailedException"))

    with pytest.raises(VersionMismatchError) as caught:
        transition(plain, batch, "failed")

    assert caught.value.actual == 2
    assert table.watch.counts == {"UpdateItem": 1, "GetItem": 1}


def test_a_condition_that_failed_on_no_row_is_not_found(either: DynamoDBStorage, table: Table) -> None:
    """Not-found comes from a row that is not there, and from nothing else."""
    batch = create_batch(either, new())
    table.client.delete_item(TableName=TABLE, Key=item_key(Layout("q").row("b")))

    with pytest.raises(NotFoundError):
        transition(either, batch, "testing")


@pytest.mark.parametrize(
    "codes",
    [
        ("None", "TransactionConflict", "None"),
        ("TransactionConflict", "None", "None"),
        ("ThrottlingError", "None", "TransactionConflict"),
        ("None", "ProvisionedThroughputExceeded", "None"),
    ],
)
def test_a_cancellation_that_passes_is_sent_again(
    transacting: TransactingDynamoDBStorage, table: Table, codes: tuple[str, ...]
) -> None:
    """A transaction that is cancelled for contention or throttling is sent again, and for ever it is an outage."""
    batch = create_batch(transacting, new())
    table.fakes.next("TransactWriteItems", cancellation(*codes))

    moved = transition(transacting, batch, "testing")

    assert moved.version == 2
    table.fakes.always("TransactWriteItems", cancellation(*codes))
    with pytest.raises(StorageUnavailableError, match="Nothing was written") as caught:
        transition(transacting, moved, "merging")
    assert not isinstance(caught.value, TransitionIncompleteError)


@pytest.mark.parametrize(
    "others", [("None", "None"), ("TransactionConflict", "None"), ("ConditionalCheckFailed", "None")]
)
def test_the_rows_condition_decides(
    transacting: TransactingDynamoDBStorage, table: Table, others: tuple[str, str]
) -> None:
    """Where the row's condition failed the race is lost, whatever else the transaction met."""
    batch = create_batch(transacting, new())
    transition(transacting, batch, "testing")
    met = table.client.get_item(TableName=TABLE, Key=item_key(Layout("q").row("b")), ConsistentRead=True)["Item"]
    table.watch.forget()
    table.fakes.next("TransactWriteItems", cancellation("ConditionalCheckFailed", *others, item=dict(met)))

    with pytest.raises(VersionMismatchError) as caught:
        transition(transacting, batch, "failed")

    assert caught.value.actual == 2
    assert table.watch.counts == {"TransactWriteItems": 1}


def test_a_records_condition_does_not_decide(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """A record that is there in a higher version stays, and the move is done all the same."""
    batch = create_batch(transacting, new())
    key = {"pk": {"S": Layout("q").bucket("testing", transacting.parts.shards.home("b"))}, "sk": {"S": "b"}}
    table.client.put_item(TableName=TABLE, Item={**key, "version": {"N": "9"}})

    assert transition(transacting, batch, "testing").version == 2

    assert {
        record.state: record.version for record in transacting.get_records([("testing", "b"), ("queued", "b")])
    } == {"testing": 9}


def test_a_records_condition_beside_contention(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """A record's failed condition beside another's contention neither loses the race nor the move."""
    batch = create_batch(transacting, new())
    table.fakes.next("TransactWriteItems", cancellation("None", "ConditionalCheckFailed", "TransactionConflict"))

    assert transition(transacting, batch, "testing").version == 2


def test_a_cancellation_for_what_will_never_do_is_permanent(
    transacting: TransactingDynamoDBStorage, table: Table
) -> None:
    """A transaction with an item that is refused is an error of that item, also beside a failed condition."""
    batch = create_batch(transacting, new())
    table.fakes.next("TransactWriteItems", cancellation("ConditionalCheckFailed", "ValidationError", "None"))

    with pytest.raises(InvalidValueError, match="ValidationError"):
        transition(transacting, batch, "testing")


def test_a_transaction_with_the_error_of_a_single_write(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """An emulator that reports a transaction's failed condition as a single write's is understood all the same."""
    batch = create_batch(transacting, new())
    transition(transacting, batch, "testing")
    table.fakes.next("TransactWriteItems", failure("ConditionalCheckFailedException"))

    with pytest.raises(VersionMismatchError) as caught:
        transition(transacting, batch, "failed")

    assert caught.value.actual == 2


def test_a_cancellation_without_reasons_is_an_outage(transacting: TransactingDynamoDBStorage, table: Table) -> None:
    """A cancellation that does not say why is no lost race: it may be sent again."""
    batch = create_batch(transacting, new())
    table.fakes.always("TransactWriteItems", failure("TransactionCanceledException"))

    with pytest.raises(StorageUnavailableError, match="does not say why"):
        transition(transacting, batch, "testing")
