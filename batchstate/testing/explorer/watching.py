"""What a listing must show: the batches that could be seen at every instant from its first call to its last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from batchstate.entities import Batch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batchstate.testing.explorer.world import World

__all__ = ["Due", "Watch"]


@frozen
class Due:
    """What a listing owes so far.

    Attributes:
        batches: the IDs of those that it must show.
        moves: the moves of whose steps some fell within it.
    """

    batches: frozenset[str]
    moves: frozenset[tuple[int, int]] = frozenset()


NOTHING = Due(frozenset())
"""Nothing is owed any more."""


@frozen
class Watch:
    """Holds a listing against the instants at which it was made.

    Attributes:
        states: the states it asks for.
        complete: whether it also reads the states that can precede them. Without, a batch that is
            filed only under an earlier state is not owed.
        most_moves: if steps of more moves than that fall within the listing, it owes nothing;
            `None` for any number.
    """

    states: frozenset[str]
    complete: bool = False
    most_moves: int | None = None

    def begin(self, world: World) -> Due:
        """Answer what a listing owes that begins now."""
        return Due(self._visible(world))

    def step(self, due: Due, world: World, move: tuple[int, int]) -> Due:
        """Answer what it owes after a step of `move`, which left the store as `world` shows."""
        moves = due.moves if self.most_moves is None else due.moves | {move}
        batches = due.batches & self._visible(world)
        if not batches or (self.most_moves is not None and len(moves) > self.most_moves):
            return NOTHING
        return Due(batches, moves)

    def missing(self, due: Due, result: object) -> str | None:
        """Answer what is owed and not in `result`, a collection of batches."""
        shown: Iterable[object] = result if isinstance(result, (list, tuple)) else ()
        missed = sorted(due.batches - {batch.id for batch in shown if isinstance(batch, Batch)})
        if not missed:
            return None
        return f"the listing of {', '.join(sorted(self.states))} misses batch {missed[0]}, which was there throughout"

    def _visible(self, world: World) -> frozenset[str]:
        filed = {record.batch_id for record in world.records if self.complete or record.state in self.states}
        return frozenset(batch.id for batch in world.live if batch.state in self.states and batch.id in filed)
