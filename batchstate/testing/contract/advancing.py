"""Handling a message that asks for a move, for the first time and again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from batchstate.advance import advance
from batchstate.errors import (
    InvalidLifecycleError,
    InvalidNameError,
    InvalidTransitionError,
    InvalidValueError,
    NotFoundError,
    StorageUnavailableError,
    TransitionIncompleteError,
    VersionMismatchError,
)
from batchstate.moves import Move
from batchstate.testing.clock import START
from batchstate.testing.contract.base import Contract, Opener
from batchstate.testing.contract.given import LINE, LOOP, everything, filed, lag, made, row, walked
from batchstate.testing.faults import Crash, Fault, crash_after, drop_reply, record
from batchstate.testing.soundness import leaves
from batchstate.tidying import retire
from batchstate.transition import transition

if TYPE_CHECKING:
    from batchstate.storage import Storage
    from batchstate.testing.forwarding import Call

__all__ = ["Advancing", "AdvancingByEntered", "AdvancingBySource"]


class AdvancingBySource(Contract):
    """What `advance` does with a message that names the state it moves from."""

    def test_a_batch_in_the_source_is_moved(self, store: Storage) -> None:
        """A message for a batch in its source state moves it, with all that a transition writes."""
        made(store, n=1)

        step = advance(
            store,
            "b",
            "testing",
            source="queued",
            lifecycle=LINE,
            update={"m": 2},
            by="ci",
            why="w",
            clock=lambda: START,
        )

        assert step == (row(store), "moved")
        assert (step.batch.state, step.batch.version, step.batch.attributes) == ("testing", 2, {"n": 1, "m": 2})
        assert step.batch.history[-1] == Move("queued", "testing", 2, START, "ci", "w")
        assert filed(store) == {"testing": 2}

    def test_a_message_that_comes_again_is_already_done(self, store: Storage) -> None:
        """The same message again changes nothing of the row, and says so."""
        made(store)
        first = advance(store, "b", "testing", source="queued", lifecycle=LINE)
        before = everything(store)

        again = advance(store, "b", "testing", source="queued", lifecycle=LINE)

        assert again == (first.batch, "already")
        assert everything(store) == before

    def test_a_message_for_a_batch_that_is_further_on_is_stale(self, store: Storage) -> None:
        """A late message for a batch that has gone on, or elsewhere, changes nothing, and says so."""
        for name, path in {"on": ("queued", "testing", "merging"), "off": ("queued", "testing", "failed")}.items():
            walked(store, *path, batch_id=name)
            before = everything(store)

            assert advance(store, name, "testing", source="queued", lifecycle=LINE).outcome == "stale"
            assert everything(store) == before

    def test_a_message_that_is_ahead_of_its_batch_is_to_come_again(self, store: Storage) -> None:
        """A message for a state that the batch has not come to is refused, retryably, and works when it has."""
        made(store)
        before = everything(store)

        with pytest.raises(VersionMismatchError) as caught:
            advance(store, "b", "merging", source="testing", lifecycle=LINE)

        assert caught.value.retryable
        assert everything(store) == before
        advance(store, "b", "testing", source="queued", lifecycle=LINE)
        assert advance(store, "b", "merging", source="testing", lifecycle=LINE).outcome == "moved"

    def test_an_edge_on_a_cycle_needs_more_than_its_source(self, opened: Opener) -> None:
        """On a cycle a source says too little: such a call is refused before the store is asked."""
        notes = record()
        store = opened("q", notes)

        with pytest.raises(InvalidLifecycleError):
            advance(store, "b", "waiting", source="running", lifecycle=LOOP)
        with pytest.raises(InvalidLifecycleError):
            advance(store, "b", "running", source="running", lifecycle=LOOP)
        with pytest.raises(InvalidLifecycleError):
            advance(store, "b", "testing", source="queued")

        assert notes.methods == []

    def test_an_edge_on_no_cycle_of_a_lifecycle_with_one(self, store: Storage) -> None:
        """In a lifecycle with a cycle, the edges that lie on none are safe with their source."""
        made(store, state="started")

        assert advance(store, "b", "running", source="started", lifecycle=LOOP).outcome == "moved"
        assert advance(store, "b", "running", source="started", lifecycle=LOOP).outcome == "already"
        assert advance(store, "b", "done", source="running", lifecycle=LOOP).outcome == "moved"
        assert advance(store, "b", "running", source="started", lifecycle=LOOP).outcome == "stale"


class AdvancingByEntered(Contract):
    """What `advance` does with a message that names the version at which its batch entered the state it moves from."""

    def test_the_rows_entered_is_moved(self, store: Storage) -> None:
        """A message whose `entered` is the row's moves it."""
        batch = made(store)

        assert advance(store, "b", "testing", entered=batch.entered) == (row(store), "moved")
        assert (row(store).state, row(store).version) == ("testing", 2)

    def test_changes_within_the_state_do_not_make_a_message_late(self, store: Storage) -> None:
        """A batch that was changed and stayed in its state is moved by the message for that stay."""
        batch = walked(store, "started", "running")
        entered = batch.entered
        for _ in range(3):
            batch = transition(store, batch, "running")

        step = advance(store, "b", "waiting", entered=entered, lifecycle=LOOP)

        assert (step.outcome, step.batch.version) == ("moved", 6)

    def test_a_message_that_comes_again_is_already_done(self, store: Storage) -> None:
        """The same message again changes nothing, and says so."""
        made(store)
        first = advance(store, "b", "testing", entered=1)
        before = everything(store)

        assert advance(store, "b", "testing", entered=1) == (first.batch, "already")
        assert everything(store) == before

    def test_a_message_of_the_last_round_moves_nothing_in_this_one(self, store: Storage) -> None:
        """On a cycle a message that was done and comes again the next time round does not move the batch."""
        walked(store, "started", "running")
        assert advance(store, "b", "waiting", entered=2, lifecycle=LOOP).outcome == "moved"
        assert advance(store, "b", "running", entered=3, lifecycle=LOOP).outcome == "moved"
        before = everything(store)

        assert advance(store, "b", "waiting", entered=2, lifecycle=LOOP).outcome == "stale"
        assert everything(store) == before
        assert advance(store, "b", "waiting", entered=4, lifecycle=LOOP).outcome == "moved"
        assert advance(store, "b", "waiting", entered=2, lifecycle=LOOP).outcome == "already"
        assert row(store).version == 5

    def test_a_message_that_is_ahead_of_its_batch_is_to_come_again(self, store: Storage) -> None:
        """A message whose `entered` the row has not reached is refused, retryably, and nothing is written."""
        made(store)
        before = everything(store)

        with pytest.raises(VersionMismatchError) as caught:
            advance(store, "b", "merging", entered=2)

        assert caught.value.retryable
        assert caught.value.current == row(store)
        assert everything(store) == before

    def test_a_message_into_the_present_state_is_already_done(self, store: Storage) -> None:
        """A message that asks for the state the batch is in moves nothing."""
        batch = made(store)

        assert advance(store, "b", "queued", entered=1) == (batch, "already")

    def test_each_of_all_messages_applies_once_in_any_order(self, store: Storage) -> None:
        """A whole journey's messages, each twice and in a wrong order, apply once each, as their turn comes."""
        made(store, state="started")
        journey = ["running", "waiting", "running", "waiting", "running", "done"]
        waiting = [(to, entered) for entered, to in enumerate(journey, start=1)] * 2
        waiting.sort(key=lambda message: (message[1] * 5) % 7)
        outcomes = []
        while waiting:
            to, entered = waiting.pop(0)
            try:
                outcomes.append(advance(store, "b", to, entered=entered, lifecycle=LOOP).outcome)
            except VersionMismatchError:
                waiting.append((to, entered))

        assert outcomes.count("moved") == 6
        assert (row(store).state, row(store).version) == ("done", 7)
        assert [move.to for move in row(store).history] == ["started", *journey]
        assert filed(store) == {"done": 7}


