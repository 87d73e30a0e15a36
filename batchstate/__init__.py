"""batchstate: batches that move through a lifecycle, on workers that crash, repeat and race."""

from batchstate.advance import advance
from batchstate.creation import create_batch, create_many
from batchstate.entities import Association, Batch, Found, History, MembershipRecord, Step
from batchstate.errors import (
    AlreadyExistsError,
    BatchStateError,
    ClaimLostError,
    CorruptRowError,
    DanglingRecordError,
    HandlerContractError,
    InvalidLifecycleError,
    InvalidNameError,
    InvalidTransitionError,
    InvalidValueError,
    NotFoundError,
    QueueMismatchError,
    StorageUnavailableError,
    TooLargeError,
    TransitionIncompleteError,
    UnsupportedFormatError,
    VersionMismatchError,
)
from batchstate.lifecycle import Lifecycle
from batchstate.listing import find_by_request_id, iter_by_states, list_by_states
from batchstate.moves import Move
from batchstate.queue import BatchQueue, open_queue
from batchstate.storage import AtomicCreates, AtomicMoves, Page, SnapshotListing, Storage, Swap
from batchstate.tidying import Purged, Reconciled, purge, reconcile, retire
from batchstate.transition import ensure_record, transition, transition_many
from batchstate.urls import open_storage

__all__ = [
    "AlreadyExistsError",
    "Association",
    "AtomicCreates",
    "AtomicMoves",
    "Batch",
    "BatchQueue",
    "BatchStateError",
    "ClaimLostError",
    "CorruptRowError",
    "DanglingRecordError",
    "Found",
    "HandlerContractError",
    "History",
    "InvalidLifecycleError",
    "InvalidNameError",
    "InvalidTransitionError",
    "InvalidValueError",
    "Lifecycle",
    "MembershipRecord",
    "Move",
    "NotFoundError",
    "Page",
    "Purged",
    "QueueMismatchError",
    "Reconciled",
    "SnapshotListing",
    "Step",
    "Storage",
    "StorageUnavailableError",
    "Swap",
    "TooLargeError",
    "TransitionIncompleteError",
    "UnsupportedFormatError",
    "VersionMismatchError",
    "advance",
    "create_batch",
    "create_many",
    "ensure_record",
    "find_by_request_id",
    "iter_by_states",
    "list_by_states",
    "open_queue",
    "open_storage",
    "purge",
    "reconcile",
    "retire",
    "transition",
    "transition_many",
]
