"""Retiring and purging beside redeliveries: a retired batch never comes back, and nothing of a purged one is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.testing.explorer import (
    LINE,
    PROMISES,
    Actor,
    Message,
    Scope,
    Violation,
    explore,
    listing,
    move,
    nothing_is_left,
    purging,
    retirement,
)
from batchstate.three_steps import ThreeSteps
from tests.model.given import IN_B, PURGED, SEES_ROWS, WAYS, memory, reader, tidier, worker
from tests.model.stores import Blind, BlindPiecemeal, InPieces, Piecemeal

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchstate.storage import Storage
    from tests.model.plugin import Show

LAST = move("b", "C", 1, LINE)
LAST_OR_GONE = move("b", "C", 1, LINE, gone=True)
RETIRE = retirement("b", LINE)
RETIRE_OR_GONE = retirement("b", LINE, gone=True)
PURGE = purging(LINE)


def retirer(message: Message = RETIRE, *, number: int = 1, resends: int = 0, lost_replies: int = 0) -> Actor:
    """Hire one that retires the batch as soon as it has ended, and may die once."""
    return Actor(f"retirer-{number}", (message,), 1, resends, lost_replies, sees=ThreeSteps)


def purger(
    *messages: Message,
    sees: Callable[[Storage], Storage] = InPieces,
    after: tuple[str, ...] = (),
    idle: tuple[str, ...] = (),
) -> Actor:
    """Hire one that purges, in pieces unless told, and may die once."""
    return Actor("purger", messages or (PURGE,), 1, sees=sees, after=after, idle=idle)


def scope(title: str, *actors: Actor) -> Scope:
    """Let them act on a batch that is one move from its end."""
    return Scope(title, LINE, actors, (IN_B,))


@pytest.mark.parametrize("way", WAYS)
def test_a_retirement_beside_redeliveries(way: str, show: Show) -> None:
    """The last move is handed to two workers, each dies once, and so does the one that retires."""
    actors = (worker(1, LAST, way=way), worker(2, LAST, way=way), retirer())
    show(explore(scope(f"a retirement beside redeliveries, {way}", *actors), memory, SEES_ROWS))


def test_a_retirement_beside_redeliveries_where_puts_are_blind(show: Show) -> None:
    """Where a put cannot see the row, a record may be left of a retired batch, and no listing shows it."""
    actors = (worker(1, LAST), worker(2, LAST), retirer())
    show(explore(scope("a retirement beside redeliveries, blind", *actors), lambda: Blind("q")))


def test_two_retirements_with_lost_replies_and_resends(show: Show) -> None:
    """The retirement is handed out twice, one of the two sends a write again and loses a reply."""
    actors = (worker(1, LAST), retirer(resends=1, lost_replies=1), retirer(number=2))
    show(explore(scope("two retirements, a lost reply, a re-send", *actors), memory, SEES_ROWS))


@pytest.mark.parametrize("make", [memory, lambda: Blind("q")], ids=["memory", "blind"])
def test_a_retirement_beside_a_tidier(make: Callable[[], Blind], show: Show) -> None:
    """A reconcile beside a retirement puts no record of the retired batch that stays, where its put sees the row."""
    promises = SEES_ROWS if make is memory else PROMISES
    actors = (worker(1, LAST), retirer(), tidier(LINE, crashes=1))
    show(explore(scope("a retirement beside a tidier", *actors), make, promises))


def test_a_purge_beside_redeliveries(show: Show) -> None:
    """A purge in one step, as soon as the batch is retired, beside two workers and a retirement that die once each."""
    actors = (
        worker(1, LAST_OR_GONE),
        worker(2, LAST_OR_GONE),
        retirer(RETIRE_OR_GONE),
        purger(PURGE, sees=ThreeSteps, after=("retirer-1",)),
    )
    show(explore(scope("a purge beside redeliveries", *actors), memory, PURGED))


def test_two_purges_in_pieces_race(show: Show) -> None:
    """Two purges that delete records, associations and row in separate calls, beside a redelivered move."""
    actors = (
        worker(1, LAST_OR_GONE),
        retirer(RETIRE_OR_GONE),
        purger(PURGE, PURGE),
        Actor("purger-2", (PURGE,), sees=InPieces, after=("retirer-1",)),
    )
    show(explore(scope("two purges in pieces", *actors), lambda: Piecemeal("q"), PURGED))


def test_a_reader_beside_a_purge_sees_no_dangling_record(show: Show) -> None:
    """A reader that finds a record and then no row looks again, and raises no false alarm."""
    actors = (
        worker(1, LAST_OR_GONE),
        retirer(RETIRE_OR_GONE),
        purger(after=("retirer-1",)),
        reader(listing("ABC", LINE)),
    )
    show(explore(scope("a reader beside a purge in pieces", *actors), lambda: Piecemeal("q"), PURGED))


def test_a_tidier_beside_a_purge_sees_no_dangling_record(show: Show) -> None:
    """So does a reconcile."""
    actors = (worker(1, LAST_OR_GONE), retirer(RETIRE_OR_GONE), purger(after=("retirer-1",)), tidier(LINE))
    show(explore(scope("a tidier beside a purge in pieces", *actors), lambda: Piecemeal("q"), PURGED))


@pytest.mark.parametrize("last", [reader(listing("ABC", LINE)), tidier(LINE)], ids=lambda actor: actor.name)
def test_a_purge_where_puts_are_blind(last: Actor, show: Show) -> None:
    """Where a put cannot see the row, the purge waits until every writer that was under way has come to its end.

    Those that begin later find the row retired or gone, and put nothing.
    """
    writers = ("worker-1", "tidier") if last.name == "tidier" else ("worker-1",)
    actors = (worker(1, LAST_OR_GONE), retirer(RETIRE_OR_GONE), purger(after=("retirer-1",), idle=writers), last)
    show(
        explore(
            scope(f"a blind purge in pieces, a worker, a {last.name}", *actors), lambda: BlindPiecemeal("q"), PURGED
        )
    )


def test_a_purge_that_does_not_wait_leaves_a_record_where_puts_are_blind() -> None:
    """The retention must exceed the longest stall of a writer: else its late put names a batch that has no row."""
    actors = (worker(1, LAST_OR_GONE), retirer(RETIRE_OR_GONE), purger(after=("retirer-1",)))
    with pytest.raises(Violation, match="the record of batch 'b' under 'C' has no row") as caught:
        explore(
            scope("a blind purge too early", *actors),
            lambda: BlindPiecemeal("q"),
            PROMISES.also(at_rest=(nothing_is_left,)),
        )
    assert "marks batch b retired (v2 → v3)" in str(caught.value)
    assert "worker-1   puts the record of b under C (v2)" in str(caught.value)


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_redeliveries_two_purges_a_tidier_and_a_reader(show: Show) -> None:
    """All at once, where puts see the row."""
    actors = (
        worker(1, LAST_OR_GONE),
        retirer(RETIRE_OR_GONE),
        purger(PURGE),
        Actor("purger-2", (PURGE,), sees=InPieces, after=("retirer-1",)),
        tidier(LINE),
    )
    show(explore(scope("a retirement, two purges in pieces, a tidier", *actors), lambda: Piecemeal("q"), PURGED))
