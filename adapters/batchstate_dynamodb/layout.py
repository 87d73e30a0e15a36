"""The keys and items of the table: how each entity lies in it, and back.

The queue's name is percent-encoded where it holds the separator `#` or a `%`; whatever comes last
in a key stands as it is. So no two names ever share a key, and with names of up to 255 bytes a
partition key takes at most 1,036 bytes of the 2,048 allowed, a sort key 320 of 1,024.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from batchstate.entities import Association, MembershipRecord
from batchstate.errors import BatchStateError, CorruptRowError, TooLargeError, UnsupportedFormatError
from batchstate.moves import KEPT, LONGEST_TEXT
from batchstate.names import MAX_NAME_BYTES
from batchstate.wire import BatchRow, decode_batch, encode_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchstate.entities import Batch
    from batchstate.storage import Unreadable

__all__ = [
    "MOST",
    "QUEUES",
    "Filing",
    "Item",
    "Key",
    "Layout",
    "association_item",
    "encode_batches",
    "item_key",
    "key_of",
    "number",
    "read_number",
    "read_text",
    "record_item",
    "row_item",
    "text",
]

Item: TypeAlias = dict[str, dict[str, Any]]
"""An item as the low-level client has it: `{"version": {"N": "3"}}`."""

QUEUES: Final = "#queues"
"""The partition that lists the queues. A queue's own partitions never begin with `#`: no name is empty."""

_ROW: Final = "row"
_NUMBERS: Final = frozenset({"format", "version", "entered", "created_at", "updated_at", "retired_at"})
_LARGEST_ITEM: Final = 400 * 1024
_LONGEST_ESCAPE: Final = 6
"""Bytes that one character takes at most in a JSON text, as a control character does: six."""
_LONGEST_MOVE: Final = 2 * (_LONGEST_ESCAPE * LONGEST_TEXT + 2) + 2 * (2 * MAX_NAME_BYTES + 2) + 60
_REST: Final = 2048
"""Keys, attribute names, numbers, marks and the state's name take less than this."""
MOST: Final = _LARGEST_ITEM - KEPT * _LONGEST_MOVE - _REST
"""The bytes that a batch's requests and attributes may take together.

An item holds 400 KB. Twenty moves, each with the longest texts there can be, are set aside when a
batch is created, so that none ever grows too large later by its history, its marks or its state.
"""


class Key(NamedTuple):
    """The key of an item."""

    pk: str
    sk: str


class Filing(NamedTuple):
    """An entry of the bucket of retired rows.

    Attributes:
        at: when the row was retired, in milliseconds since the epoch.
        batch_id: the batch.
        mark: the mark of the swap that retired it. An entry whose mark the row does not carry was
            left by a swap that lost its race.
    """

    at: int
    batch_id: str
    mark: str

    @property
    def sk(self) -> str:
        """The sort key: entries are in the order of the instants."""
        return f"{max(self.at, 0):016d}:{self.batch_id}:{self.mark}"

    @classmethod
    def of(cls, sk: str) -> Filing:
        """Read a sort key. A batch's ID may have colons in it, a mark has none."""
        at, _, rest = sk.partition(":")
        batch_id, _, mark = rest.rpartition(":")
        return cls(int(at), batch_id, mark)


