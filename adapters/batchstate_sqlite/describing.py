"""What can be told of a database file, and which of its settings endanger data."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Cursor

__all__ = ["describe", "file_system_of"]

_SYNCHRONOUS: Final = ("OFF", "NORMAL", "FULL", "EXTRA")
_FULL: Final = _SYNCHRONOUS.index("FULL")
_MOUNTS: Final = Path("/proc/self/mounts")
_ACROSS_A_NETWORK: Final = re.compile(
    r"nfs|cifs|smb|9p|afs|ceph|gluster|lustre|fuse\.(sshfs|s3fs|gcsfuse|rclone)|davfs"
)


def describe(cursor: Cursor, *, mounts: Path = _MOUNTS) -> tuple[dict[str, str], list[str]]:
    """Answer facts by name, and a sentence for each setting that endangers data.

    Args:
        cursor: of a connection as the storage uses it, since `synchronous` is each connection's own.
        mounts: the system's list of what is mounted where; where it cannot be read, the file system is not known.
    """
    [version] = cursor.execute("SELECT version FROM batchstate_schema").fetchone()
    [journal] = cursor.execute("PRAGMA journal_mode").fetchone()
    [number] = cursor.execute("PRAGMA synchronous").fetchone()
    [pages] = cursor.execute("PRAGMA page_count").fetchone()
    [free] = cursor.execute("PRAGMA freelist_count").fetchone()
    [size] = cursor.execute("PRAGMA page_size").fetchone()
    path = next(str(row[2]) for row in cursor.execute("PRAGMA database_list") if row[1] == "main")
    facts = {
        "sqlite": sqlite3.sqlite_version,
        "tables": f"version {version}",
        "size": f"{pages * size:,} bytes, {free * size:,} of them free",
        "journal_mode": str(journal),
        "synchronous": _SYNCHRONOUS[number],
    }
    warnings = []
    if not path:
        return {"file": "none: in memory", **facts}, ["it is in this process's memory, and gone when that ends"]
    if number < _FULL:
        warnings.append(
            f"synchronous is {_SYNCHRONOUS[number]}: when the machine loses power, what was acknowledged last may be "
            "lost; open it with synchronous=full"
        )
    system = file_system_of(Path(path), mounts)
    if system is None:
        warnings.append(
            "its file system is not known: on one across a network its locks do not hold, and workers damage the file"
        )
    elif _ACROSS_A_NETWORK.match(system):
        warnings.append(
            f"it is on {system}, across a network, where its locks do not hold and workers damage the file: move it to "
            "a disk of the machine"
        )
    return {"file": path, "file system": system or "unknown", **facts}, warnings


def file_system_of(path: Path, mounts: Path) -> str | None:
    """Answer the type of the file system that a file is on, `None` where the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    resolved = path.resolve()
    return _innermost(resolved, (line.split(" ") for line in lines))


def _innermost(path: Path, mounted: Iterable[list[str]]) -> str | None:
    """Answer the type of the deepest mount above `path`; of several in one place the last one counts."""
    found: tuple[int, str] | None = None
    for fields in mounted:
        if len(fields) < 3:  # noqa: PLR2004 - device, place, type
            continue
        place = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[1]))
        if path.is_relative_to(place) and (found is None or len(place.parts) >= found[0]):
            found = (len(place.parts), fields[2])
    return None if found is None else found[1]
