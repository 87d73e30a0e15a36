"""Transitions one by one and a hundred at a time, listing and loading ten thousand, on memory and SQLite."""

from __future__ import annotations

import tempfile
from itertools import cycle
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

from batchstate import Batch, list_by_states, transition, transition_many
from batchstate_memory import MemoryStorage
from batchstate_sqlite import SQLiteStorage
from tests.benchmarks.batches import FLOW, filled
from tests.benchmarks.memory_floor import MemoryFloor
from tests.benchmarks.racing import Contestant, Race, race
from tests.benchmarks.sqlite_floor import SQLiteFloor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from batchstate.storage import Storage

__all__ = ["LISTED", "listing", "memory", "sqlite", "transitions"]

ROUND_TRIP = ("testing", "merging", "queued")
LISTED = 10_000


def sqlite() -> Iterator[Race]:
    """SQLite, on a file, with `synchronous=FULL`."""
    with tempfile.TemporaryDirectory() as folder:
        ours_path, floor_path = Path(folder) / "ours.db", Path(folder) / "floor.db"
        with SQLiteStorage(ours_path, "bench") as store, SQLiteStorage(floor_path, "bench") as made:
            floor = SQLiteFloor(floor_path, "bench", filled(made, 300))
            now = 1_800_000_000_000
            yield from transitions("sqlite", store, lambda places, to: floor.move(places, to, now))
            floor.close()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "list.db"
        with SQLiteStorage(path, "bench") as store:
            filled(store, LISTED)
            floor = SQLiteFloor(path, "bench", [])
            yield listing("sqlite", store, lambda: floor.list_state("queued"))
            floor.close()


def memory() -> Iterator[Race]:
    """Memory."""
    store = MemoryStorage("bench")
    floor = MemoryFloor(filled(MemoryStorage("bench"), 300))
    yield from transitions("memory", store, floor.move)
    store = MemoryStorage("bench")
    listed = MemoryFloor(filled(store, LISTED))
    yield listing("memory", store, lambda: listed.list_state("queued"))


def transitions(
    name: str, store: Storage, floor: Callable[[range, str], object], cpu: Callable[[], float] = process_time
) -> Iterator[Race]:
    """Move 300 batches one by one, then a hundred at a time."""
    batches = filled(store, 300)
    for size, title in ((1, "one by one"), (100, "100 at a time")):
        turns, turns_of_floor = cycle(ROUND_TRIP), cycle(ROUND_TRIP)

        def by_floor(to: object, size: int = size) -> None:
            for start in range(0, 300, size):
                floor(range(start, start + size), str(to))

        def by_ours(to: object, size: int = size) -> None:
            for start in range(0, 300, size):
                _advance(store, batches, start, size, str(to))

        yield race(
            f"{name}: transitions {title}",
            300,
            [
                Contestant("floor", by_floor, turns_of_floor.__next__),
                Contestant("batchstate", by_ours, turns.__next__),
            ],
            rounds=21 if size > 1 else 12,
            cpu=cpu,
        )


def _advance(store: Storage, batches: list[Batch], start: int, size: int, to: str) -> None:
    if size == 1:
        batches[start] = transition(store, batches[start], to, lifecycle=FLOW, by="bench")
        return
    moved = transition_many(store, batches[start : start + size], to, lifecycle=FLOW, by="bench")
    batches[start : start + size] = [batch for batch in moved if isinstance(batch, Batch)]


def listing(
    name: str, store: Storage, floor: Callable[[], Sequence[object]], cpu: Callable[[], float] = process_time
) -> Race:
    """List ten thousand batches of one state."""

    def check(found: Sequence[object]) -> None:
        if len(found) != LISTED:
            raise AssertionError(len(found))

    return race(
        f"{name}: listing {LISTED:,}",
        LISTED,
        [
            Contestant("floor", lambda _: check(floor())),
            Contestant("batchstate", lambda _: check(list_by_states(store, ["queued"], lifecycle=FLOW))),
        ],
        rounds=11,
        cpu=cpu,
    )
