"""The errors: one small tree, each saying what is known about the store afterwards.

`retryable` tells a consumer what to do with the message in hand: `True` means that the same call
may well succeed later, so let the message come again; `False` means that it will fail again until
somebody changes something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from batchstate.entities import Batch

__all__ = [
    "AlreadyExistsError",
    "BatchStateError",
    "ClaimLostError",
    "CorruptRowError",
    "DanglingRecordError",
    "HandlerContractError",
    "InvalidLifecycleError",
    "InvalidNameError",
    "InvalidTransitionError",
    "InvalidValueError",
    "NotFoundError",
    "QueueMismatchError",
    "StorageUnavailableError",
    "TooLargeError",
    "TransitionIncompleteError",
    "UnsupportedFormatError",
    "VersionMismatchError",
]


class BatchStateError(Exception):
    """Something went wrong in batchstate."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])


class InvalidValueError(BatchStateError, ValueError):
    """A value cannot be stored or makes no sense here. Nothing was written."""


class InvalidNameError(InvalidValueError):
    """A name is empty, too long or has characters that no name may have. Nothing was written."""


class TooLargeError(InvalidValueError):
    """The backend cannot hold an item of this size. Nothing was written."""


class QueueMismatchError(InvalidValueError):
    """An entity of one queue was given to the storage of another. Nothing was written."""


class InvalidLifecycleError(BatchStateError):
    """The lifecycle's definition is unsound, or the call needs a lifecycle that says more. Nothing was written."""


class InvalidTransitionError(BatchStateError):
    """The lifecycle does not allow this move, or the batch is retired. Nothing was written."""


class UnsupportedFormatError(BatchStateError):
    """The store or a row in it was written by a newer batchstate. Nothing was written; upgrade this program."""


class CorruptRowError(BatchStateError):
    """A stored row is not what batchstate writes. It was left as it is.

    Attributes:
        key: the batch's ID, or what else names the row.
    """

    def __init__(self, message: str | None = None, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class NotFoundError(BatchStateError):
    """There is no such row in this queue. Nothing was written."""


class DanglingRecordError(BatchStateError):
    """A membership record names a batch that has no row, which no crash of ours leaves behind.

    Attributes:
        state: the state the record is filed under.
        batch_id: the batch it names.
    """

    def __init__(self, message: str | None = None, *, state: str = "", batch_id: str = "") -> None:
        super().__init__(message)
        self.state = state
        self.batch_id = batch_id


class AlreadyExistsError(BatchStateError):
    """A batch of this ID with other requests exists. The stored one was neither changed nor repaired.

    Attributes:
        current: the row that was met.
    """

    def __init__(self, message: str | None = None, *, current: Batch | None = None) -> None:
        super().__init__(message)
        self.current = current


class VersionMismatchError(BatchStateError):
    """The row is not at your version. No record was touched by this call.

    Attributes:
        batch_id: the batch.
        expected: the version that the caller held.
        current: the row that the failed compare met, where the backend returns it.
        applied: `False` where the row remembers another's write at the version we wanted to write;
            `None` where it no longer remembers that far back, so that a re-send unseen by us may
            have been applied and overtaken.
    """

    retryable = True

    def __init__(
        self,
        message: str | None = None,
        *,
        batch_id: str = "",
        expected: int = 0,
        current: Batch | None = None,
        applied: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.batch_id = batch_id
        self.expected = expected
        self.current = current
        self.applied = applied

    @property
    def actual(self) -> int | None:
        """The version the failed compare saw; `None` where unknown, or where only the history behind it differs."""
        if self.current is None or self.current.version == self.expected:
            return None
        return self.current.version


class TransitionIncompleteError(BatchStateError):
    """The batch moved, but its records were not brought up to date. Redelivery, or `ensure_record`, repairs it.

    Attributes:
        batch: the batch as last successfully written.
    """

    retryable = True

    def __init__(self, message: str | None = None, *, batch: Batch | None = None) -> None:
        super().__init__(message)
        self.batch = batch


class StorageUnavailableError(BatchStateError):
    """The store cannot be reached or is too busy. Whether the write was applied is unknown unless the text says."""

    retryable = True


class ClaimLostError(BatchStateError):
    """The claim no longer holds what the call is about. Nothing was changed by this call."""


class HandlerContractError(BatchStateError):
    """The handler's answer cannot be read as verdicts. The jobs without a recorded verdict were released uncharged."""
