r"""The text form of a lifecycle: read it, with the place of each mistake, and write it.

    # who may follow whom
    queued > testing > merging > merged
    testing | merging > failed
    "on hold" > queued; queued > "on hold"
    initial = queued

Chains are separated by a semicolon or the end of the line. `>` is the arrow, `|` lists
alternatives on either side of it, and a chain without an arrow only declares its states. `#` begins
a comment. A name that holds a space or one of the signs stands in double quotes, in which `\"`
is a quote and `\\` a backslash. `initial = …`, `terminal = …`, `settled = …` and `abandoned = …`
say what the chains cannot.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NoReturn, TypeVar

from attrs import define, field, frozen

from batchstate.errors import InvalidLifecycleError, InvalidValueError

__all__ = ["Draft", "Moves", "agreed", "main_line", "read_text", "write_text"]

Moves = Sequence[tuple[str, str]]

_TOKEN = re.compile(
    r"""
      (?P<end>    ; | \r\n? | \n )
    | (?P<skip>   [^\S\r\n]+ | \#[^\r\n]* )
    | (?P<sign>   [>|=] )
    | (?P<quoted> " (?: [^"\\\r\n] | \\["\\] )* " )
    | (?P<name>   [^\s>;|\#"=,\u2192]+ )
    """,
    re.VERBOSE,
)
_BARE = re.compile(r'(?!-)[^\s>;|#"=,\u2192]+(?<!-)')
_SETTINGS = ("initial", "terminal", "settled", "abandoned")
_KNOWN = f"The settings are {', '.join(_SETTINGS)}; the arrow is '>'"
_Said = TypeVar("_Said", str, Collection[str])
_SHOWN = 72  # characters of the offending line that an error shows


@frozen
class Draft:
    """What was read of a lifecycle, not yet checked.

    Attributes:
        states: In declaration order.
        moves: The allowed moves as `(source, to)`.
        initial: The state that a batch is created in, `None` where nothing is said.
        terminal: The states declared as ends, `None` where nothing is said.
        settled: Where a settled claim goes, if said.
        abandoned: Where an abandoned claim goes, if said.
    """

    states: Sequence[str]
    moves: Moves
    initial: str | None = None
    terminal: Collection[str] | None = None
    settled: str | None = None
    abandoned: str | None = None


@frozen
class _Token:
    kind: str  # "name", ">", "|", "=" or "end"
    value: str
    offset: int


def read_text(text: str) -> Draft:
    """Read the text form.

    Args:
        text: The definition.

    Returns:
        What it says; each state once, in the order in which the names come up.

    Raises:
        InvalidValueError: `text` is no text.
        InvalidLifecycleError: It cannot be read; the message shows the place.
    """
    if not isinstance(text, str):
        raise InvalidValueError(f"a lifecycle is defined by text, not by {type(text).__name__}")
    reader = _Reader(text)
    statement: list[_Token] = []
    for token in reader.tokens():
        if token.kind == "end":
            reader.statement(statement, token)
            statement = []
        else:
            statement.append(token)
    return Draft(
        states=tuple(reader.states),
        moves=tuple(reader.moves),
        initial=reader.one("initial"),
        terminal=reader.settings.get("terminal"),
        settled=reader.one("settled"),
        abandoned=reader.one("abandoned"),
    )


@define
class _Reader:
    """Reads one text and gathers what it says."""

    text: str
    # Dictionaries that serve as ordered sets.
    states: dict[str, None] = field(factory=dict)
    moves: dict[tuple[str, str], None] = field(factory=dict)
    settings: dict[str, list[str]] = field(factory=dict)

    def one(self, setting: str) -> str | None:
        """Return the single value of a setting."""
        return self.settings.get(setting, [None])[0]

    def tokens(self) -> list[_Token]:
        """Cut the text into names, signs and ends of statements."""
        found: list[_Token] = []
        offset = 0
        while offset < len(self.text):
            match = _TOKEN.match(self.text, offset)
            if match is None:
                self._unreadable(offset)
            kind, value = match.lastgroup, match.group()
            if kind == "sign":
                found.append(_Token(value, value, offset))
            elif kind == "quoted":
                found.append(_Token("name", re.sub(r"\\(.)", r"\1", value[1:-1]), offset))
            elif kind == "name":
                if not _BARE.fullmatch(value):
                    self.fail(
                        offset,
                        "a name without quotes neither begins nor ends with '-'",
                        "The arrow is '>' alone; put the name in double quotes if it is meant so",
                    )
                found.append(_Token("name", value, offset))
            elif kind == "end":
                found.append(_Token("end", value, offset))
            offset = match.end()
        found.append(_Token("end", "", offset))
        return found

    def statement(self, tokens: list[_Token], end: _Token) -> None:
        """Take in what stands between two separators; `end` is the second of them."""
        if not tokens:
            return
        if len(tokens) > 1 and tokens[1].kind == "=":
            self._setting(tokens, end)
            return
        groups = self._groups(tokens, end)
        self.states.update(dict.fromkeys(name for group in groups for name in group))
        for sources, targets in pairwise(groups):
            for source in sources:
                self.moves.update(dict.fromkeys((source, to) for to in targets))

    def _setting(self, tokens: list[_Token], end: _Token) -> None:
        name, sign, *values = tokens
        if name.value not in _SETTINGS:
            self.fail(name.offset, f"{name.value!r} is no setting", _KNOWN)
        if name.value in self.settings:
            self.fail(name.offset, f"{name.value!r} is set twice", "Keep one of the two")
        if not values:
            self.fail(sign.offset, "nothing follows the '='", "Name a state after it")
        groups = self._groups(values, end)
        if len(groups) > 1:
            self.fail(values[0].offset, "a setting takes no arrow", "List states with '|'")
        if len(groups[0]) > 1 and name.value != "terminal":
            self.fail(values[0].offset, f"{name.value!r} takes one state", "Keep one of them")
        self.settings[name.value] = groups[0]

    def _groups(self, tokens: list[_Token], end: _Token) -> list[list[str]]:
        """Read a chain: the alternatives at each of its steps."""
        groups: list[list[str]] = [[]]
        after_name = False
        for token in tokens:
            if token.kind == "name":
                if after_name:
                    self.fail(
                        token.offset,
                        "two names in a row",
                        "Write '>' or '|' between them, or put a name with spaces in double quotes",
                    )
                groups[-1].append(token.value)
            elif token.kind == "=":
                self.fail(token.offset, "'=' has no place here", "The arrow is '>'")
            elif not after_name:
                self.fail(token.offset, f"a name is missing before {token.kind!r}", "Name a state")
            elif token.kind == ">":
                groups.append([])
            after_name = token.kind == "name"
        if not after_name:
            self.fail(
                end.offset,
                f"a name is missing after {tokens[-1].kind!r}",
                "Name a state; a chain ends at the end of its line",
            )
        return groups

    def _unreadable(self, offset: int) -> NoReturn:
        sign = self.text[offset]
        if sign == '"':
            self.fail(
                offset,
                "this quote is not closed as it should be",
                'Close it on its line; inside, write \\" for a quote and \\\\ for a backslash',
            )
        hint = "Alternatives are listed with '|'" if sign == "," else "The arrow is '>'"
        self.fail(offset, f"{sign!r} has no place here", f"{hint}; a name with it needs quotes")

    def fail(self, offset: int, what: str, hint: str) -> NoReturn:
        """Refuse the text and show the place."""
        before = re.split(r"\r\n?|\n", self.text[:offset])
        column = len(before[-1])
        rest = re.split(r"[\r\n]", self.text[offset:], maxsplit=1)[0]
        skipped = max(0, column - _SHOWN // 2)
        line = (before[-1] + rest)[skipped : skipped + _SHOWN].replace("\t", " ")
        raise InvalidLifecycleError(
            f"line {len(before)}, column {column + 1}: {what}. {hint}.\n    {line}\n    {' ' * (column - skipped)}^"
        )


def agreed(setting: str, said: _Said | None, in_text: _Said | None) -> _Said | None:
    """Return what is said of a setting beside the text and in it.

    Args:
        setting: Its name, for the error.
        said: What is said beside the text, `None` for nothing.
        in_text: What the text says, `None` for nothing.

    Returns:
        The one that says something.

    Raises:
        InvalidLifecycleError: Both do, and differ.
    """
    if said is None:
        return in_text
    if in_text is not None and _plain(said) != _plain(in_text):
        raise InvalidLifecycleError(f"{setting} is {said!r} here and {in_text!r} in the text. Keep one of the two")
    return said


def _plain(said: str | Collection[str]) -> str | frozenset[str]:
    return said if isinstance(said, str) else frozenset(said)


def write_text(draft: Draft) -> str:
    """Write a lifecycle so that `read_text` reads the same back.

    Args:
        draft: A lifecycle that has passed its checks, its moves in declaration order.

    Returns:
        One line: the main line first, then the other moves, then what the chains do not say.
    """
    chains = _chains(draft.states, draft.moves)
    mentioned = dict.fromkeys(name for chain in chains for group in chain for name in group)
    if tuple(mentioned) != tuple(draft.states):
        chains = [(tuple(draft.states),), *chains]
    parts = [" > ".join(" | ".join(map(_quoted, group)) for group in chain) for chain in chains]
    if draft.initial not in {None, draft.states[0]}:
        parts.append(f"initial = {_quoted(str(draft.initial))}")
    for setting, value in (("settled", draft.settled), ("abandoned", draft.abandoned)):
        if value is not None:
            parts.append(f"{setting} = {_quoted(value)}")
    return "; ".join(parts)


def _chains(states: Sequence[str], moves: Moves) -> list[tuple[tuple[str, ...], ...]]:
    """Say the moves in few chains: the main line, then sources that share their targets."""
    line = main_line(states, moves)
    on_line = set(pairwise(line))
    targets: dict[str, list[str]] = {}
    for source, to in moves:
        if (source, to) not in on_line:
            targets.setdefault(source, []).append(to)
    sources: dict[tuple[str, ...], list[str]] = {}
    for source, group in targets.items():
        sources.setdefault(tuple(group), []).append(source)
    chains = [(tuple(group), to) for to, group in sources.items()]
    main: list[tuple[str, ...]] = [(state,) for state in line]
    for chain in chains:
        if chain[0] == tuple(line[-2:-1]):
            # The last step of the line has alternatives that are its own.
            main[-1] = (line[-1], *chain[1])
            chains.remove(chain)
            break
    return [tuple(main), *chains]


def main_line(states: Sequence[str], moves: Moves) -> list[str]:
    """Return the way from the first state that goes, at each step, to the next declared one.

    Args:
        states: In declaration order.
        moves: Sorted in declaration order.

    Returns:
        The states along it.
    """
    place = {state: i for i, state in enumerate(states)}
    line = [states[0]]
    for source, to in moves:
        if source == line[-1] and place[to] > place[source]:
            line.append(to)
    return line


def _quoted(name: str) -> str:
    if _BARE.fullmatch(name):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
