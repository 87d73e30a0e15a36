"""The fault store: a storage between whose calls a test can crash, stop, lose a reply, send again or take notes.

    store = FaultStore(storage, crash_after(2))
    with pytest.raises(Crash):
        transition(store, batch, "testing")        # the swap and the put are done, the delete is not
    transition(storage, …)                         # the store itself is as the crash left it

A fault is told of each primitive call twice, before it is sent and after its answer came, and may
raise in either place. Calls are counted from 1, and a fault counts the writes alone unless `on=`
names other methods. Each call of the core takes many items, so one call is one round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from attrs import Factory, define

from batchstate.errors import StorageUnavailableError
from batchstate.testing.forwarding import JOB_WRITES, Call, Forwarding

if TYPE_CHECKING:
    from batchstate.storage import Storage

__all__ = [
    "WRITES",
    "Crash",
    "Fault",
    "FaultStore",
    "Record",
    "Stop",
    "crash_after",
    "crash_before",
    "drop_reply",
    "record",
    "resend",
    "stop_after",
    "stop_before",
]

P = ParamSpec("P")
T = TypeVar("T")

WRITES = frozenset(
    {
        "create_batches",
        "create_whole",
        "delete_batches",
        "delete_records",
        "move_batches",
        "put_associations",
        "put_records",
        "restore_jobs",
        "update_batches",
        *JOB_WRITES,
    }
)
"""The primitive calls that change the store."""

LONGEST_STOP = 60.0
"""How many seconds a stopped thread waits at most, so that a failing test ends."""


class Crash(BaseException):
    """The worker died here. No `Exception`, so that nothing in the worker can handle its own death."""


def _nothing_before(_call: Call, /) -> None:
    pass


def _nothing_after(_call: Call, _answer: object, /) -> None:
    pass


def _once(_call: Call, /) -> bool:
    return False


@define
class Fault:
    """What is to go wrong, or to be noted.

    Attributes:
        before: is told of each call before it is sent; what it raises, the caller gets, and the
            call is not sent.
        after: is told of each call and its answer; what it raises, the caller gets in place of the
            answer, and the call was applied. A call that raises has no answer and is not told.
        again: says after an answer whether the same call is sent a second time. The caller gets the
            second answer. It is not asked about that one.
    """

    before: Callable[[Call], None] = _nothing_before
    after: Callable[[Call, object], None] = _nothing_after
    again: Callable[[Call], bool] = _once


def crash_before(n: int, *, on: Iterable[str] = WRITES) -> Fault:
    """Crash before the `n`-th call of the methods `on`: it is not sent."""
    due = _nth(n, on)

    def before(call: Call) -> None:
        if due(call):
            raise Crash(f"before call {n}, {call.method}")

    return Fault(before=before)


def crash_after(n: int, *, on: Iterable[str] = WRITES) -> Fault:
    """Crash after the `n`-th call of the methods `on`: it is applied and acknowledged."""
    due = _nth(n, on)

    def after(call: Call, _answer: object) -> None:
        if due(call):
            raise Crash(f"after call {n}, {call.method}")

    return Fault(after=after)


def drop_reply(n: int, *, on: Iterable[str] = WRITES) -> Fault:
    """Apply the `n`-th call of the methods `on`, and raise `StorageUnavailableError` in place of its answer."""
    due = _nth(n, on)

    def after(call: Call, _answer: object) -> None:
        if due(call):
            msg = f"the reply to call {n}, {call.method}, was lost; it may have been applied"
            raise StorageUnavailableError(msg)

    return Fault(after=after)


def resend(n: int | None = None, *, on: Iterable[str] = WRITES) -> Fault:
    """Send the `n`-th call of the methods `on` twice, as a client does whose reply is late; every one without `n`."""
    methods = frozenset(on)
    due = _nth(n, methods) if n is not None else lambda call: call.method in methods
    return Fault(again=due)


@define
class Record(Fault):
    """Notes all calls, reads too.

    Attributes:
        calls: what was sent, in order, each once its answer has come.
        answers: what each was answered.
    """

    calls: list[Call] = Factory(list)
    answers: list[object] = Factory(list)

    def __attrs_post_init__(self) -> None:
        self.after: Callable[[Call, object], None] = self._note

    def _note(self, call: Call, answer: object) -> None:
        self.calls.append(call)
        self.answers.append(answer)

    @property
    def methods(self) -> list[str]:
        """The names of the methods called, in order."""
        return [call.method for call in self.calls]

    @property
    def writes(self) -> list[str]:
        """The names of the methods called that write, in order."""
        return [call.method for call in self.calls if call.method in WRITES]


def record() -> Record:
    """Note the calls, in the order of their answers."""
    return Record()


@define
class Stop(Fault):
    """Holds the thread that comes to a call until another lets it go on."""

    _reached: Event = Factory(Event)
    _released: Event = Factory(Event)

    def wait(self, seconds: float = LONGEST_STOP) -> None:
        """Wait until a thread stands at the call; raises `TimeoutError` where none comes in that many seconds."""
        if not self._reached.wait(seconds):
            msg = f"no thread came to the call within {seconds} s"
            raise TimeoutError(msg)

    def release(self) -> None:
        """Let the thread go on."""
        self._released.set()

    def hold(self) -> None:
        """Stand here until `release`; raises `TimeoutError` after a minute."""
        self._reached.set()
        if not self._released.wait(LONGEST_STOP):
            msg = f"nobody released the thread within {LONGEST_STOP} s"
            raise TimeoutError(msg)


def stop_before(n: int, *, on: Iterable[str] = WRITES) -> Stop:
    """Hold the thread that is about to send the `n`-th call of the methods `on`."""
    due, stop = _nth(n, on), Stop()

    def before(call: Call) -> None:
        if due(call):
            stop.hold()

    stop.before = before
    return stop


def stop_after(n: int, *, on: Iterable[str] = WRITES) -> Stop:
    """Hold the thread to which the `n`-th call of the methods `on` was answered."""
    due, stop = _nth(n, on), Stop()

    def after(call: Call, _answer: object) -> None:
        if due(call):
            stop.hold()

    stop.after = after
    return stop


class FaultStore(Forwarding):
    """A storage that passes every call on, with faults around it, and has just the capabilities of the one inside.

    It is not the storage's owner: closing it closes nothing. `check_batches` does no I/O and
    `queue` neither, so no fault is told of them.

    Args:
        store: the storage that does the work.
        faults: what goes wrong; told in this order before a call, and after it too.
    """

    def __init__(self, store: Storage, *faults: Fault) -> None:
        super().__init__(store)
        self._faults = faults

    def __repr__(self) -> str:
        return f"<FaultStore around {self._store!r}>"

    def _send(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = Call(method.__name__, args, kwargs)
        answer = self._send_once(call, method, *args, **kwargs)
        if sum(fault.again(call) for fault in self._faults):  # each is asked, since each counts
            answer = self._send_once(call, method, *args, **kwargs)
        return answer

    def _send_once(self, call: Call, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        for fault in self._faults:
            fault.before(call)
        answer = method(*args, **kwargs)
        for fault in self._faults:
            fault.after(call, answer)
        return answer


def _nth(n: int, on: Iterable[str]) -> Callable[[Call], bool]:
    """Answer a test that is true for the `n`-th call of the methods `on` and for no other."""
    if n < 1:
        msg = f"calls are counted from 1, not {n!r}"
        raise ValueError(msg)
    methods = frozenset(on)
    numbers = count(1)  # one `next` is one step, also between threads

    def due(call: Call) -> bool:
        return call.method in methods and next(numbers) == n

    return due
