"""Opening stores without making them: who only looks must leave nothing behind where a path was mistyped."""

from __future__ import annotations

from pathlib import Path

from batchstate import NotFoundError, Storage, open_storage
from batchstate.urls import StorageURL

__all__ = ["open_existing", "open_or_imagine"]


def open_existing(url: str, queue: str) -> Storage:
    """Open a store that must be there.

    Raises:
        NotFoundError: it is a SQLite file that is not there.
        BatchStateError: as `open_storage`.
    """
    path = _absent_file(url)
    if path is not None:
        msg = f"there is no file {path}; is the path right? batchstate storage init, add and work make it"
        raise NotFoundError(msg)
    return open_storage(_making_nothing(url), queue=queue)


def open_or_imagine(url: str, queue: str) -> Storage:
    """Open a store to look at it; a SQLite file that is not there is an empty store in memory, with the same limits."""
    if _absent_file(url) is not None:
        _, mark, options = url.partition("?")
        url = f"sqlite://{mark}{options}"
    return open_storage(_making_nothing(url), queue=queue)


def _absent_file(url: str) -> Path | None:
    """Answer the SQLite file that a URL names if it is not there, though its folder is."""
    parsed = StorageURL.parse(url)
    path = Path(parsed.path.removeprefix("/"))
    is_absent = parsed.scheme == "sqlite" and path.name and path.parent.is_dir() and not path.exists()
    return path if is_absent else None


def _making_nothing(url: str) -> str:
    """Answer a URL without the option that makes the store."""
    address, mark, options = url.partition("?")
    kept = [option for option in options.split("&") if option.partition("=")[0] != "create"]
    return f"{address}{mark if kept else ''}{'&'.join(kept)}"
