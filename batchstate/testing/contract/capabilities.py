"""A storage as such: its queue, its capabilities, its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.storage import Storage
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import made, row
from batchstate.testing.variants import CAPABILITIES

if TYPE_CHECKING:
    from batchstate.testing.harness import Harness

__all__ = ["Capabilities"]


class Capabilities(Contract):
    """A storage as such: its queue, its capabilities, its end."""

    def test_a_storage_is_bound_to_its_queue(self, store: Storage) -> None:
        """A storage says which queue it is bound to, in every way of working."""
        assert isinstance(store, Storage)
        assert store.queue == "q"

    def test_capabilities_are_those_declared(self, plain: Storage, harness: Harness) -> None:
        """A storage has the capabilities that its adapter declares and no others, so that none is lost silently."""
        assert {known for known in CAPABILITIES if isinstance(plain, known)} == harness.capabilities

    def test_capabilities_can_be_hidden(self, steps: Storage) -> None:
        """A storage that takes the three steps shows no capability."""
        assert not any(isinstance(steps, known) for known in CAPABILITIES)

    def test_closing_twice_is_harmless(self, plain: Storage) -> None:
        """A storage may be closed twice, and once more as a context manager."""
        plain.close()
        plain.close()

    def test_a_storage_is_a_context_manager(self, opened_plain: Opener) -> None:
        """Leaving a storage closes it, and what it wrote is there for the next."""
        with opened_plain() as store:
            batch = made(store)

        assert row(opened_plain()) == batch

    def test_closing_one_leaves_the_others_open(self, opened_plain: Opener) -> None:
        """Closing one storage of a store closes no other."""
        first, second = opened_plain(), opened_plain()
        batch = made(first)

        first.close()

        assert row(second) == batch
