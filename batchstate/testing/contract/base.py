"""What all modules of the suite share: the fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from zlib import crc32

import pytest

from batchstate.testing.faults import Fault, FaultStore
from batchstate.testing.soundness import faults_left
from batchstate.testing.variants import alternating
from batchstate.three_steps import ThreeSteps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batchstate.storage import Storage
    from batchstate.testing.harness import Harness

__all__ = ["Contract", "Opener"]


class Opener:
    """Opens storages on the store under test and closes them all at the end."""

    def __init__(self, harness: Harness, variant: str) -> None:
        self._harness = harness
        self._variant = variant
        self._opened: list[Storage] = []

    def __call__(self, queue: str = "q", *faults: Fault) -> Storage:
        """Open a storage of `queue` that works in this test's way, with these faults around its primitive calls."""
        store = self._harness.open(queue)
        self._opened.append(store)
        if faults:
            store = FaultStore(store, *faults)
        if self._variant == "three-step":
            return ThreeSteps(store)
        return alternating(store) if self._variant == "mixed" else store

    def close(self) -> None:
        """Close what was opened."""
        for store in self._opened:
            store.close()


class Contract:
    """The fixtures of the suite. `harness` is the adapter's; see `batchstate.testing.Harness`.

    Tests of the functions take `store`, and run three times: on the storage as it is (`fused`), with
    its capabilities hidden (`three-step`), and with the two by turns on one store (`mixed`). Tests of
    the protocol's own methods, which are the same in all three, take `plain`. What a worker does in
    three steps, and where it can be stopped, is done by `opened_steps`, whatever way of working the
    test looks at it with.
    """

    @pytest.fixture(autouse=True)
    def sound(self, harness: Harness, request: pytest.FixtureRequest) -> Iterator[None]:
        """Check every queue of the store after the test: what is wrong there, the test must have declared."""
        yield
        if harness.checked_every and crc32(request.node.nodeid.encode()) % harness.checked_every == 0:
            wrong = faults_left(harness, request.function)
            assert not wrong, f"left behind: {wrong}"

    @pytest.fixture(params=["fused", "three-step", "mixed"])
    def variant(self, request: pytest.FixtureRequest) -> str:
        """Name the way in which the test's storages work."""
        return cast("str", request.param)

    @pytest.fixture
    def opened(self, harness: Harness, variant: str) -> Iterator[Opener]:
        """Open storages that work in the way `variant` says."""
        yield from _opener(harness, variant)

    @pytest.fixture
    def store(self, opened: Opener) -> Storage:
        """Open a storage of queue `q` that works in the way `variant` says."""
        return opened()

    @pytest.fixture
    def opened_plain(self, harness: Harness) -> Iterator[Opener]:
        """Open storages as they are."""
        yield from _opener(harness, "fused")

    @pytest.fixture
    def plain(self, opened_plain: Opener) -> Storage:
        """Open a storage of queue `q` as it is."""
        return opened_plain()

    @pytest.fixture
    def opened_steps(self, harness: Harness) -> Iterator[Opener]:
        """Open storages that take the protocol's three steps."""
        yield from _opener(harness, "three-step")

    @pytest.fixture
    def steps(self, opened_steps: Opener) -> Storage:
        """Open a storage of queue `q` that takes the protocol's three steps."""
        return opened_steps()


def _opener(harness: Harness, variant: str) -> Iterator[Opener]:
    opener = Opener(harness, variant)
    yield opener
    opener.close()
