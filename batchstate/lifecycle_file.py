"""A lifecycle as a mapping or a TOML file, read through pydantic."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Discriminator, StrictStr, Tag, ValidationError

from batchstate.errors import InvalidLifecycleError, InvalidValueError
from batchstate.lifecycle_checks import check_named, listed
from batchstate.lifecycle_text import Draft, agreed, read_text

if TYPE_CHECKING:
    import os

    from pydantic_core import ErrorDetails

__all__ = ["read_mapping", "read_toml", "write_mapping"]

_TABLE = "lifecycle"
_FORMS = ("text", "table")
_NEEDED = {
    ("states", 1): "a list of texts",
    ("terminal", 1): "a list of texts",
    ("moves", 1): "a text, or a table of lists of texts,",
    ("moves", 2): "a list of texts",
}


def _form(value: object) -> str:
    return "text" if isinstance(value, str) else "table"


class LifecycleFile(BaseModel):
    """A lifecycle as it stands in a file.

    Attributes:
        states: In declaration order; left out, the order in which the moves name them.
        initial: The state that a batch is created in; left out, the first.
        moves: A table of source states, each with a list of the states that may follow it; or all
            of it as one text.
        terminal: The ends. They are known from the moves; named, they are checked.
        settled: Where a settled claim goes.
        abandoned: Where an abandoned claim goes.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    states: Sequence[StrictStr] | None = None
    initial: StrictStr | None = None
    moves: Annotated[
        Annotated[StrictStr, Tag("text")] | Annotated[Mapping[StrictStr, Sequence[StrictStr]], Tag("table")],
        Discriminator(_form),
    ] = ""
    terminal: Sequence[StrictStr] | None = None
    settled: StrictStr | None = None
    abandoned: StrictStr | None = None


def read_mapping(mapping: Mapping[str, Any]) -> Draft:
    """Read a lifecycle from a mapping, as JSON, TOML or YAML give one.

    Args:
        mapping: The keys are those of `LifecycleFile`.

    Returns:
        What it says.

    Raises:
        InvalidValueError: `mapping` is no mapping.
        InvalidLifecycleError: A key is unknown or a value is not of its kind; all such places are
            named. Or the moves are written as text and cannot be read.
    """
    if not isinstance(mapping, Mapping):
        raise InvalidValueError(f"a mapping is needed here, not {type(mapping).__name__}")
    try:
        read = LifecycleFile.model_validate(dict(mapping))
    except ValidationError as error:
        told = "\n".join(f"    {_told(problem)}" for problem in error.errors(include_url=False))
        raise InvalidLifecycleError(f"the lifecycle cannot be read:\n{told}") from None
    moves = read_text(read.moves) if isinstance(read.moves, str) else _from_table(read.moves)
    for state in moves.states if read.states is not None else ():
        check_named(read.states or (), {"moves": state})
    return Draft(
        states=moves.states if read.states is None else tuple(read.states),
        moves=moves.moves,
        initial=agreed("initial", read.initial, moves.initial),
        terminal=agreed("terminal", read.terminal, moves.terminal),
        settled=agreed("settled", read.settled, moves.settled),
        abandoned=agreed("abandoned", read.abandoned, moves.abandoned),
    )


def read_toml(source: str | os.PathLike[str]) -> Draft:
    """Read a lifecycle from TOML: its table `[lifecycle]`, or the top level where it has none.

    Args:
        source: The TOML itself as `str`, or the path of a file as `pathlib.Path`.

    Returns:
        What it says.

    Raises:
        InvalidValueError: The file cannot be opened.
        InvalidLifecycleError: It is no TOML in UTF-8, or no lifecycle.
    """
    where = "the text" if isinstance(source, str) else str(Path(source))
    try:
        text = source if isinstance(source, str) else Path(source).read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise InvalidValueError(f"{where} cannot be opened: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = " To read a file, give its path as pathlib.Path" if isinstance(source, str) else ""
        raise InvalidLifecycleError(f"{where} is no TOML: {error}.{hint}") from error
    table = document.get(_TABLE)
    return read_mapping(table if isinstance(table, dict) else document)


def write_mapping(draft: Draft) -> dict[str, Any]:
    """Return a lifecycle as a mapping of lists and texts, which `read_mapping` reads back.

    Args:
        draft: A lifecycle that has passed its checks.

    Returns:
        A new mapping without empty values, fit for JSON and TOML.
    """
    moves: dict[str, list[str]] = {}
    for source, to in draft.moves:
        moves.setdefault(source, []).append(to)
    mapping = {
        "states": list(draft.states),
        "initial": draft.initial,
        "moves": moves,
        "terminal": list(draft.terminal or ()),
        "settled": draft.settled,
        "abandoned": draft.abandoned,
    }
    return {key: value for key, value in mapping.items() if value is not None}


def _from_table(table: Mapping[str, Sequence[str]]) -> Draft:
    """Read the moves from a table of sources and targets."""
    states: dict[str, None] = {}
    moves: list[tuple[str, str]] = []
    for source, targets in table.items():
        states.update(dict.fromkeys((source, *targets)))
        moves.extend((source, to) for to in targets)
        twice = [to for to, count in Counter(targets).items() if count > 1]
        if twice:
            raise InvalidLifecycleError(f"moves: {listed(twice)} named twice after {source!r}. Name each state once")
    return Draft(tuple(states), tuple(moves))


def _told(problem: ErrorDetails) -> str:
    """Say in our words what pydantic found."""
    place = [part for i, part in enumerate(problem["loc"]) if not (i == 1 and part in _FORMS)]
    where = ".".join(str(part) for part in place)
    if problem["type"] == "extra_forbidden":
        known = tuple(LifecycleFile.model_fields)
        near = get_close_matches(where, known, n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        return f"{where}: unknown key. {meant}The keys are {listed(known)}"
    needed = _NEEDED.get((str(place[0]), len(place)), "text")
    return f"{where}: {needed} is needed here, not {problem['input']!r}"
