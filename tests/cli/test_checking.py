"""`check`: what it mends, what it leaves to somebody who knows the data, and that it is quiet beside workers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate import Batch, MembershipRecord, create_batch, open_storage
from tests.beside import found_beside_workers

if TYPE_CHECKING:
    from tests.cli.terminal import Command

FAULTS = {
    "unfiled batch": "DELETE FROM batchstate_records WHERE batch_id = 'a'",
    "missing association": "DELETE FROM batchstate_associations WHERE batch_id = 'a'",
    "stale record": "INSERT INTO batchstate_records VALUES ('q', 'testing', 'a', 1)",
    "record of a retired batch": "UPDATE batchstate_batches SET retired_at = 1 WHERE id = 'a'",
    "dangling record": "DELETE FROM batchstate_batches WHERE id = 'a'",
}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_is_safe_is_mended(sqlite: Command, kind: str) -> None:
    """Each fault is named; with `--fix` it is mended where nothing can be lost by that, and else told again."""
    with open_storage(sqlite.url, queue="q") as store:
        for name in ("a", "b"):
            create_batch(store, Batch(name, "q", "queued", request_ids=("r-1", f"r-{name}")), clock=lambda: 0)
    assert sqlite("check").code == 0
    with closing(sqlite3.connect(sqlite.url.removeprefix("sqlite:///"))) as connection:
        connection.execute(FAULTS[kind])
        connection.commit()

    said = sqlite("check", "--json")
    assert (said.code, [(f["kind"], f["key"]) for f in said.json["faults"]]) == (1, [(kind, "a")])
    mended = sqlite("check", "--fix", "--json")
    is_safe = kind != "dangling record"
    assert (mended.code, mended.json["mended"]) == ((0, 1) if is_safe else (1, 0))
    assert sqlite("check").code == (0 if is_safe else 1)


def test_what_is_safe_is_mended_anywhere(anywhere: Command) -> None:
    """On each backend a batch that is filed nowhere, and one that is filed twice, are mended by `--fix`."""
    with open_storage(anywhere.url, queue="q") as store:
        for name in ("a", "b", "c"):
            create_batch(store, Batch(name, "q", "queued", request_ids=(f"r-{name}",)), clock=lambda: 0)
        store.delete_records([MembershipRecord("q", "queued", "a", 1)])
        store.put_records([MembershipRecord("q", "testing", "b", 1)])
    assert sorted(f["kind"] for f in anywhere("check", "--json").json["faults"]) == ["stale record", "unfiled batch"]
    assert anywhere("check", "--fix", "--json").json == {"mended": 2, "faults": []}
    assert anywhere("check").out == "All is well.\n"


def test_no_alarm_beside_workers(anywhere: Command) -> None:
    """While workers move batches and claim, settle and add jobs, checks find nothing wrong, nor does one after them."""
    is_moto = anywhere.url.startswith("dynamodb")  # which mixes up what is written side by side
    workers, steps = (1, 4) if is_moto else (2, 25)
    assert found_beside_workers(lambda: open_storage(anywhere.url, queue="q"), workers=workers, steps=steps) == []