class Advancing(Contract):
    """What `advance` does however the message names its move."""

    @pytest.mark.parametrize("named", [{"source": "queued"}, {"entered": 1}], ids=["by source", "by entered"])
    def test_a_redelivery_repairs_what_a_crash_left(
        self, store: Storage, opened_steps: Opener, named: dict[str, Any]
    ) -> None:
        """Wherever the first delivery died, the second one completes the move and its record."""
        for number in (1, 2, 3):
            batch = made(store, f"b-{number}")
            with pytest.raises(Crash):
                advance(opened_steps("q", crash_after(number)), batch.id, "testing", lifecycle=LINE, **named)

            step = advance(store, batch.id, "testing", lifecycle=LINE, **named)

            assert (step.outcome, step.batch.version) == ("already", 2)
            assert filed(store, batch.id)["testing"] == 2

    def test_a_redelivery_after_a_lost_reply(self, opened: Opener) -> None:
        """A message whose first delivery moved the batch and lost the reply is already done, and repaired."""
        for number in range(1, 4):
            store = opened()
            batch = made(store, f"b-{number}")
            with suppress(StorageUnavailableError, TransitionIncompleteError):
                advance(opened("q", drop_reply(number)), batch.id, "testing", entered=1)

            step = advance(store, batch.id, "testing", entered=1)

            assert (step.outcome, step.batch.version) in [("already", 2), ("moved", 2)]
            assert filed(store, batch.id)["testing"] == 2

    @leaves("stale record")
    def test_a_stale_message_repairs_too(self, store: Storage, plain: Storage) -> None:
        """A late message files the record of the state the batch is in by now, which may be missing."""
        lag(plain, "queued", "testing", "merging")

        assert advance(store, "b", "testing", entered=1).outcome == "stale"
        assert filed(store)["merging"] == 3

    def test_a_change_between_read_and_swap_is_taken_in(self, opened: Opener) -> None:
        """Where another changes the batch within its state meanwhile, the message moves the row as it is then."""
        store = opened()
        made(store, n=0)
        rivals: list[int] = []

        def rival(call: Call) -> None:
            if call.method in ("update_batches", "move_batches") and len(rivals) < 3:
                rivals.append(transition(store, row(store), "queued", update={"n": len(rivals) + 1}).version)

        step = advance(opened("q", Fault(before=rival)), "b", "testing", entered=1, update={"m": 1})

        assert (step.outcome, step.batch.version) == ("moved", 5)
        assert row(store).attributes == {"n": 3, "m": 1}

    def test_a_move_between_read_and_swap_makes_it_already_done(self, opened: Opener) -> None:
        """Where another does the same move meanwhile, the message is already done, and the batch was moved once."""
        store = opened()
        made(store)

        def rival(call: Call) -> None:
            if call.method in ("update_batches", "move_batches") and row(store).version == 1:
                advance(store, "b", "testing", entered=1)

        step = advance(opened("q", Fault(before=rival)), "b", "testing", entered=1)

        assert step == (row(store), "already")
        assert row(store).version == 2

    def test_a_race_that_never_ends_is_given_back(self, opened: Opener) -> None:
        """After ten lost races in a row the message is to come again, and nothing was written by this call."""
        store = opened()
        made(store)

        def rival(call: Call) -> None:
            if call.method in ("update_batches", "move_batches"):
                transition(store, row(store), "queued")

        with pytest.raises(VersionMismatchError) as caught:
            advance(opened("q", Fault(before=rival)), "b", "testing", entered=1)

        assert caught.value.retryable
        assert (row(store).state, row(store).version) == ("queued", 11)

    def test_a_retired_batch_is_not_moved(self, store: Storage) -> None:
        """A message for a retired batch is already done or stale, and files nothing."""
        retired = retire(store, walked(store, "queued", "testing", "failed"))

        assert advance(store, "b", "failed", source="testing", lifecycle=LINE) == (retired, "already")
        assert advance(store, "b", "testing", source="queued", lifecycle=LINE) == (retired, "stale")
        assert advance(store, "b", "testing", entered=retired.entered) == (retired, "stale")
        assert advance(store, "b", "testing", entered=99) == (retired, "stale")
        assert filed(store) == {}

    def test_an_absent_batch_is_not_found(self, store: Storage) -> None:
        """A message for a batch that is not there is answered so, and nothing is written."""
        with pytest.raises(NotFoundError):
            advance(store, "b", "testing", entered=1)
        with pytest.raises(NotFoundError):
            advance(store, "b", "testing", source="queued", lifecycle=LINE)

        assert everything(store) == {"batches": [], "records": [], "associations": []}

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({}, InvalidValueError),
            ({"source": "queued", "entered": 1, "lifecycle": LINE}, InvalidValueError),
            ({"entered": 0}, InvalidValueError),
            ({"entered": "1"}, InvalidValueError),
            ({"entered": True}, InvalidValueError),
            ({"source": "", "lifecycle": LINE}, InvalidNameError),
            ({"source": "nowhere", "lifecycle": LINE}, InvalidTransitionError),
            ({"source": "merging", "lifecycle": LINE}, InvalidTransitionError),
            ({"entered": 1, "to": "nowhere", "lifecycle": LINE}, InvalidValueError),
            ({"entered": 1, "to": ""}, InvalidNameError),
            ({"entered": 1, "batch_id": ""}, InvalidNameError),
            ({"entered": 1, "batch_id": "x" * 256}, InvalidNameError),
        ],
    )
    def test_a_message_that_makes_no_sense_is_refused_before_any_call(
        self, opened: Opener, fields: dict[str, Any], error: type[Exception]
    ) -> None:
        """A call that names no move, two moves, or none that there is, is refused, and the store is not even asked."""
        notes = record()

        with pytest.raises(error):
            advance(opened("q", notes), **{"batch_id": "b", "to": "testing", **fields})

        assert notes.methods == []

    def test_a_move_that_the_lifecycle_forbids_is_refused(self, store: Storage) -> None:
        """A message whose move the lifecycle does not have is refused, and nothing is written."""
        batch = made(store)

        with pytest.raises(InvalidTransitionError):
            advance(store, "b", "merged", entered=1, lifecycle=LINE)

        assert row(store) == batch
