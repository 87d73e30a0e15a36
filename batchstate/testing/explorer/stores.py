"""The states of the store, each kept once, and what each call does to each of them, each done once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from batchstate.storage import Storage
from batchstate.testing.explorer.canonical import canonical
from batchstate.testing.explorer.running import Answer, perform

if TYPE_CHECKING:
    from collections.abc import Hashable

    from batchstate.testing.forwarding import Call

__all__ = ["READS", "Frozen", "Rewindable", "Stores"]

READS = frozenset(
    {
        "get_batches",
        "get_records",
        "list_associations",
        "list_queues",
        "list_records",
        "list_records_of",
        "list_retired",
        "scan",
    }
)
"""The primitive calls that change nothing."""


class Frozen(Protocol):
    """A store's content at one instant; `key` is equal where no later call could tell two apart."""

    @property
    def key(self) -> Hashable:
        """What is compared."""


class Rewindable(Storage, Protocol):
    """A storage that can go back to what it was."""

    def freeze(self) -> Frozen:
        """Answer the content now."""

    def thaw(self, frozen: Any, /) -> None:  # noqa: ANN401 - what its own `freeze` answered
        """Go back to it."""


class Stores:
    """Numbers the states of a store, the calls made on it and the answers they got; and knows what leads where.

    Args:
        store: the store; it is at the first state now, which gets the number 0.
    """

    def __init__(self, store: Rewindable) -> None:
        self.store = store
        self.calls: list[Call] = []
        self.answers: list[Answer] = []
        self.known: list[dict[int, tuple[int, int]]] = []
        """For each state, by call: the state it leads to, and its answer."""
        self._frozen: list[Frozen] = []
        self._states: dict[Hashable, int] = {}
        self._call_numbers: dict[Hashable, int] = {}
        self._answer_numbers: dict[Hashable, int] = {}
        self._at = self._number_of_state()

    def at(self, state: int) -> Rewindable:
        """Answer the store, brought to `state`; good until the next use of this object."""
        if self._at != state:
            self.store.thaw(self._frozen[state])
            self._at = state
        return self.store

    def perform(self, state: int, call: int) -> tuple[int, int]:
        """Do a call in a state, for the first time; answers the state it leads to, and its answer."""
        made = self.calls[call]
        answer = self.number_of_answer(perform(self.at(state), made))
        if made.method not in READS:
            self._at = self._number_of_state()
        self.known[state][call] = (self._at, answer)
        return self._at, answer

    def number_of_call(self, call: Call) -> int:
        """Answer the number of a call."""
        number = self._call_numbers.setdefault(canonical(call), len(self.calls))
        if number == len(self.calls):
            self.calls.append(call)
        return number

    def number_of_answer(self, answer: Answer) -> int:
        """Answer the number of an answer."""
        number = self._answer_numbers.setdefault(canonical(answer), len(self.answers))
        if number == len(self.answers):
            self.answers.append(answer)
        return number

    def __len__(self) -> int:
        return len(self._frozen)

    def _number_of_state(self) -> int:
        frozen = self.store.freeze()
        number = self._states.setdefault(frozen.key, len(self._frozen))
        if number == len(self._frozen):
            self._frozen.append(frozen)
            self.known.append({})
        return number
