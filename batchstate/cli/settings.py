"""What the command works on: its options, else the environment (`BATCHSTATE_…`), else `batchstate.toml`."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer
from attrs import frozen
from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from batchstate import (
    CLAIM,
    MERGE_QUEUE,
    BatchQueue,
    InvalidLifecycleError,
    InvalidValueError,
    Lifecycle,
    MembershipRecord,
    Storage,
    open_storage,
)
from batchstate.cli.output import complain
from batchstate.cli.stores import open_existing
from batchstate.lifecycle import RESERVED_STATES

__all__ = [
    "JsonOption",
    "LifecycleOption",
    "QueueOption",
    "Settings",
    "Target",
    "UrlOption",
    "lifecycle_of",
    "states_seen",
    "target",
]

FILE = "batchstate.toml"

UrlOption = Annotated[
    str | None, typer.Option("--url", "-u", help="The store, such as sqlite:///batches.db; else BATCHSTATE_URL.")
]
QueueOption = Annotated[
    str | None, typer.Option("--queue", "-q", help="The queue; needless where the store has only one.")
]
LifecycleOption = Annotated[
    str | None,
    typer.Option("--lifecycle", "-l", help="Its lifecycle: a text such as 'a > b', a TOML file, or 'merge-queue'."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, in a shape that stays.")]


class Settings(BaseSettings):
    """What is set outside of the command line.

    Attributes:
        url: the store.
        queue: the queue.
        lifecycle: its lifecycle, as a text, the path of a TOML file, or the name of a ready-made one.
    """

    model_config = SettingsConfigDict(
        env_prefix="BATCHSTATE_", toml_file=FILE, extra="forbid", env_ignore_empty=True, hide_input_in_errors=True
    )

    url: str | None = None
    queue: str | None = None
    lifecycle: str | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The command line first, then the environment, then the file."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


@frozen
class Target:
    """What a command works on.

    Attributes:
        url: the store.
        name: the queue, `None` where none was named.
        lifecycle: its lifecycle, `None` where none was given.
        creates: whether a store that is not there is made; who looks for something must not make it.
    """

    url: str
    name: str | None
    lifecycle: Lifecycle | None
    creates: bool = False

    def store(self, queue: str) -> Storage:
        """Open a queue's storage."""
        return open_storage(self.url, queue=queue) if self.creates else open_existing(self.url, queue)

    def queue(self, by: str | None = None) -> BatchQueue:
        """Open the queue, to be changed by whoever is named; where the store has only one, it need not be named."""
        store = self.store(self.name or self._only_queue())
        self._doubt(store)
        return BatchQueue(store, self.lifecycle or CLAIM, by=by or f"{_user()} by the command")

    def moving(self, by: str | None = None) -> BatchQueue:
        """As `queue`, for a command that cannot do without the lifecycle."""
        if self.lifecycle is None:
            msg = f"this takes the queue's lifecycle: give --lifecycle 'a > b', or write lifecycle = … into {FILE}"
            raise InvalidLifecycleError(msg)
        return self.queue(by)

    def queues(self) -> list[str]:
        """Answer the names of the queues to look at: the one that was named, or all."""
        if self.name is not None:
            return [self.name]
        with self.store("-") as store:
            return store.list_queues()

    def doubt(self) -> None:
        """Warn where a queue was named that the store does not have: it would look like an empty one."""
        if self.name is not None:
            with self.store(self.name) as store:
                self._doubt(store)

    def _doubt(self, store: Storage) -> None:
        if self.name is None or self.creates:
            return
        names = store.list_queues()
        if self.name not in names:
            there = f"the store has {', '.join(names[:20])}" if names else "the store has none at all"
            complain(f"warning: there is no queue {self.name!r} yet; {there}")

    def _only_queue(self) -> str:
        names = self.queues()
        if len(names) == 1:
            return names[0]
        what = (
            "the store has no queue yet" if not names else f"the store has {len(names)} queues: {', '.join(names[:20])}"
        )
        msg = f"which queue? name it with --queue; {what}"
        raise InvalidValueError(msg)


def target(url: str | None, queue: str | None = None, lifecycle: str | None = None, *, creates: bool = False) -> Target:
    """Answer what to work on, from the options given, the environment and the file.

    Raises:
        InvalidValueError: no store is named, or the file cannot be read.
        InvalidLifecycleError: the lifecycle is unsound.
    """
    given = {name: value for name, value in (("url", url), ("queue", queue), ("lifecycle", lifecycle)) if value}
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise InvalidValueError(_what_is_wrong(error)) from error
    except ValueError as error:
        msg = f"{FILE} cannot be read: {error}"
        raise InvalidValueError(msg) from error
    if settings.url is None:
        msg = f"which store? give --url sqlite:///batches.db, set BATCHSTATE_URL, or write url = … into {FILE}"
        raise InvalidValueError(msg)
    chosen = lifecycle_of(settings.lifecycle) if settings.lifecycle else None
    return Target(settings.url, settings.queue, chosen, creates)


def _what_is_wrong(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{FILE} has {name!r}, which is not known; there are url, queue and lifecycle"
    return f"{FILE} or a BATCHSTATE_… variable is wrong: {name}: {first['msg']}"


def lifecycle_of(text: str) -> Lifecycle:
    """Read a lifecycle: the name of a ready-made one, the path of a TOML file, or its text."""
    ready = {"merge-queue": MERGE_QUEUE, "claim": CLAIM}.get(text)
    if ready is not None:
        return ready
    return Lifecycle.from_toml(Path(text)) if text.endswith(".toml") else Lifecycle.parse(text)


def states_seen(store: Storage, lifecycle: Lifecycle | None) -> list[str]:
    """Answer the states to look at: the lifecycle's, or those that something is filed under, and those of claims."""
    if lifecycle is not None:
        return [*lifecycle.states, *(state for state in RESERVED_STATES if state not in lifecycle.states)]
    states: dict[str, None] = {}
    cursor: str | None = None
    while True:
        page = store.scan("records", cursor)
        states.update((record.state, None) for record in page.items if isinstance(record, MembershipRecord))
        cursor = page.cursor
        if cursor is None:
            return [*states, *(state for state in RESERVED_STATES if state not in states)]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
