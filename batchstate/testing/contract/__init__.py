"""The contract of a storage, one module a subject; `StorageContract` inherits them all."""

from batchstate.testing.contract.capabilities import Capabilities
from batchstate.testing.contract.creation import Creation, PrimitiveCreation

__all__ = ["StorageContract"]


class StorageContract(
    Capabilities,
    Creation,
    PrimitiveCreation,
):
    """Every promise of `batchstate.storage.Storage` and of the functions over it, for one adapter.

    Inherit it in a class whose name begins with `Test` and give the fixture `harness`.
    """
