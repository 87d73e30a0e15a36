"""What the service's and the client's errors mean: the one place that reads them.

An error is read by its code and, for a cancelled transaction, by the code of each of its reasons;
never by its text, which emulators word in their own way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botocore.exceptions import (
    BotoCoreError,
    ChecksumError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    TokenRetrievalError,
)
from botocore.exceptions import (
    ConnectionError as NoConnectionError,
)
from botocore.parsers import ResponseParserError

from batchstate.errors import InvalidValueError, StorageUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["CLIENT_ERRORS", "CONDITION_FAILED", "CancelledError", "ConditionFailedError", "Failure", "read_error"]

CONDITION_FAILED: Final = "ConditionalCheckFailed"
"""The code of a cancelled transaction's reason; a single write says the same with `Exception` at its end."""

_BUSY: Final = frozenset(
    {
        "InternalServerError",
        "InternalServerErrorException",
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
"""The codes that pass: too many requests, another transaction at the same item, a fault of the service."""

_REFUSED: Final = frozenset({"SerializationException", "ValidationError", "ValidationException"})
"""The codes of a request that will never be accepted."""

_SERVER_FAULT: Final = 500
_LOST: Final = (ChecksumError, HTTPClientError, NoConnectionError, ResponseParserError)
_LOCKED_OUT: Final = (
    CredentialRetrievalError,
    MetadataRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    TokenRetrievalError,
)
CLIENT_ERRORS: Final = (ClientError, BotoCoreError, ResponseParserError)
"""What the client raises."""


class ConditionFailedError(Exception):
    """The condition of a write did not hold.

    Attributes:
        item: the item that was met, where the backend returns it; `None` where it does not, or
            where there is none.
    """

    def __init__(self, item: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.item = item


class CancelledError(Exception):
    """A transaction was cancelled, and a condition that did not hold is among the reasons.

    Attributes:
        reasons: one for each item of the transaction, in its order.
    """

    def __init__(self, reasons: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self.reasons = reasons


class Failure(NamedTuple):
    """What a failed request means.

    Attributes:
        error: what to raise.
        passing: whether the same request may well succeed in a moment.
    """

    error: Exception
    passing: bool = False


def read_error(error: Exception, table: str) -> Failure:
    """Answer what `error`, a `CLIENT_ERRORS`, means, met by a request to `table`.

    The error answered is one of: `ConditionFailedError`, `CancelledError`;
    `StorageUnavailableError` for throttling, contention, outages, lacking rights and a table that
    is not there; `InvalidValueError` for a request that will never be accepted.
    """
    if isinstance(error, ClientError):
        return _read_answer(error, table)
    if isinstance(error, _LOST):
        return Failure(
            StorageUnavailableError(f"DynamoDB cannot be reached for table {table!r}: {error}"), passing=True
        )
    if isinstance(error, _LOCKED_OUT):
        return Failure(
            StorageUnavailableError(f"DynamoDB cannot be asked for table {table!r}: {error}; nothing was sent")
        )
    return Failure(InvalidValueError(f"the client refused a request to table {table!r}: {error}"))


def _read_answer(error: ClientError, table: str) -> Failure:
    response: Mapping[str, Any] = error.response
    code = str(response.get("Error", {}).get("Code", ""))
    message = response.get("Error", {}).get("Message") or response.get("message") or "it says no more"
    if code == f"{CONDITION_FAILED}Exception":
        return Failure(ConditionFailedError(response.get("Item") or None))
    if code == "TransactionCanceledException":
        return _read_cancellation(response, table)
    if code == "ResourceNotFoundException":
        return Failure(
            StorageUnavailableError(
                f"there is no table {table!r}, or it is not ready; create it with `batchstate storage init URL`. "
                "Nothing was written"
            )
        )
    if code in _BUSY or response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= _SERVER_FAULT:
        return Failure(
            StorageUnavailableError(f"DynamoDB is too busy for table {table!r}: {code}: {message}"), passing=True
        )
    if code in _REFUSED:
        return Failure(InvalidValueError(f"DynamoDB refused a request to table {table!r}: {code}: {message}"))
    return Failure(
        StorageUnavailableError(f"DynamoDB does not serve table {table!r}: {code}: {message}. Nothing was written")
    )


def _read_cancellation(response: Mapping[str, Any], table: str) -> Failure:
    reasons: Sequence[Mapping[str, Any]] = response.get("CancellationReasons") or ()
    codes = [str(reason.get("Code", "None")) for reason in reasons]
    refused = [reason for reason, code in zip(reasons, codes, strict=True) if code in _REFUSED]
    if refused:
        message = refused[0].get("Message", "it says no more")
        return Failure(InvalidValueError(f"DynamoDB refused a transaction on table {table!r}: {message}"))
    if CONDITION_FAILED in codes:
        return Failure(CancelledError(reasons))
    others = [code for code in codes if code != "None" and code not in _BUSY]
    what = ", ".join(sorted({code for code in codes if code != "None"})) or "it does not say why"
    text = f"DynamoDB cancelled a transaction on table {table!r}: {what}. Nothing was written"
    return Failure(StorageUnavailableError(text), passing=not others)
