"""batchstate: batches that move through a lifecycle, on workers that crash, repeat and race."""

from batchstate.advance import advance
from batchstate.claims.claim import Claim, Part
from batchstate.claims.consumer import BatchConsumer
from batchstate.claims.holds import Hold
from batchstate.claims.methods import Attempt, JobSpec
from batchstate.claims.policy import Backoff, JobPolicy
from batchstate.claims.shaper import Shape
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
from batchstate.job_calls import GroupCounts, QueueCounts, Swept
from batchstate.job_storage import JobStorage
from batchstate.jobs import UNGROUPED, Dead, Delay, Done, Job, Retry, Settlement, Verdict
from batchstate.lifecycle import Lifecycle
from batchstate.listing import find_by_request_id, iter_by_states, list_by_states
from batchstate.moves import Move
from batchstate.queue import BatchQueue, open_queue
from batchstate.readymade import CLAIM, MERGE_QUEUE
from batchstate.storage import AtomicCreates, AtomicMoves, Page, SnapshotListing, Storage, Swap
from batchstate.tidying import Purged, Reconciled, purge, reconcile, retire
from batchstate.transition import ensure_record, transition, transition_many
from batchstate.urls import open_storage

__all__ = [
    "CLAIM",
    "MERGE_QUEUE",
    "UNGROUPED",
    "AlreadyExistsError",
    "Association",
    "AtomicCreates",
    "AtomicMoves",
    "Attempt",
    "Backoff",
    "Batch",
    "BatchConsumer",
    "BatchQueue",
    "BatchStateError",
    "Claim",
    "ClaimLostError",
    "CorruptRowError",
    "DanglingRecordError",
    "Dead",
    "Delay",
    "Done",
    "Found",
    "GroupCounts",
    "HandlerContractError",
    "History",
    "Hold",
    "InvalidLifecycleError",
    "InvalidNameError",
    "InvalidTransitionError",
    "InvalidValueError",
    "Job",
    "JobPolicy",
    "JobSpec",
    "JobStorage",
    "Lifecycle",
    "MembershipRecord",
    "Move",
    "NotFoundError",
    "Page",
    "Part",
    "Purged",
    "QueueCounts",
    "QueueMismatchError",
    "Reconciled",
    "Retry",
    "Settlement",
    "Shape",
    "SnapshotListing",
    "Step",
    "Storage",
    "StorageUnavailableError",
    "Swap",
    "Swept",
    "TooLargeError",
    "TransitionIncompleteError",
    "UnsupportedFormatError",
    "Verdict",
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