class Layout:
    """Where one queue's things are.

    Args:
        queue: the queue.
    """

    def __init__(self, queue: str) -> None:
        self.queue = queue
        escaped = queue.replace("%", "%25").replace("#", "%23")
        self.batches = f"{escaped}#batch#"
        self.records = f"{escaped}#state#"
        self.requests = f"{escaped}#request#"
        self._retired = f"{escaped}#retired#"

    def row(self, batch_id: str) -> Key:
        """The key of a batch's row."""
        return Key(self.batches + batch_id, _ROW)

    def bucket(self, state: str, shard: int) -> str:
        """The partition of one shard of a state's records."""
        return f"{self.records}{shard}#{state}"

    def attempts(self, request_id: str) -> str:
        """The partition of a request's associations."""
        return self.requests + request_id

    def retired(self, shard: int) -> str:
        """The partition of one shard of the retired rows."""
        return f"{self._retired}{shard}"

    def read_row(self, item: Item) -> Batch | Unreadable:
        """Answer the batch of a row's item, or the error that names it."""
        try:
            values = self._sound_row(item)
        except (KeyError, ValueError):
            values = self._any_row(item)
        try:
            return decode_batch(values, self.queue)
        except (CorruptRowError, UnsupportedFormatError) as error:
            return error

    def _sound_row(self, item: Item) -> tuple[object, ...]:
        """Answer the fields of a row as it should be, the quick way; raises `KeyError` or `ValueError` for another."""
        return (
            int(item["format"]["N"]),
            item["pk"]["S"][len(self.batches) :],
            int(item["version"]["N"]),
            item["state"]["S"],
            int(item["entered"]["N"]),
            int(item["created_at"]["N"]),
            int(item["updated_at"]["N"]),
            int(item["retired_at"]["N"]) if "retired_at" in item else None,
            item["marks"]["S"],
            item["moves"]["S"] if "moves" in item else "",
            item["requests"]["S"],
            item["attributes"]["S"],
        )

    def _any_row(self, item: Item) -> tuple[object, ...]:
        """Answer the fields of whatever lies where a row should be."""
        values: list[object] = []
        for name in BatchRow._fields:
            if name == "id":
                values.append(read_text(item, "pk").removeprefix(self.batches))
            elif name in _NUMBERS:
                values.append(read_number(item, name))
            else:
                values.append(read_text(item, name))
        return tuple(values)

    def read_record(self, item: Item) -> MembershipRecord:
        """Answer the record of its item; raises `CorruptRowError` where it is none."""
        state = item["pk"]["S"][len(self.records) :].partition("#")[2]
        batch_id, version = item["sk"]["S"], read_number(item, "version")
        if type(version) is not int:
            msg = f"the record of batch {batch_id!r} under {state!r} has no version; look at it with the console"
            raise CorruptRowError(msg, key=batch_id)
        return MembershipRecord(self.queue, state, batch_id, version)

    def read_association(self, item: Item) -> Association:
        """Answer the association of its item."""
        request_id = read_text(item, "pk").removeprefix(self.requests)
        return Association(self.queue, request_id, read_text(item, "sk"), read_text(item, "outcome"))


def text(value: str) -> dict[str, str]:
    """Answer the attribute value of a text."""
    return {"S": value}


def number(value: int) -> dict[str, str]:
    """Answer the attribute value of a number."""
    return {"N": str(value)}


def read_text(item: Item, name: str) -> str:
    """Answer a text of an item; `""`, which is never stored, where it has none of this name."""
    value = item.get(name, {}).get("S", "")
    return value if isinstance(value, str) else ""


def read_number(item: Item, name: str) -> int | str | None:
    """Answer a whole number of an item, `None` where it has none of this name, and the text where it is not whole."""
    value = item.get(name, {}).get("N")
    try:
        return None if value is None else int(value)
    except ValueError:
        return str(value)


def item_key(key: Key) -> Item:
    """Answer a key as the client takes it."""
    return {"pk": text(key.pk), "sk": text(key.sk)}


def key_of(item: Item) -> Key:
    """Answer the key of an item."""
    return Key(read_text(item, "pk"), read_text(item, "sk"))


def row_item(key: Key, row: BatchRow) -> Item:
    """Answer the item of a row; what is empty is left out."""
    item = item_key(key)
    for name, value in zip(BatchRow._fields, row, strict=True):
        if name == "id" or value is None or value == "":
            continue
        item[name] = number(value) if isinstance(value, int) else text(value)
    return item


def record_item(key: Key, version: int) -> Item:
    """Answer the item of a record."""
    return {**item_key(key), "version": number(version)}


def association_item(key: Key, outcome: str = "") -> Item:
    """Answer the item of an association."""
    return {**item_key(key), "outcome": text(outcome)} if outcome else item_key(key)


def encode_batches(batches: Sequence[Batch], queue: str) -> list[BatchRow | BatchStateError]:
    """Answer for each batch its row, or the error why it has none: what `encode_batch` raises, or its size."""
    answers: list[BatchRow | BatchStateError] = []
    for batch in batches:
        try:
            answers.append(_fitting(encode_batch(batch, queue)))
        except BatchStateError as error:
            answers.append(error)
    return answers


def _fitting(row: BatchRow) -> BatchRow:
    size = len(row.requests.encode()) + len(row.attributes.encode())
    if size > MOST:
        msg = (
            f"the requests and attributes of batch {row.id!r} take {size:,} bytes, and DynamoDB stores at most {MOST:,}"
            " of them beside the history; keep large values elsewhere and their address here"
        )
        raise TooLargeError(msg)
    return row
