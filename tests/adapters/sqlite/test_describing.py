"""What `storage info` tells of a SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate.provisioning import Described
from batchstate_sqlite import SQLiteDatabase, SQLiteStorage
from batchstate_sqlite.describing import describe, file_system_of

if TYPE_CHECKING:
    from pathlib import Path

NETWORK = "locks do not hold"


def test_facts_of_a_file(path: Path) -> None:
    """A file is described with the version of its tables, its size and how safely it is written."""
    with SQLiteStorage(path, "q") as store:
        assert isinstance(store, Described)
        facts, _ = store.describe()
        assert facts["file"] == str(path)
        assert facts["sqlite"] == sqlite3.sqlite_version
        assert facts["tables"].startswith("version ")
        assert (facts["journal_mode"], facts["synchronous"]) == ("wal", "FULL")
        assert int(facts["size"].split(" ")[0].replace(",", "")) > 0


def test_less_than_full_is_warned_about(path: Path) -> None:
    """A file that is written without waiting for the disk is warned about, another is not."""
    said = {}
    for mode in ("NORMAL", "FULL", "EXTRA"):
        with closing(SQLiteDatabase(path, synchronous=mode)) as database, SQLiteStorage(database, "q") as store:
            facts, warnings = store.describe()
            assert facts["synchronous"] == mode
            said[mode] = [warning for warning in warnings if "synchronous" in warning]
    assert [len(found) for found in said.values()] == [1, 0, 0]


def test_memory_is_warned_about() -> None:
    """A database in memory is gone with its process, which is said."""
    with SQLiteStorage(":memory:", "q") as store:
        facts, warnings = store.describe()
        assert facts["file"].startswith("none")
        assert len(warnings) == 1


@pytest.mark.parametrize(("system", "warnings"), [("ext4", 0), ("nfs4", 1), ("cifs", 1), ("fuse.sshfs", 1), (None, 1)])
def test_a_network_is_warned_about(path: Path, system: str | None, warnings: int) -> None:
    """A file across a network, or where that cannot be told, is warned about."""
    mounts = path.parent / "mounts"
    if system is not None:
        mounts.write_text(f"/dev/a / ext4 rw 0 0\nthere {path.parent} {system} rw 0 0\n/dev/b /else nfs rw 0 0\n")
    with SQLiteStorage(path, "q") as store:
        facts, said = store.database.read(lambda cursor: describe(cursor, mounts=mounts))
        assert facts["file system"] == (system or "unknown")
        assert sum(NETWORK in warning for warning in said) == warnings


def test_the_deepest_mount_counts(tmp_path: Path) -> None:
    """A file is on the deepest file system above it, whose place may have spaces, and on the last one mounted there."""
    mounts = tmp_path / "mounts"
    mounts.write_text("a / ext4 rw\nb /data\\040x nfs rw\nc /data\\040x xfs rw\nd /data tmpfs rw\n")
    assert file_system_of(tmp_path / "file", mounts) == "ext4"
    assert file_system_of(tmp_path.__class__("/data x/file"), mounts) == "xfs"
