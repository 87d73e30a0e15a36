"""URLs: which backend a URL names, opened lazily, with its secret kept out of every text."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol, TypeVar, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from attrs import field, frozen
from pydantic import BaseModel, ValidationError

from batchstate.errors import InvalidValueError
from batchstate.names import check_name
from batchstate.three_steps import ThreeSteps

if TYPE_CHECKING:
    from batchstate.storage import Storage
    from batchstate.times import Clock

__all__ = ["URL_VARIABLE", "StorageURL", "adapter_named", "open_storage", "read_options"]

URL_VARIABLE = "BATCHSTATE_URL"
"""The environment variable that says which store to open where no URL is given."""

_ADAPTERS: Mapping[str, tuple[str, str, str]] = {
    # scheme: (module, class, the extra that brings its client)
    "memory": ("batchstate_memory", "MemoryStorage", ""),
    "sqlite": ("batchstate_sqlite", "SQLiteStorage", ""),
    "redis": ("batchstate_redis", "RedisStorage", "redis"),
    "rediss": ("batchstate_redis", "RedisStorage", "redis"),
    "unix": ("batchstate_redis", "RedisStorage", "redis"),
    "redis+cluster": ("batchstate_redis", "RedisStorage", "redis"),
    "rediss+cluster": ("batchstate_redis", "RedisStorage", "redis"),
    "redis+sentinel": ("batchstate_redis", "RedisStorage", "redis"),
    "dynamodb": ("batchstate_dynamodb", "DynamoDBStorage", "dynamodb"),
}


@frozen
class StorageURL:
    """A URL in its parts. What it shows of itself has no secret in it.

    Attributes:
        scheme: names the backend.
        username: decoded; `""` where there is none.
        password: decoded; `""` where there is none; never shown.
        host: the host part with its port, or several of them with commas between, as written.
        path: decoded, with its leading slash.
        options: the query.
    """

    scheme: str
    username: str = ""
    password: str = field(default="", repr=False)
    host: str = ""
    path: str = ""
    options: Mapping[str, str] = field(factory=dict, repr=False)

    @classmethod
    def parse(cls, text: str) -> StorageURL:
        """Read a URL; raises `InvalidValueError`, without repeating it, where it is none."""
        if "://" not in text:
            msg = "a store is named by a URL such as sqlite:///batches.db, redis://host:6379/0 or dynamodb://table"
            raise InvalidValueError(msg)
        try:
            parts = urlsplit(text)
            options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        except ValueError:
            msg = "the store's URL cannot be read; percent-encode special characters in its user, password and path"
            raise InvalidValueError(msg) from None
        if parts.fragment or text.endswith("#"):
            msg = "the store's URL has a '#'; percent-encode it as %23"
            raise InvalidValueError(msg)
        login, _, host = parts.netloc.rpartition("@")
        username, _, password = login.partition(":")
        twice = {name for name, _ in options if sum(name == other for other, _ in options) > 1}
        if twice:
            msg = f"the store's URL gives an option twice: {', '.join(sorted(twice))}"
            raise InvalidValueError(msg)
        return cls(
            parts.scheme,
            unquote(username),
            unquote(password),
            host,
            unquote(parts.path),
            dict(options),
        )

    def __str__(self) -> str:
        login = f"{self.username}:***@" if self.password else f"{self.username}@" if self.username else ""
        return f"{self.scheme}://{login}{self.host}{self.path}"


class _Adapter(Protocol):
    def from_url(self, url: StorageURL, queue: str, *, clock: Clock | None = None) -> Storage: ...


def open_storage(url: str | None = None, *, queue: str, atomic: bool = True, clock: Clock | None = None) -> Storage:
    """Open the store that `url` names, bound to `queue`.

    Args:
        url: such as `memory://`, `sqlite:///path.db`, `redis://host:6379/0` or
            `dynamodb://table?region=eu-west-1`; without one, the environment's `BATCHSTATE_URL`.
            Third parties add schemes through the entry points `batchstate.storages`.
        queue: the queue to work on.
        atomic: `False` hides what the backend can do in one step, so that every move takes the
            protocol's three.
        clock: answers the time in milliseconds since the epoch, in place of the store's own clock
            or this machine's.

    Raises:
        InvalidValueError: no URL, an unknown scheme or option, or the extra that brings the
            backend's client is missing.
        InvalidNameError: `queue` is no name.
        StorageUnavailableError: the store cannot be reached.
        UnsupportedFormatError: a newer batchstate wrote it.
    """
    check_name("queue", queue)
    text = url if url is not None else os.environ.get(URL_VARIABLE, "")
    if not text:
        msg = f"which store? give a URL such as sqlite:///batches.db, or set {URL_VARIABLE}"
        raise InvalidValueError(msg)
    parsed = StorageURL.parse(text)
    store = adapter_named(parsed.scheme).from_url(parsed, queue, clock=clock)
    return store if atomic else ThreeSteps(store)


def adapter_named(scheme: str) -> _Adapter:
    """Answer a scheme's storage class; raises `InvalidValueError` where there is none, or its client is missing."""
    if scheme in _ADAPTERS:
        module, name, extra = _ADAPTERS[scheme]
        try:
            return cast("_Adapter", getattr(import_module(module), name))
        except ModuleNotFoundError as error:
            if not extra or (error.name or "").startswith("batchstate"):
                raise
            msg = f"{scheme}:// needs {error.name}, which is not installed: pip install 'batchstate[{extra}]'"
            raise InvalidValueError(msg) from error
    for entry in entry_points(group="batchstate.storages", name=scheme):
        return cast("_Adapter", entry.load())
    msg = f"no backend is known for {scheme}://; known are {', '.join(f'{known}://' for known in _ADAPTERS)}"
    raise InvalidValueError(msg)


Options = TypeVar("Options", bound=BaseModel)


def read_options(url: StorageURL, model: type[Options]) -> Options:
    """Answer the URL's query read as `model`; raises `InvalidValueError` naming what is wrong with which option."""
    try:
        return model.model_validate(dict(url.options))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        option = ".".join(str(part) for part in first["loc"])
        known = ", ".join(sorted(field.alias or name for name, field in model.model_fields.items())) or "none"
        msg = f"{url.scheme}:// option {option!r}: {first['msg']}; the options are: {known}"
        raise InvalidValueError(msg) from None  # pydantic's own error shows the value, which may be a secret
