"""The history that a row keeps of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.creation import create_batch
from batchstate.errors import CorruptRowError
from batchstate.listing import list_by_states
from batchstate.moves import Move
from batchstate.testing.contract.base import Contract
from batchstate.testing.contract.given import made, new, plant, row, walked
from batchstate.testing.soundness import leaves
from batchstate.tidying import retire
from batchstate.transition import transition

if TYPE_CHECKING:
    from batchstate.storage import Storage
    from batchstate.testing.harness import Harness

__all__ = ["Histories"]


class Histories(Contract):
    """What the history of a batch tells."""

    def test_each_move_is_told_in_the_swap_it_tells_of(self, store: Storage, harness: Harness) -> None:
        """A batch's history is its moves, oldest first: from where, to where, at which version, when, by whom, why."""
        clock = harness.clock
        start = clock()
        batch = create_batch(store, new(), by="planner", why="", clock=clock)
        clock.advance("1s")
        batch = transition(store, batch, "testing", by="ci-3", why="all there", clock=clock)
        clock.advance("1s")
        transition(store, batch, "testing", update={"n": 1}, clock=clock)

        assert list(row(store).history) == [
            Move(None, "queued", 1, start, "planner", ""),
            Move("queued", "testing", 2, start + 1000, "ci-3", "all there"),
            Move("testing", "testing", 3, start + 2000, "", ""),
        ]

    def test_twenty_moves_are_kept(self, store: Storage) -> None:
        """A row keeps its last 20 moves; older ones go, and those kept stay in order."""
        batch = walked(store, *["queued", "testing"] * 13)

        assert len(row(store).history) == 20
        assert [move.version for move in row(store).history] == list(range(7, 27))
        assert row(store).history == batch.history

    def test_by_and_why_are_cut_at_a_thousand_characters(self, store: Storage) -> None:
        """A longer text is cut to 1,000 characters, and ends so that one sees it; one of 1,000 stays whole."""
        batch = transition(store, made(store), "testing", by="x" * 1000, why="é" * 1001)

        move = row(store).history[-1]
        assert move.by == "x" * 1000
        assert move.why == "é" * 999 + "…"
        assert row(store) == batch

    def test_any_text_may_stand_in_by_and_why(self, store: Storage) -> None:
        """Quotes, line breaks, control characters and emoji in `by` and `why` come back as they went in."""
        text = "\"'\\ \n\r\t\x00\x1f\x7f [1, {}] | : é e\u0301 \u2028 🙂"
        batch = transition(store, made(store), "testing", by=text, why=text)
        batch = transition(store, batch, "merging", by="next")

        assert [(move.by, move.why) for move in row(store).history[1:]] == [(text, text), ("next", "")]

    def test_retirement_is_told_too(self, store: Storage) -> None:
        """The last move of a retired batch is its retirement, into the state it was in."""
        retire(store, walked(store, "queued", "failed"), by="tidier")

        last = row(store).history[-1]
        assert (last.source, last.to, last.version, last.by, last.why) == ("failed", "failed", 3, "tidier", "retired")

    @leaves("broken history")
    def test_a_broken_history_costs_nobody_who_does_not_look(self, store: Storage, harness: Harness) -> None:
        """A history that cannot be read is told of when somebody looks, by the batch's ID, and stops nothing else."""
        plant(harness, made(store), moves="no history")

        [batch] = list_by_states(store, ["queued"])
        with pytest.raises(CorruptRowError) as caught:
            list(batch.history)

        assert caught.value.key == "b"
        assert transition(store, batch, "testing").state == "testing"
