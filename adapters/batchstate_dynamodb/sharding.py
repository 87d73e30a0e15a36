"""Shards: how a busy state's records are spread over several partitions.

One partition takes about 1,000 writes a second, and every move through a state writes two records
of it. A record's shard is a stable hash of its batch's ID, so both know where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from batchstate.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DEFAULT_SHARDS", "Shards"]

DEFAULT_SHARDS: Final = 4
_MOST: Final = 256


class Shards:
    """Over how many partitions the records of each state are spread.

    Args:
        count: where records are put, 1 to 256.
        other: the count that is being changed from, or to: records are looked for and deleted
            there as well.
    """

    def __init__(self, count: int, other: int | None = None) -> None:
        self.counts: Sequence[int] = tuple(dict.fromkeys(c for c in (count, other) if c is not None))
        for each in self.counts:
            if type(each) is not int or not 1 <= each <= _MOST:
                msg = f"shards must be an int from 1 to {_MOST}, not {each!r}"
                raise InvalidValueError(msg)
        self.count = count

    @property
    def all(self) -> range:
        """Every shard that may hold something."""
        return range(max(self.counts))

    def home(self, batch_id: str) -> int:
        """The shard where what belongs to this batch is put."""
        return _hash(batch_id) % self.count

    def places(self, batch_id: str) -> list[int]:
        """Every shard where something of this batch may be, its home first."""
        hashed = _hash(batch_id)
        return list(dict.fromkeys(hashed % count for count in self.counts))


def _hash(batch_id: str) -> int:
    return crc32(batch_id.encode())
