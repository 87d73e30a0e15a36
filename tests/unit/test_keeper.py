"""The lease keeper, with a time that is set."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import pytest

from batchstate.claims.keeper import LeaseKeeper
from batchstate.errors import ClaimLostError, InvalidValueError, StorageUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

SOON = 20.0


class Seconds:
    """A steady time that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Answer it."""
        return self.now


class Held:
    """Something held under a lease."""

    def __init__(self, lease_ms: int = 30_000, does: Callable[[], bool] = lambda: True) -> None:
        self.lease_ms = lease_ms
        self.does = does
        self.extended = 0

    def keep(self) -> bool:
        """Extend."""
        self.extended += 1
        return self.does()


@pytest.fixture
def seconds() -> Seconds:
    """Set a time."""
    return Seconds()


@pytest.fixture
def keeper(seconds: Seconds) -> LeaseKeeper:
    """Make a keeper without a thread."""
    return LeaseKeeper(seconds, threaded=False)


def beat(keeper: LeaseKeeper, seconds: Seconds, at: float) -> float | None:
    """Let it beat so many seconds after the start; answer how long after the start the next beat is."""
    seconds.now = 100.0 + at
    due = keeper.beat()
    return None if due is None else round(due - 100.0, 6)


def test_a_lease_is_extended_at_its_half(keeper: LeaseKeeper, seconds: Seconds) -> None:
    """A lease of thirty seconds is extended once at fifteen, and again fifteen later."""
    held = Held()
    keeper.hold(held)

    assert beat(keeper, seconds, 14.999) == 15
    assert held.extended == 0
    assert beat(keeper, seconds, 15) == 30
    assert beat(keeper, seconds, 15) == 30
    assert held.extended == 1
    assert beat(keeper, seconds, 31) == 46
    assert held.extended == 2


def test_an_interval_of_ones_own(keeper: LeaseKeeper, seconds: Seconds) -> None:
    """The interval can be given, and must be shorter than the lease."""
    held = Held()
    keeper.hold(held, interval_ms=10_000)
    assert beat(keeper, seconds, 10) == 20

    for wrong in (30_000, 30_001, 0, -1):
        with pytest.raises(InvalidValueError):
            keeper.hold(held, interval_ms=wrong)


@pytest.mark.parametrize("lease_ms", [1, 2, 3])
def test_the_shortest_leases(keeper: LeaseKeeper, seconds: Seconds, lease_ms: int) -> None:
    """The shortest lease is kept at its half, too."""
    held = Held(lease_ms)
    keeper.hold(held)

    assert beat(keeper, seconds, lease_ms / 2000) is not None
    assert held.extended == 1


def test_held_twice_is_held_once(keeper: LeaseKeeper, seconds: Seconds) -> None:
    """Holding again begins the interval anew, and dropping once ends it."""
    held = Held()
    keeper.hold(held)
    seconds.now += 10
    keeper.hold(held)

    assert beat(keeper, seconds, 15) == 25
    assert held.extended == 0
    assert beat(keeper, seconds, 25) == 40
    assert held.extended == 1
    keeper.drop(held)
    assert beat(keeper, seconds, 50) is None
    keeper.drop(held)
    assert held.extended == 1


def test_a_lease_of_another_length(keeper: LeaseKeeper, seconds: Seconds) -> None:
    """A lease that became shorter meanwhile is extended in time, and one that is not held is not taken up by that."""
    held, other = Held(), Held()
    keeper.hold(held)
    held.lease_ms = 4_000
    keeper.changed(held)
    keeper.changed(other)

    assert beat(keeper, seconds, 2) == 4
    assert (held.extended, other.extended) == (1, 0)


def test_what_is_not_held_any_more_is_let_go(keeper: LeaseKeeper, seconds: Seconds) -> None:
    """Where nothing is held any more, or extending says that it was lost, it is not extended again."""

    def lost() -> bool:
        raise ClaimLostError

    empty, gone = Held(does=lambda: False), Held(does=lost)
    keeper.hold(empty)
    keeper.hold(gone)

    assert beat(keeper, seconds, 15) is None
    assert beat(keeper, seconds, 100) is None
    assert (empty.extended, gone.extended) == (1, 1)


def test_trouble_is_tried_again_soon(keeper: LeaseKeeper, seconds: Seconds, caplog: pytest.LogCaptureFixture) -> None:
    """A store that cannot be reached is asked again at a tenth of the interval, said once, and said to be over."""
    trouble = iter([True, True, False])

    def does() -> bool:
        if next(trouble, False):
            raise StorageUnavailableError
        return True

    held = Held(does=does)
    keeper.hold(held)
    with caplog.at_level(logging.WARNING):
        assert beat(keeper, seconds, 15) == 16.5
        assert beat(keeper, seconds, 16.5) == 18
        assert beat(keeper, seconds, 18) == 33

    assert held.extended == 3
    said = [record.message for record in caplog.records]
    assert len(said) == 2
    assert "tried again" in said[0]
    assert "extended again" in said[1]


def test_one_fault_costs_the_others_nothing(
    keeper: LeaseKeeper, seconds: Seconds, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever one extension raises, the others are extended, and it is tried again no sooner than any trouble is."""

    def faulty() -> bool:
        raise ZeroDivisionError

    bad, good = Held(does=faulty), Held()
    keeper.hold(bad)
    keeper.hold(good)
    with caplog.at_level(logging.WARNING):
        assert beat(keeper, seconds, 15) == 16.5

    assert (bad.extended, good.extended) == (1, 1)
    assert "ZeroDivisionError" in caplog.text


def test_dropping_waits_for_an_extension_under_way() -> None:
    """Dropping waits for an extension that is under way, after which none comes."""
    begun, go_on = threading.Event(), threading.Event()

    def does() -> bool:
        begun.set()
        assert go_on.wait(SOON)
        return True

    held = Held(lease_ms=10, does=does)
    keeper = LeaseKeeper()
    keeper.hold(held)
    assert begun.wait(SOON)
    dropping = threading.Thread(target=keeper.drop, args=(held,), daemon=True)
    dropping.start()
    dropping.join(0.1)
    assert dropping.is_alive()
    go_on.set()
    dropping.join(SOON)
    assert not dropping.is_alive()
    extended = held.extended
    assert not threading.Event().wait(0.05)
    assert held.extended == extended


def test_it_may_be_dropped_while_it_extends() -> None:
    """Being told of a loss, one may let go at once, in the keeper's own thread."""
    dropped = threading.Event()

    def does() -> bool:
        keeper.drop(held)
        dropped.set()
        return True

    keeper = LeaseKeeper()
    held = Held(lease_ms=10, does=does)
    keeper.hold(held)

    assert dropped.wait(SOON)


def test_its_thread_ends_and_begins_again() -> None:
    """The thread lives while something is held, and there is one for all."""
    twice = threading.Event()

    def does() -> bool:
        if held.extended >= 2:
            twice.set()
        return True

    keeper = LeaseKeeper()
    for _ in range(2):
        twice.clear()
        held = Held(lease_ms=10, does=does)
        other = Held(lease_ms=60_000)
        keeper.hold(held)
        keeper.hold(other)
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("batchstate-lease-keeper") >= 1
        assert twice.wait(SOON)
        keeper.drop(held)
        keeper.drop(other)
    for thread in threading.enumerate():
        if thread.name == "batchstate-lease-keeper":
            thread.join(SOON)
            assert not thread.is_alive()
