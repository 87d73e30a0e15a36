"""Going through many batches, a page at a time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.errors import InvalidValueError
from batchstate.listing import iter_by_states, list_by_states
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import LINE, LOOP, crowd, made, row
from batchstate.testing.contract.given import record as membership
from batchstate.testing.faults import record
from batchstate.testing.soundness import leaves
from batchstate.transition import transition

if TYPE_CHECKING:
    from batchstate.storage import Storage

__all__ = ["Iterating"]


class Iterating(Contract):
    """What `iter_by_states` does."""

    @leaves("stale record")
    @pytest.mark.parametrize("page", [1, 2, 7, 500])
    def test_the_same_batches_as_a_listing(self, store: Storage, page: int) -> None:
        """Whatever the size of a page, the batches are those of `list_by_states`, each once."""
        for state in ("queued", "testing", "failed"):
            crowd(store, [f"{state}-{number}" for number in range(5)], state)
        store.put_records([membership("queued", 1, f"testing-{number}") for number in range(5)])

        for lifecycle in (LINE, None):
            asked = ["testing", "queued"]
            found = list(iter_by_states(store, asked, lifecycle=lifecycle, page=page))
            assert sorted(batch.id for batch in found) == sorted(
                batch.id for batch in list_by_states(store, asked, lifecycle=lifecycle)
            )
            assert len(found) == 10

    def test_a_page_at_a_time_is_held(self, opened: Opener) -> None:
        """Rows are loaded a page at a time, as the caller takes them, and no more than was asked for in a call."""
        crowd(opened(), [f"b-{number:02}" for number in range(40)])
        notes = record()
        batches = iter_by_states(opened("q", notes), ["queued"], lifecycle=LINE, page=4)
        assert notes.methods == []

        list(islice(batches, 1))
        loaded = [len(call.args[0]) for call in notes.calls if call.method == "get_batches"]
        assert sum(loaded) <= 4

        assert len(list(batches)) == 39
        sizes = [len(call.args[0]) for call in notes.calls if call.method == "get_batches"]
        assert sum(sizes) == 40
        assert max(sizes) <= 4

    def test_states_come_old_before_new(self, store: Storage) -> None:
        """Batches come bucket by bucket in the lifecycle's order."""
        for state in ("merged", "testing", "queued"):
            crowd(store, [f"{state}-{number}" for number in range(3)], state)

        found = [
            batch.state for batch in iter_by_states(store, ["merged", "queued", "testing"], lifecycle=LINE, page=2)
        ]

        assert found == ["queued"] * 3 + ["testing"] * 3 + ["merged"] * 3

    def test_a_batch_that_moves_meanwhile_may_come_again_in_its_newer_version(self, store: Storage) -> None:
        """A batch that moves forward after it was given may be given again, as it is then, and never as it was."""
        made(store, "a"), made(store, "b")
        seen = []
        for batch in iter_by_states(store, ["queued", "testing"], lifecycle=LINE, page=1):
            seen.append((batch.id, batch.version))
            if batch.version == 1:
                transition(store, batch, "testing")

        assert [number for number, _ in enumerate(seen) if seen.count(seen[number]) > 1] == []
        assert {name for name, _ in seen} == {"a", "b"}

    def test_on_a_cycle_each_comes_once(self, store: Storage) -> None:
        """Where the buckets are read twice, a batch that stays where it is comes once."""
        for state in ("running", "waiting"):
            crowd(store, [f"{state}-{number}" for number in range(3)], state)

        found = [batch.id for batch in iter_by_states(store, ["running", "waiting"], lifecycle=LOOP, page=2)]

        assert sorted(found) == sorted(set(found))
        assert len(found) == 6

    def test_batches_that_others_move_on_while_one_works_are_not_missed(self, store: Storage) -> None:
        """While each batch given moves another one on, all are given."""
        names = [f"b-{number:02}" for number in range(12)]
        crowd(store, names)
        behind = list(names)
        seen = set()
        for batch in iter_by_states(store, ["queued", "testing", "merging"], lifecycle=LINE, page=3):
            seen.add(batch.id)
            if behind:
                transition(store, row(store, behind.pop()), "testing")

        assert seen == set(names)

    @pytest.mark.parametrize("page", [0, -1, 1.5, "5", None, True])
    def test_a_page_that_is_none_is_refused_at_the_call(self, opened: Opener, page: Any) -> None:  # noqa: ANN401 - bad input
        """A page that is no positive int is refused at once, not when the iteration begins."""
        notes = record()

        with pytest.raises(InvalidValueError):
            iter_by_states(opened("q", notes), ["queued"], page=page)

        assert notes.methods == []
