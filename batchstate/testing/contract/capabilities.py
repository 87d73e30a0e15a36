"""What an adapter says it can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.storage import Storage
from batchstate.testing.contract.base import Contract
from batchstate.testing.variants import CAPABILITIES

if TYPE_CHECKING:
    from batchstate.testing.harness import Harness


class Capabilities(Contract):
    """What an adapter says it can do."""

    def test_a_storage_is_bound_to_its_queue(self, store: Storage) -> None:
        """A storage says which queue it is bound to, in every way of working."""
        assert isinstance(store, Storage)
        assert store.queue == "q"

    def test_capabilities_are_those_declared(self, plain: Storage, harness: Harness) -> None:
        """A storage has the capabilities that its adapter declares and no others, so that none is lost silently."""
        assert {known for known in CAPABILITIES if isinstance(plain, known)} == harness.capabilities
