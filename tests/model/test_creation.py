"""Creations that come twice and race: from its acknowledgement on, the batch is never without a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from batchstate.lifecycle import Lifecycle
from batchstate.testing.explorer import CYCLE, Actor, Scope, creation, explore, move, purging, retirement
from batchstate.three_steps import ThreeSteps
from tests.model.given import BACK, BATCH, PURGED, SEES_ROWS, THERE, WAYS, memory, tidier, worker
from tests.model.stores import InPieces, Piecemeal

if TYPE_CHECKING:
    from tests.model.plugin import Show

CREATE = creation(BATCH)
SHORT = Lifecycle.parse("A > B")


@pytest.mark.parametrize("way", WAYS)
def test_a_creation_handed_out_twice_beside_a_worker(way: str, show: Show) -> None:
    """Two creators and a worker that moves the batch as soon as it is there, a crash of each."""
    actors = (worker(1, CREATE, way=way), worker(2, CREATE, way=way), worker(3, THERE, way=way))
    show(explore(Scope(f"a creation twice, a worker, {way}", CYCLE, actors), memory))


@pytest.mark.parametrize("way", WAYS)
def test_a_creation_whose_reply_is_lost(way: str, show: Show) -> None:
    """Two creators that each lose a reply and send a write again, and a worker."""
    actors = (
        worker(1, CREATE, way=way, crashes=0, lost_replies=1, resends=1),
        worker(2, CREATE, way=way, crashes=0, lost_replies=1, resends=1),
        worker(3, THERE, way=way),
    )
    show(explore(Scope(f"a creation twice, lost replies and re-sends, a worker, {way}", CYCLE, actors), memory))


@pytest.mark.parametrize("way", WAYS)
def test_two_creations_for_other_requests_race(way: str, show: Show) -> None:
    """One ID, two sets of requests: one creation wins, the other is refused, and the batch is the winner's for ever."""
    rival = attrs.evolve(BATCH, request_ids=("r-2",))
    actors = (
        worker(1, creation(BATCH, loses=True), way=way),
        worker(2, creation(rival, loses=True), way=way),
        worker(3, THERE, way=way),
    )
    show(explore(Scope(f"two creations for other requests, a worker, {way}", CYCLE, actors), memory))


def test_a_creation_redelivered_while_the_batch_goes_there_and_back(show: Show) -> None:
    """The second delivery of the creation repairs the record from the row, wherever that is by now; a tidier beside."""
    actors = (worker(1, CREATE), worker(2, CREATE, crashes=0), worker(3, THERE, BACK, crashes=0), tidier())
    show(explore(Scope("a creation twice, there and back, a tidier", CYCLE, actors), memory))


def test_a_creation_redelivered_until_the_batch_is_retired(show: Show) -> None:
    """A creation that comes again when the batch has been retired brings it back neither as a row nor as a record."""
    actors = (
        worker(1, CREATE),
        worker(2, CREATE, crashes=0),
        worker(3, move("b", "B", 1, SHORT)),
        Actor("retirer", (retirement("b", SHORT),), crashes=1, sees=ThreeSteps),
    )
    show(explore(Scope("a creation twice, a worker, a retirement", SHORT, actors), memory, SEES_ROWS))


def test_the_whole_life_of_a_batch(show: Show) -> None:
    """Created, moved, retired and purged, a crash of each; the purge waits until the creation cannot come again."""
    gone = move("b", "B", 1, SHORT, gone=True)
    actors = (
        worker(1, CREATE),
        attrs.evolve(worker(2, gone), after=("worker-1",)),
        Actor("retirer", (retirement("b", SHORT),), crashes=1, sees=ThreeSteps),
        Actor("purger", (purging(SHORT),), crashes=1, sees=InPieces, after=("worker-1", "retirer")),
    )
    show(explore(Scope("the whole life of a batch", SHORT, actors), lambda: Piecemeal("q"), PURGED))


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_creations_workers_and_a_tidier_with_crashes_of_all(show: Show) -> None:
    """Two creators and two workers that die once each, and a tidier."""
    actors = (worker(1, CREATE), worker(2, CREATE), worker(3, THERE), worker(4, BACK, crashes=0), tidier())
    show(explore(Scope("a creation twice, two workers, a tidier", CYCLE, actors), memory))
