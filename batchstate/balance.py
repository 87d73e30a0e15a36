"""Whether two kinds of rows agree, found by going through both once, in a memory that does not grow with them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from batchstate.listing import HYDRATED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batchstate.storage import Kind, Storage

__all__ = ["Balance", "pages_of_kind"]

_PANS: Final = 1 << 16
_MASK: Final = (1 << 64) - 1


class Balance:
    """Weighs the pairs that there should be against those that there are, such as requests and batches.

    Each pair has a weight, a hash of 64 bits, in one of 65,536 pans. What should be there is put in, what is there is
    taken out. A pan that ends empty had the same in both; only the pairs of the others need a look each. Whatever
    changes meanwhile, is met twice, or is there without need costs such looks, and nothing else.
    """

    def __init__(self) -> None:
        self._pans = array("Q", bytes(8 * _PANS))

    def put_in(self, one: str, other: str) -> None:
        """Put in a pair that should be there."""
        self._add(one, other, 1)

    def take_out(self, one: str, other: str) -> None:
        """Take out a pair that is there."""
        self._add(one, other, -1)

    @property
    def is_off(self) -> bool:
        """Whether anything differs."""
        return any(self._pans)

    def doubts(self, one: str, other: str) -> bool:
        """Answer whether a pair is to be looked at."""
        return self._pans[hash((one, other)) % _PANS] != 0

    def _add(self, one: str, other: str, sign: int) -> None:
        weight = hash((one, other))
        pan = weight % _PANS
        self._pans[pan] = (self._pans[pan] + sign * weight) & _MASK


def pages_of_kind(store: Storage, kind: Kind) -> Iterator[Sequence[object]]:
    """Go through all rows of a kind, a page at a time."""
    page = store.scan(kind, limit=HYDRATED)
    yield page.items
    while page.cursor is not None:
        page = store.scan(kind, page.cursor, limit=HYDRATED)
        yield page.items
