"""`check --fix`: what it mends, and that it leaves alone what only somebody who knows the data can mend."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate import Batch, create_batch, open_storage

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
