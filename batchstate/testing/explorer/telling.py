"""Tells a schedule step by step, as a person would read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from batchstate.entities import Batch, MembershipRecord, Step
from batchstate.errors import (
    AlreadyExistsError,
    InvalidTransitionError,
    NotFoundError,
    VersionMismatchError,
)
from batchstate.testing.explorer.actors import Message
from batchstate.testing.explorer.running import Answer, Ending, Raised
from batchstate.testing.explorer.schedules import Act
from batchstate.testing.forwarding import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from batchstate.storage import Swap

__all__ = ["Told", "tell"]


@frozen
class Told:
    """One step of a schedule and all that is known about it.

    Attributes:
        actor: who.
        act: what it did.
        message: the message it worked on.
        begins: whether it began a delivery with this step.
        call: what it asked the store, and
        answer: what the store answered.
        changed: whether that changed the store.
        ending: how the work on the message ended, for an acknowledgement.
        again: whether the message comes again.
        world: the store after it.
    """

    actor: str
    act: Act
    message: Message
    begins: bool = False
    call: Call | None = None
    answer: Answer = None
    changed: bool = False
    ending: Ending | None = None
    again: bool = False
    world: str = ""


def tell(start: str, steps: Sequence[Told]) -> str:
    """Tell the steps, a line each, with the store after each step that changed it."""
    width = max((len(step.actor) for step in steps), default=0)
    lines = [f"     {'':{width}}  at the start: {start}"]
    for number, step in enumerate(steps, 1):
        lines.append(f"{number:3}. {step.actor:{width}}  {_sentence(step)}")
        if step.changed:
            lines.append(f"     {'':{width}}    now: {step.world}")
    return "\n".join(lines)


def _sentence(step: Told) -> str:
    if step.act is Act.CRASH:
        return f"crashes; its message {step.message.text!r} will come again"
    if step.act is Act.ACKNOWLEDGE:
        return _end(step)
    begin = f"takes {step.message.text!r}: " if step.begins else ""
    end = {
        Act.RESEND: "; the reply is late, so its client will send it again",
        Act.LOSE: "; the reply is lost",
    }.get(step.act, "")
    return f"{begin}{_call(step)}{end}"


def _end(step: Told) -> str:
    error = step.ending.error if step.ending is not None else None
    if step.again:
        return f"gives {step.message.text!r} back to come again ({type(error).__name__})"
    if error is not None:
        return f"drops {step.message.text!r} ({type(error).__name__})"
    value = step.ending.value if step.ending is not None else None
    return f"acknowledges {step.message.text!r}{_value(value)}"


def _value(value: object) -> str:
    if isinstance(value, Step):
        return f": {value.outcome}"
    if isinstance(value, (list, tuple)) and all(isinstance(item, Batch) for item in value):
        return f": {_names(value)}"
    return ""


def _call(step: Told) -> str:
    if step.call is None:
        raise AssertionError
    if isinstance(step.answer, Raised):
        return f"{step.call.method}, and gets {type(step.answer.error).__name__}: {step.answer.error}"
    say = _SAY.get(step.call.method)
    if say is None:
        return f"calls {step.call.method}"
    return say(step.call.args, step.answer, step.changed)


def _each(items: Iterable[Any], answers: object, say: Callable[[Any], str], *, changed: bool) -> str:
    outcomes = answers if isinstance(answers, list) else []
    told = [
        say(item) + (f": {_refusal(outcome)}" if outcome is not None else "" if changed else ", which changes nothing")
        for item, outcome in zip(items, outcomes, strict=True)
    ]
    return ", ".join(told)


def _refusal(outcome: object) -> str:
    if isinstance(outcome, (VersionMismatchError, AlreadyExistsError)) and outcome.current is not None:
        row = outcome.current
        retired = ", retired" if row.retired_at is not None else ""
        return f"refused, the row is in {row.state} at v{row.version}{retired}"
    if isinstance(outcome, NotFoundError):
        return "refused, there is no such row"
    if isinstance(outcome, InvalidTransitionError):
        return f"refused, {outcome}"
    return f"refused, {type(outcome).__name__}"


def _swap(swap: Swap) -> str:
    before, after = swap.before, swap.after
    versions = f"(v{before.version} → v{after.version})"
    if after.retired_at is not None:
        return f"marks batch {after.id} retired {versions}"
    if before.state == after.state:
        return f"updates batch {after.id} in {after.state} {versions}"
    return f"swaps batch {after.id} {before.state} → {after.state} {versions}"


def _move(swap: Swap) -> str:
    before, after = swap.before, swap.after
    return (
        f"moves batch {after.id} {before.state} → {after.state} with its records (v{before.version} → v{after.version})"
    )


def _records(verb: str, up_to: str, records: Iterable[MembershipRecord], *, changed: bool) -> str:
    states: dict[tuple[str, int], list[str]] = {}
    for record in records:
        states.setdefault((record.batch_id, record.version), []).append(record.state)
    told = [
        f"the record of {batch_id} under {', '.join(under)} ({up_to}v{version})"
        for (batch_id, version), under in states.items()
    ]
    return f"{verb} {', '.join(told)}{'' if changed else ', which changes nothing'}"


def _row(batch: object) -> str:
    if isinstance(batch, Batch):
        return f"in {batch.state} at v{batch.version}{', retired' if batch.retired_at is not None else ''}"
    return "no such row" if batch is None else type(batch).__name__


def _reads(args: tuple[Any, ...], answer: Any, _changed: bool) -> str:  # noqa: ANN401, FBT001 - a table of functions
    return "reads " + ", ".join(f"batch {batch_id}: {_row(answer.get(batch_id))}" for batch_id in args[0])


def _reads_records(args: tuple[Any, ...], answer: Any, _changed: bool) -> str:  # noqa: ANN401, FBT001 - as all tellers
    versions = {(record.state, record.batch_id): f"v{record.version}" for record in answer}
    return "reads " + ", ".join(
        f"the record of {batch_id} under {state}: {versions.get((state, batch_id), 'gone')}"
        for state, batch_id in args[0]
    )


def _names(items: Iterable[Any]) -> str:
    return (
        ", ".join(
            f"{item.batch_id} v{item.version}" if isinstance(item, MembershipRecord) else str(item.id) for item in items
        )
        or "none"
    )


_SAY: dict[str, Callable[[tuple[Any, ...], Any, bool], str]] = {
    "get_batches": _reads,
    "get_records": _reads_records,
    "list_records": lambda args, answer, _: f"lists the records under {args[0]}: {_names(answer.items)}",
    "list_records_of": lambda args, answer, _: (
        f"lists the records under {', '.join(args[0])} at once: {_names(answer)}"
    ),
    "list_associations": lambda args, answer, _: (
        f"lists the attempts at {args[0]}: " + (", ".join(item.batch_id for item in answer) or "none")
    ),
    "list_retired": lambda _, answer, __: f"lists the retired batches: {_names(answer.items)}",
    "update_batches": lambda args, answer, changed: _each(args[0], answer, _swap, changed=changed),
    "move_batches": lambda args, answer, changed: _each(args[0], answer, _move, changed=changed),
    "put_records": lambda args, _, changed: _records("puts", "", args[0], changed=changed),
    "delete_records": lambda args, _, changed: _records("deletes", "up to ", args[0], changed=changed),
    "create_batches": lambda args, answer, changed: _each(
        args[0], answer, lambda batch: f"inserts batch {batch.id} in {batch.state} (v{batch.version})", changed=changed
    ),
    "create_whole": lambda args, answer, changed: _each(
        args[0], answer, lambda batch: f"creates batch {batch.id} in {batch.state} with its record", changed=changed
    ),
    "put_associations": lambda args, answer, changed: _each(
        args[0], answer, lambda item: f"associates {item.request_id} with {item.batch_id}", changed=changed
    ),
    "delete_batches": lambda args, answer, changed: _each(
        args[0], answer, lambda batch: f"deletes batch {batch.id}: records, associations, row", changed=changed
    ),
}
