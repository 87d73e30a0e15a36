"""Storages that do the same in another way, so that the ways can be tried one by one and beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from batchstate.storage import AtomicCreates, AtomicMoves, SnapshotListing
from batchstate.three_steps import ThreeSteps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.entities import Batch, MembershipRecord
    from batchstate.storage import Outcome, Page, Storage, Swap

__all__ = ["CAPABILITIES", "alternating"]

CAPABILITIES: tuple[type, ...] = (AtomicMoves, AtomicCreates, SnapshotListing)
"""All optional protocols that the core knows how to use."""


def alternating(store: Storage) -> Storage:
    """Answer a storage that does every second move, creation and listing in one step, where `store` has one for it.

    For one thread at a time.
    """
    return _class_with(_own(store))(store)


def _own(store: Storage) -> frozenset[type]:
    return frozenset(known for known in CAPABILITIES if isinstance(store, known))


class _Alternating(ThreeSteps):
    """What it can do is seen from its class, so it changes its class whenever a capability was used, or missed."""

    _shown: frozenset[type] = frozenset()

    def _turn(self, capability: type) -> None:
        self.__class__ = _class_with(self._shown ^ (_own(self._store) & {capability}))

    def update_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        self._turn(AtomicMoves)
        return self._store.update_batches(swaps)

    def create_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        self._turn(AtomicCreates)
        return self._store.create_batches(batches)

    def list_records(self, state: str, cursor: str | None = None, *, limit: int = 500) -> Page[MembershipRecord]:
        self._turn(SnapshotListing)
        return self._store.list_records(state, cursor, limit=limit)


class _Moving(_Alternating):
    def move_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        self._turn(AtomicMoves)
        return cast("AtomicMoves", self._store).move_batches(swaps)


class _Creating(_Alternating):
    def create_whole(self, batches: Sequence[Batch]) -> list[Outcome]:
        self._turn(AtomicCreates)
        return cast("AtomicCreates", self._store).create_whole(batches)


class _Listing(_Alternating):
    def list_records_of(self, states: Sequence[str]) -> list[MembershipRecord] | None:
        self._turn(SnapshotListing)
        return cast("SnapshotListing", self._store).list_records_of(states)


_PARTS: dict[type, type[_Alternating]] = {AtomicMoves: _Moving, AtomicCreates: _Creating, SnapshotListing: _Listing}
_classes: dict[frozenset[type], type[_Alternating]] = {}


def _class_with(shown: frozenset[type]) -> type[_Alternating]:
    if shown not in _classes:
        bases = tuple(part for capability, part in _PARTS.items() if capability in shown) or (_Alternating,)
        _classes[shown] = type("_Alternating", bases, {"_shown": shown})
    return _classes[shown]
