"""`check` on a million batches, with their records and requests, and a million jobs: its memory does not grow."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate import Lifecycle, open_queue
from tests.cli.terminal import COMMAND, Command, environment

if TYPE_CHECKING:
    from pathlib import Path

LEAST = 2_000
WRONG = {
    "DELETE FROM batchstate_records WHERE batch_id = 'b777'": ("unfiled batch", "b777"),
    "DELETE FROM batchstate_associations WHERE batch_id = 'b888'": ("missing association", "b888"),
    "UPDATE batchstate_groups SET waiting = waiting - 7": ("wrong count", "(jobs without a group)"),
}
GROW = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :size)
INSERT INTO {table} SELECT {columns} FROM numbers, {table}
"""
"""Makes of a table's only row as many as are wanted, with names of their own."""

NUMBERED = {
    "batchstate_batches": {"id": "'b' || n", "requests": "json_array('r' || n)"},
    "batchstate_records": {"batch_id": "'b' || n"},
    "batchstate_associations": {"batch_id": "'b' || n", "request_id": "'r' || n"},
    "batchstate_jobs": {"id": "'j' || n", "order": "n + 1"},
    "batchstate_line": {"job_id": "'j' || n", "order": "n + 1"},
}


def grown(folder: Path, size: int) -> Command:
    """Make a store with so many batches and one more, and as many jobs, three of which are wrong."""
    folder.mkdir()
    command = Command(f"sqlite:///{folder / 'store.db'}", folder)
    with open_queue("q", command.url, lifecycle=Lifecycle.parse("a > b"), clock=lambda: 1_700_000_000_000) as queue:
        queue.create("b0", requests=["r0"])
        queue.add("j0")
    with closing(sqlite3.connect(command.url.removeprefix("sqlite:///"))) as connection:
        for table, changes in NUMBERED.items():
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            columns = ", ".join(changes.get(name, f'{table}."{name}"') for name in names)
            connection.execute(GROW.format(table=table, columns=columns), {"size": size})
        connection.execute("UPDATE batchstate_groups SET waiting = :size + 1", {"size": size})
        for statement in WRONG:
            connection.execute(statement)
        connection.commit()
    return command


def checked(command: Command) -> tuple[list[tuple[str, str]], int, float]:
    """Check in a process of its own; answer the faults, its greatest memory in KiB, and the seconds it took."""
    began = time.monotonic()
    out = os.open(command.folder / "faults.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        given = environment(BATCHSTATE_URL=command.url)
        words = [*COMMAND, "check", "--json"]
        process = os.posix_spawn(words[0], words, given, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
        _, status, usage = os.wait4(process, 0)
    finally:
        os.close(out)
    assert os.waitstatus_to_exitcode(status) == 1
    faults = json.loads((command.folder / "faults.json").read_text(encoding="utf-8"))["faults"]
    return [(fault["kind"], fault["key"]) for fault in faults], usage.ru_maxrss, time.monotonic() - began


@pytest.mark.parametrize(
    "size", [8_000, pytest.param(1_000_000, marks=[pytest.mark.large, pytest.mark.timeout(1_800)])]
)
def test_a_check_takes_no_more_memory_for_many_than_for_few(tmp_path: Path, size: int) -> None:
    """Three faults among many rows are found, with hardly more memory than among few."""
    few, least, _ = checked(grown(tmp_path / "few", LEAST))
    many, most, seconds = checked(grown(tmp_path / "many", size))
    print(f"{size:,} batches and jobs: {most:,} KiB, {most - least:,} more than for {LEAST:,}; {seconds:.0f} s")  # noqa: T201 - with `-s`
    assert few == many == list(WRONG.values())
    assert most - least < 12_000
