"""The contract of a storage, one module a subject; `StorageContract` inherits them all."""

from batchstate.testing.contract.advancing import Advancing, AdvancingByEntered, AdvancingBySource
from batchstate.testing.contract.associations import Associations, Finding
from batchstate.testing.contract.capabilities import Capabilities
from batchstate.testing.contract.creation import Creation, PrimitiveCreation
from batchstate.testing.contract.history import Histories
from batchstate.testing.contract.iterating import Iterating
from batchstate.testing.contract.listing import Listing, ListingProblems, ListingWhileBatchesMove
from batchstate.testing.contract.many import ManyTransitions
from batchstate.testing.contract.names import Names, RefusedNames
from batchstate.testing.contract.purging import Deleting, Purging
from batchstate.testing.contract.queues import Queues, Scanning
from batchstate.testing.contract.racing import AnyOrder, Threads
from batchstate.testing.contract.reconciling import Reconciling
from batchstate.testing.contract.records import Paging, Records
from batchstate.testing.contract.retiring import Retired, Retiring
from batchstate.testing.contract.swaps import Marks, Swaps, WholeMoves
from batchstate.testing.contract.transitions import Transitions
from batchstate.testing.contract.unfinished import Repair, UnfinishedTransitions
from batchstate.testing.contract.values import NothingShared, RefusedValues, Values

__all__ = ["StorageContract"]


class StorageContract(
    Capabilities,
    Names,
    RefusedNames,
    Values,
    RefusedValues,
    NothingShared,
    Creation,
    PrimitiveCreation,
    Swaps,
    Marks,
    WholeMoves,
    Records,
    Paging,
    Associations,
    Finding,
    Transitions,
    UnfinishedTransitions,
    Repair,
    ManyTransitions,
    AdvancingBySource,
    AdvancingByEntered,
    Advancing,
    Histories,
    Listing,
    ListingProblems,
    ListingWhileBatchesMove,
    Iterating,
    Reconciling,
    Retiring,
    Retired,
    Purging,
    Deleting,
    Queues,
    Scanning,
    Threads,
    AnyOrder,
):
    """Every promise of `batchstate.storage.Storage` and of the functions over it, for one adapter.

    Inherit it in a class whose name begins with `Test` and give the fixture `harness`.
    """
