"""What a page of a scan takes: a store of many rows is scanned in many pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from batchstate.creation import create_many
from batchstate.entities import Batch
from batchstate_memory import MemoryStorage, storage

if TYPE_CHECKING:
    from batchstate.storage import Kind

PAGE = 3


@pytest.mark.parametrize(
    ("kind", "maker"),
    [("batches", "decode_batch"), ("records", "MembershipRecord"), ("associations", "Association")],
)
def test_a_page_makes_its_own_objects_and_no_others(kind: Kind, maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows a queue has, a page of a scan makes as many objects as it answers."""
    make = getattr(storage, maker)
    made: list[object] = []

    def noted(*values: Any) -> object:
        made.append(values)
        return make(*values)

    with MemoryStorage("q") as store:
        create_many(store, [Batch(f"b-{number:02}", "q", "queued", request_ids=("r",)) for number in range(20)])
        monkeypatch.setattr(storage, maker, noted)
        first = store.scan(kind, limit=PAGE)
        second = store.scan(kind, first.cursor, limit=PAGE)
    assert (len(first.items), len(second.items), len(made)) == (PAGE, PAGE, 2 * PAGE)
