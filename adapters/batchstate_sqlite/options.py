"""What a `sqlite://` URL says."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from batchstate.errors import InvalidValueError
from batchstate.urls import StorageURL, read_options
from batchstate_sqlite.database import MEMORY, SQLiteDatabase

__all__ = ["database_of"]


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _seconds(value: object) -> object:
    """Answer a plain number as what it means, seconds; every other text is read where durations are."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid")

    synchronous: Annotated[Literal["NORMAL", "FULL", "EXTRA"], BeforeValidator(_upper)] = "FULL"
    timeout: Annotated[float | str, BeforeValidator(_seconds)] = "5s"
    adopt: bool = False


def database_of(url: StorageURL) -> SQLiteDatabase:
    """Open what the URL names; raises as `SQLiteDatabase` does, and `InvalidValueError` for a URL that is none."""
    options = read_options(url, _Options)
    if url.host or url.username or url.password:
        msg = (
            "a SQLite URL has no host: write sqlite:///relative.db with three slashes, sqlite:////absolute/path.db "
            "with four, or sqlite:// for a database in memory"
        )
        raise InvalidValueError(msg)
    return SQLiteDatabase(
        url.path.removeprefix("/") or MEMORY,
        synchronous=options.synchronous,
        timeout=options.timeout,
        adopt=options.adopt,
    )
