"""An actor at work on one message, stopped before each primitive call: the real function in a greenlet.

A greenlet is a stack of its own that runs until it hands over. Whoever explores or replays starts
one for a message, gets its first call, and gets the next one for each answer given back.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeAlias, TypeVar, cast

from attrs import frozen
from greenlet import getcurrent, greenlet

from batchstate.errors import BatchStateError, StorageUnavailableError, TransitionIncompleteError
from batchstate.marks import marks_from
from batchstate.testing.forwarding import Call, Forwarding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batchstate.storage import Storage
    from batchstate.testing.explorer.actors import Actor, Message

__all__ = ["LOST", "Answer", "Ending", "Raised", "Running", "Verdict", "judge", "perform", "steady_marks"]

P = ParamSpec("P")
T = TypeVar("T")


@frozen
class Raised:
    """The store raised this in place of an answer."""

    error: BatchStateError


@frozen
class Ending:
    """How the work on a message ended, before its acknowledgement.

    Attributes:
        value: what it answered.
        error: what it raised, else `None`.
    """

    value: object = None
    error: Exception | None = None


Verdict: TypeAlias = Literal["done", "again", "dropped"]
"""What becomes of a message: it is acknowledged as done, comes again, or is acknowledged as one that says nothing."""

LOST = Raised(StorageUnavailableError("the reply was lost; the write may have been applied"))
"""In place of an answer that does not reach the actor."""

Answer: TypeAlias = object
"""What the store answered, or `Raised`."""


def perform(store: Storage, call: Call) -> Answer:
    """Send `call` to `store`; answers what the store does, or `Raised`."""
    try:
        return getattr(store, call.method)(*call.args, **call.kwargs)
    except BatchStateError as error:
        return Raised(error)


def judge(actor: Actor, message: Message, ending: Ending) -> tuple[Verdict, str | None]:
    """Answer what becomes of a message whose work ended so, and what is wrong with that ending, if something is."""
    error = ending.error
    if error is None:
        return "done", None
    lost = (StorageUnavailableError, TransitionIncompleteError) if actor.lost_replies else ()
    if isinstance(error, (*message.again, *lost)):
        return "again", None
    if isinstance(error, message.drops):
        return "dropped", None
    return "dropped", f"{actor.name} got an error that is not documented there: {type(error).__name__}: {error}"


@contextmanager
def steady_marks(prefix: str) -> Iterator[None]:
    """Take the marks `prefix-1`, `prefix-2` …, so that equal states have equal marks."""
    numbers = count(1)
    with marks_from(lambda: f"{prefix}-{next(numbers)}"):
        yield


class _Asking(Forwarding):
    """Sends nothing: it hands each call over and waits for the answer."""

    def _send(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        scheduler = getcurrent().parent
        if scheduler is None:
            msg = "an actor's store is used by the actor alone"
            raise RuntimeError(msg)
        answer = scheduler.switch(Call(method.__name__, args, kwargs))
        if isinstance(answer, Raised):
            raise answer.error
        if isinstance(answer, (list, dict)):
            return cast("T", answer.copy())  # an actor may change what it was answered, which others get too
        return cast("T", answer)


class Running:
    """The work on one delivery of one message.

    Args:
        store: the store it believes to talk to; gives the capabilities, is never called.
        actor: who works.
        message: on what.
        marks: what the marks of its writes begin with.
    """

    def __init__(self, store: Storage, actor: Actor, message: Message, marks: str) -> None:
        self._asking = actor.sees(cast("Storage", _Asking(store)))
        self._message = message
        self._marks = marks.replace(" ", "_").replace(":", "_")
        self._greenlet = greenlet(self._work)

    def start(self) -> Call | Ending:
        """Begin; answers the first call, or how the work ended without one."""
        return cast("Call | Ending", self._greenlet.switch())

    def answer(self, answer: Answer) -> Call | Ending:
        """Go on with the answer to the last call; answers the next call, or how the work ended."""
        return cast("Call | Ending", self._greenlet.switch(answer))

    def _work(self) -> Ending:
        with steady_marks(self._marks):
            try:
                return Ending(self._message.run(self._asking))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is judged by whoever explores
                return Ending(error=error)
