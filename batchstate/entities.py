"""The things batchstate speaks of: batches with their history, the records that say where to look, the associations.

All are frozen. Instants are milliseconds since the epoch (UTC); `moment` of `batchstate.times`
makes a `datetime` of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import attrs
from attrs import field, frozen

from batchstate.marks import mark_at
from batchstate.moves import Move, read_moves

__all__ = ["Association", "Batch", "Found", "History", "MembershipRecord", "RowMemory", "Step", "StepOutcome"]

Attributes: TypeAlias = Mapping[str, Any]

StepOutcome: TypeAlias = Literal["moved", "already", "stale"]


class History(Sequence[Move]):
    """The last 20 moves of a batch, oldest first, decoded when somebody looks and not before.

    Compares equal to any other history with the same moves. A stored text that is no history raises
    `CorruptRowError` at the first look, which names the batch.
    """

    __slots__ = ("_decoded", "_where", "text")

    def __init__(self, text: str = "", where: str = "") -> None:
        self.text: str = text
        self._where = where
        self._decoded: tuple[Move, ...] | None = None

    def _moves(self) -> tuple[Move, ...]:
        if self._decoded is None:
            self._decoded = read_moves(self.text, self._where)
        return self._decoded

    @overload
    def __getitem__(self, index: int) -> Move: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Move, ...]: ...
    def __getitem__(self, index: int | slice) -> Move | tuple[Move, ...]:
        return self._moves()[index]

    def __len__(self) -> int:
        return self.text.count("\n") + 1 if self.text else 0

    def __iter__(self) -> Iterator[Move]:
        return iter(self._moves())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        return self.text == other.text or self._moves() == other._moves()

    def __hash__(self) -> int:
        return hash(len(self))

    def __repr__(self) -> str:
        return f"<History of {len(self)} moves>"


@frozen
class RowMemory:
    """What a batch remembers of the row it was read from, because the next write of that row needs it.

    Attributes:
        marks: the row's last marks, as `batchstate.marks.remember` writes them.
        request_ids: the row's requests, which no write may change.
        requests: the same as the row has them, so that a write need not encode them again.
    """

    marks: str
    request_ids: tuple[str, ...]
    requests: str


@frozen
class Batch:
    """A group of requests on one attempt through the lifecycle, as one row tells of it.

    Attributes:
        id: names the batch within its queue; never used again, also after a purge.
        queue: the queue it belongs to.
        state: the state it is in.
        version: 1 at creation, one more on every change of the row.
        entered: the version at which it entered its present state: what a message carries to say
            which move it asks for.
        request_ids: the requests it is an attempt at; they never change.
        attributes: yours, a JSON object.
        history: the last 20 moves, oldest first.
        created_at: when the row was made.
        updated_at: when it was last written.
        retired_at: when it was taken out of the queue, else `None`.
        memory: what the row's next write needs to know of it; `None` for a batch that was not read
            from a store. It is neither compared nor shown.
    """

    id: str
    queue: str
    state: str
    version: int = 1
    entered: int = 1
    request_ids: tuple[str, ...] = ()
    attributes: dict[str, Any] = field(factory=dict, hash=False)
    history: History = field(factory=History, hash=False)
    created_at: int = 0
    updated_at: int = 0
    retired_at: int | None = None
    memory: RowMemory | None = field(default=None, eq=False, repr=False)

    @property
    def marks(self) -> str:
        """The marks the row remembers, `""` for a batch that was not read from a store."""
        return self.memory.marks if self.memory is not None else ""

    @property
    def mark(self) -> str:
        """The mark of the write that made this version of the row, `""` where it is not known."""
        return mark_at(self.marks, self.version) or ""

    def with_attributes(self, update: Attributes) -> Batch:
        """Answer this batch with `update` merged over its attributes, key by key, not deeply."""
        return attrs.evolve(self, attributes={**self.attributes, **update})


@frozen
class MembershipRecord:
    """Says: look at this batch when asked for this state. Advisory, the batch's own row decides.

    Attributes:
        queue: the queue.
        state: the state it is filed under.
        batch_id: the batch to look at.
        version: the batch's version when it was filed; the fence of put and delete.
    """

    queue: str
    state: str
    batch_id: str
    version: int


@frozen
class Association:
    """This batch is an attempt at this request.

    Attributes:
        queue: the queue.
        request_id: the request.
        batch_id: the attempt.
        outcome: what became of the request in it: `""` until it is known.
    """

    queue: str
    request_id: str
    batch_id: str
    outcome: str = ""


class Step(NamedTuple):
    """What `advance` did.

    Attributes:
        batch: the row as it is now.
        outcome: `"moved"` by this call; `"already"` in the state asked for, its record repaired;
            `"stale"` where the batch has gone elsewhere, so that the message is to be dropped.
    """

    batch: Batch
    outcome: StepOutcome


class Found(NamedTuple):
    """Every attempt at a request.

    Attributes:
        batches: the attempts, ordered by ID, retired ones too.
        stale: how many associations led nowhere: their creation never came to its end, or lost.
    """

    batches: tuple[Batch, ...]
    stale: int
