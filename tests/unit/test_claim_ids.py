"""The IDs of claims."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import RFC_4122, UUID

from batchstate.claims.claiming import new_claim_id

if TYPE_CHECKING:
    import pytest


def test_a_claim_id_is_a_uuid_of_version_7() -> None:
    """It reads as any UUID does, says that it is of version 7, and begins with the time in milliseconds."""
    before = time.time_ns() // 1_000_000
    ids = [new_claim_id() for _ in range(1_000)]
    after = time.time_ns() // 1_000_000

    assert [str(UUID(claim_id)) for claim_id in ids] == ids
    assert {(UUID(claim_id).version, UUID(claim_id).variant) for claim_id in ids} == {(7, RFC_4122)}
    assert all(before <= UUID(claim_id).int >> 80 <= after for claim_id in ids)
    assert len(set(ids)) == 1_000


def test_claims_sort_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """IDs made a quarter of a microsecond apart sort in the order in which they were made, across milliseconds too."""
    ids: list[str] = []
    for instant in range(1_800_000_000_000_990_000, 1_800_000_000_001_010_000, 250):
        monkeypatch.setattr(time, "time_ns", lambda instant=instant: instant)
        ids.append(new_claim_id())

    assert ids == sorted(ids)
    assert len({claim_id[:18] for claim_id in ids}) == len(ids)


def test_claim_ids_of_one_instant_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that claim in the same instant get different IDs."""
    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_000_000_000_000)

    assert len({new_claim_id() for _ in range(1_000)}) == 1_000
    assert len({new_claim_id()[:18] for _ in range(9)}) == 1
