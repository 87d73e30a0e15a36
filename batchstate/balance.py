"""Whether rows and associations agree, found by going through both once, in a memory that does not grow with them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from batchstate.listing import HYDRATED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batchstate.entities import Association, Batch
    from batchstate.storage import Kind, Storage

__all__ = ["AssociationBalance", "pages_of_kind"]

_PANS: Final = 1 << 16
_MASK: Final = (1 << 64) - 1


class AssociationBalance:
    """Weighs the associations that there should be against those that there are.

    Each pair of a request and a batch has a weight, a hash of 64 bits, in one of 65,536 pans. What should be there
    is put in, what is there is taken out. A pan that ends empty had the same in both; only the pairs of the others
    need a look each, which asks the store for one request at a time. Whatever changes meanwhile, is met twice, or
    leads to no batch costs such looks, and nothing else.
    """

    def __init__(self) -> None:
        self._pans = array("Q", bytes(8 * _PANS))

    def expect(self, batch: Batch) -> None:
        """Put in the associations that this batch should have."""
        for request_id in dict.fromkeys(batch.request_ids):
            self._add(request_id, batch.id, 1)

    def meet(self, association: Association) -> None:
        """Take out one that is there."""
        self._add(association.request_id, association.batch_id, -1)

    @property
    def is_off(self) -> bool:
        """Whether anything differs."""
        return any(self._pans)

    def doubtful(self, batch: Batch) -> list[str]:
        """Answer the requests of a batch that are to be looked at."""
        return [
            request_id
            for request_id in dict.fromkeys(batch.request_ids)
            if self._pans[hash((request_id, batch.id)) % _PANS]
        ]

    def _add(self, request_id: str, batch_id: str, sign: int) -> None:
        weight = hash((request_id, batch_id))
        pan = weight % _PANS
        self._pans[pan] = (self._pans[pan] + sign * weight) & _MASK


def pages_of_kind(store: Storage, kind: Kind) -> Iterator[Sequence[object]]:
    """Go through all rows of a kind, a page at a time."""
    page = store.scan(kind, limit=HYDRATED)
    yield page.items
    while page.cursor is not None:
        page = store.scan(kind, page.cursor, limit=HYDRATED)
        yield page.items
