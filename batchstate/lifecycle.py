"""The lifecycle of a batch: its states, the allowed moves, and what follows what."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import Factory, field, frozen

from batchstate.errors import InvalidTransitionError, InvalidValueError
from batchstate.lifecycle_checks import (
    CLAIM_MOVES,
    RESERVED_STATES,
    among,
    as_moves,
    as_name_set,
    as_names,
    check_ends,
    check_moves,
    check_named,
    check_states,
    ends_of,
    listed,
)
from batchstate.lifecycle_file import read_mapping, read_toml, write_mapping
from batchstate.lifecycle_graph import Graph
from batchstate.lifecycle_text import Draft, agreed, read_text, write_text

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

__all__ = ["RESERVED_STATES", "Lifecycle"]


_CLAIMS_ONLY = "only a claim moves a batch into or out of it"


def _first(made: Lifecycle) -> str:
    return made.states[0] if made.states else ""


def _without_way_out(made: Lifecycle) -> frozenset[str]:
    return ends_of(made.states, made.moves)


@frozen(repr=False, cache_hash=True)
class Lifecycle:
    """The states of a batch and the moves between them. Checked when it is made, never changed.

    A claim's batch walks a lifecycle of its own, `claimed > settled | abandoned`, beside any other.
    Its three states are known to every lifecycle: they may be asked about and listed, but belong to
    the claims, and no other lifecycle may use their names.

    Where `settled` or `abandoned` is named, the end of a claim moves its batch there from any state
    that is not terminal, whether or not there is such a move. The answers about order, ways and
    cycles count that as a move; `allows` and `check_move`, which are about the user's own, do not.

    Attributes:
        states: The states in declaration order.
        moves: The allowed moves as `(source, to)`; kept in the order in which their states are
            declared.
        initial: The state that a batch is created in; the first one unless told.
        terminal: The states without a way out: the ends. They are known from the moves; named,
            they are checked.
        settled: The state to which the last settlement moves a claim's batch, if named. No move
            need lead there.
        abandoned: The state to which a batch goes whose claim lapsed, if named. No move need lead
            there.

    Raises:
        InvalidLifecycleError: It is empty, names an unknown or a reserved state, has a move from a
            state to itself, a state that is never reached, one without a way to an end, or a
            terminal state with a way out. The message says what to do.
        InvalidNameError: A state has a name that no state can have.
    """

    states: tuple[str, ...] = field(converter=as_names)
    moves: tuple[tuple[str, str], ...] = field(converter=as_moves)
    initial: str = field(kw_only=True, default=Factory(_first, takes_self=True))
    terminal: frozenset[str] = field(
        kw_only=True, converter=as_name_set, default=Factory(_without_way_out, takes_self=True)
    )
    settled: str | None = field(kw_only=True, default=None)
    abandoned: str | None = field(kw_only=True, default=None)
    _ways: Mapping[str, tuple[str, ...]] = field(init=False, eq=False)
    _graph: Graph = field(init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        """Check everything and make the tables."""
        check_states(self.states)
        check_moves(self.states, self.moves)
        named = {"initial": self.initial, "settled": self.settled, "abandoned": self.abandoned}
        check_named(self.states, {key: state for key, state in named.items() if state is not None})
        for state in self.terminal:
            check_named(self.states, {"terminal": state})
        place = {state: i for i, state in enumerate(self.states)}
        moves = sorted(set(self.moves), key=lambda move: (place[move[0]], place[move[1]]))
        ways: dict[str, list[str]] = {state: [] for state in self.states}
        for source, to in moves:
            ways[source].append(to)
        claims_own = () if self.states == RESERVED_STATES else RESERVED_STATES
        ended_claims = [
            (source, to)
            for to in (self.settled, self.abandoned)
            for source in self.states
            if to is not None and to != source and ways[source]
        ]
        graph = Graph.of((*self.states, *claims_own), (*moves, *ended_claims, *CLAIM_MOVES))
        check_ends(self.initial, self.terminal, ways, graph)
        # The class is frozen; these are its last moments in the making.
        object.__setattr__(self, "moves", tuple(moves))
        object.__setattr__(self, "_ways", {state: tuple(to) for state, to in ways.items()})
        object.__setattr__(self, "_graph", graph)

    # -------------------------------------------------------------------------- read and write

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        initial: str | None = None,
        terminal: Iterable[str] | None = None,
        settled: str | None = None,
        abandoned: str | None = None,
    ) -> Lifecycle:
        """Read a lifecycle from text such as `"queued > running > done; running > failed"`.

        Chains are separated by a semicolon or the end of the line. `>` is the arrow, `|` lists
        alternatives on either side of it, a chain without an arrow only declares its states, `#`
        begins a comment. A name with spaces or one of these signs stands in double quotes. What
        the keyword arguments say may also stand in the text, as `initial = queued`.

        Args:
            text: The definition.
            initial: The state that a batch is created in; the first one named unless told.
            terminal: The ends, to be checked.
            settled: The state to which a settled claim goes.
            abandoned: The state to which an abandoned claim goes.

        Returns:
            The lifecycle.

        Raises:
            InvalidLifecycleError: The text cannot be read (the message shows the place), or what
                it says is no sound lifecycle.
            InvalidNameError: A state has a name that no state can have.
        """
        draft = read_text(text)
        return cls._made(
            Draft(
                draft.states,
                draft.moves,
                agreed("initial", initial, draft.initial),
                agreed("terminal", None if terminal is None else as_names(terminal), draft.terminal),
                agreed("settled", settled, draft.settled),
                agreed("abandoned", abandoned, draft.abandoned),
            )
        )

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Lifecycle:
        """Read a lifecycle from a mapping, as JSON or YAML give one.

        Args:
            mapping: `moves` is a mapping from each source to the list of states that may follow it,
                or the text that `parse` reads. `states` (a list) sets the order of declaration.
                `initial`, `terminal` (a list), `settled` and `abandoned` are as for `parse`. No
                other key is taken.

        Returns:
            The lifecycle.

        Raises:
            InvalidLifecycleError: A key is unknown, a value is not of its kind, or the whole is no
                sound lifecycle.
            InvalidNameError: A state has a name that no state can have.
        """
        return cls._made(read_mapping(mapping))

    @classmethod
    def from_toml(cls, source: str | os.PathLike[str]) -> Lifecycle:
        """Read a lifecycle from TOML: its table `[lifecycle]`, or the top level where it has none.

        Args:
            source: The TOML itself as `str`, or the path of a file as `pathlib.Path`. The keys are
                those of `from_mapping`.

        Returns:
            The lifecycle.

        Raises:
            InvalidValueError: The file cannot be opened.
            InvalidLifecycleError: It is no TOML in UTF-8, or no sound lifecycle.
            InvalidNameError: A state has a name that no state can have.
        """
        return cls._made(read_toml(source))

    @classmethod
    def _made(cls, draft: Draft) -> Lifecycle:
        check_states(draft.states)
        ends = draft.terminal
        return cls(
            draft.states,
            draft.moves,
            initial=draft.states[0] if draft.initial is None else draft.initial,
            terminal=ends_of(draft.states, draft.moves) if ends is None else ends,
            settled=draft.settled,
            abandoned=draft.abandoned,
        )

    def _draft(self) -> Draft:
        ends = tuple(state for state in self.states if state in self.terminal)
        return Draft(self.states, self.moves, self.initial, ends, self.settled, self.abandoned)

    def to_mapping(self) -> dict[str, Any]:
        """Return a new mapping of lists and texts, fit for JSON and TOML, for `from_mapping`."""
        return write_mapping(self._draft())

    def __str__(self) -> str:
        """Return the text from which `parse` makes an equal lifecycle."""
        return write_text(self._draft())

    def __repr__(self) -> str:
        return f"{type(self).__name__}.parse({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle what was declared; the tables are made anew on the other side."""
        make = partial(type(self), self.states, self.moves, initial=self.initial)
        return partial(make, settled=self.settled, abandoned=self.abandoned), ()

    # -------------------------------------------------------------------------------- the moves

    def allows(self, source: str, to: str) -> bool:
        """Say whether a user may move a batch from one state to another.

        Args:
            source: The present state.
            to: The state to go to. The present one is always allowed.

        Returns:
            `False` also where a state is unknown.
        """
        return to in self._ways.get(source, ()) or (source == to and source in self._graph.rank)

    def check_state(self, state: str) -> str:
        """Refuse a state that a user cannot put a batch into.

        Args:
            state: What the caller named.

        Returns:
            The same.

        Raises:
            InvalidValueError: It is no state of this lifecycle; the message names those there are.
        """
        if state in self.states:
            return state
        if state in RESERVED_STATES:
            raise InvalidValueError(
                f"state {state!r} belongs to the claims: {_CLAIMS_ONLY}. {among(None, self.states)}"
            )
        raise InvalidValueError(f"unknown state {state!r}. {among(state, self.states)}")

    def check_move(self, source: str, to: str) -> None:
        """Refuse a move that the lifecycle does not allow.

        Args:
            source: The present state.
            to: The state to go to. The present one is always allowed.

        Raises:
            InvalidValueError: `to` is no state of this lifecycle.
            InvalidTransitionError: There is no such move; the message names those there are.
        """
        if self.allows(source, to):
            return
        for state in (source, to):
            if state in RESERVED_STATES and state not in self.states:
                raise InvalidTransitionError(
                    f"no move from {source!r} to {to!r}: {state!r} belongs to the claims, and {_CLAIMS_ONLY}"
                )
        self.check_state(to)
        if source not in self._ways:
            why = f"{source!r} is no state of this lifecycle. {among(source, self.states)}"
        elif self._ways[source]:
            why = f"allowed from {source!r}: {listed(self._ways[source])}"
        else:
            why = f"{source!r} is terminal, nothing follows it"
        raise InvalidTransitionError(f"no move from {source!r} to {to!r}: {why}")

    def is_terminal(self, state: str) -> bool:
        """Say whether a state is an end. `InvalidValueError` where it is unknown."""
        return not self._graph.after[self._known(state)]

    # --------------------------------------------------------------------- what follows on what

    def ordered(self, states: Iterable[str]) -> tuple[str, ...]:
        """Return states in reading order, old before new, each once.

        A state comes after all those from which it can be reached. Where several could be next, and
        among the states of one cycle, the order of declaration decides.

        Args:
            states: Any of this lifecycle's states and of the claims' own.

        Returns:
            The same states.

        Raises:
            InvalidValueError: One of them is unknown.
        """
        return tuple(sorted(self._all_known(states), key=self._graph.rank.__getitem__))

    def preceding(self, states: Iterable[str]) -> frozenset[str]:
        """Return every state from which one or more moves lead to one of these.

        Args:
            states: Any of this lifecycle's states and of the claims' own.

        Returns:
            The states themselves are among them only where one leads to another or lies on a cycle.

        Raises:
            InvalidValueError: One of them is unknown.
        """
        return frozenset[str]().union(*(self._graph.before[state] for state in self._all_known(states)))

    def reaches(self, source: str, to: str) -> bool:
        """Say whether one or more moves lead from one state to another.

        Args:
            source: Where to begin.
            to: Where to arrive. A state reaches itself only on a cycle.

        Returns:
            Whether there is a way.

        Raises:
            InvalidValueError: One of the two is unknown.
        """
        return self._known(to) in self._graph.after[self._known(source)]

    def on_cycle(self, source: str, to: str) -> bool:
        """Say whether a batch can make the same move a second time.

        Args:
            source: Where the move begins.
            to: Where it ends.

        Returns:
            `True` where `to` leads back to `source`, or is the same state.

        Raises:
            InvalidValueError: One of the two is unknown.
        """
        return source == to or self.reaches(to, source)

    def any_cycle(self, states: Iterable[str]) -> bool:
        """Say whether a batch can go from one of these states to another and back.

        Args:
            states: Any of this lifecycle's states and of the claims' own.

        Returns:
            `True` where two or more of them lie on a common cycle.

        Raises:
            InvalidValueError: One of them is unknown.
        """
        loops = [self._graph.loop[state] for state in self._all_known(states)]
        return len(set(loops)) < len(loops)

    def _known(self, state: str) -> str:
        try:
            known = state in self._graph.rank
        except TypeError:  # not even hashable
            known = False
        return state if known else self.check_state(state)

    def _all_known(self, states: Iterable[str]) -> set[str]:
        return {self._known(state) for state in as_names(states)}

    # -------------------------------------------------------------------------------- pictures

    def mermaid(self, counts: Mapping[str, int] | None = None) -> str:
        """Draw the lifecycle as a Mermaid state diagram; see `batchstate.pictures.mermaid`."""
        from batchstate import pictures  # noqa: PLC0415 - whoever does not draw does not load it

        return pictures.mermaid(self, counts)

    def svg(self, counts: Mapping[str, int] | None = None) -> str:
        """Draw the lifecycle as an SVG that needs nothing else; see `batchstate.pictures.svg`."""
        from batchstate import pictures  # noqa: PLC0415 - whoever does not draw does not load it

        return pictures.svg(self, counts)
