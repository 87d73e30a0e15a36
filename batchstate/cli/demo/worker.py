"""A worker process: takes messages off its pipe, does what they ask for, answers, and dies in the middle when told."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING
from zlib import crc32

from batchstate import BatchQueue, Lifecycle, VersionMismatchError, open_storage
from batchstate.cli.demo.messages import Answer, Create, Message, Move, Order
from batchstate.three_steps import ThreeSteps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from batchstate import Association, Batch, MembershipRecord, Swap
    from batchstate.storage import Outcome

__all__ = ["FLOW", "QUEUE", "next_of", "work"]

QUEUE = "merges"
FLOW = Lifecycle.parse("queued > testing > merging > merged; testing | merging > failed")


class _Mortal(ThreeSteps):
    """The protocol's three steps, with a kill -9 after the write that was foretold."""

    dies_after: int | None = None

    def _live_or_die(self) -> None:
        if self.dies_after is not None:
            self.dies_after -= 1
            if self.dies_after <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def put_associations(self, associations: Sequence[Association]) -> list[Outcome]:
        outcomes = super().put_associations(associations)
        self._live_or_die()
        return outcomes

    def create_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        outcomes = super().create_batches(batches)
        self._live_or_die()
        return outcomes

    def update_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        outcomes = super().update_batches(swaps)
        self._live_or_die()
        return outcomes

    def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        outcomes = super().put_records(records)
        self._live_or_die()
        return outcomes


def work(url: str, name: str, pipe: Connection, *, atomic: bool) -> None:
    """Work until the pipe is closed or brings `None`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor ends the demo, and its workers with it
    whole = open_storage(url, queue=QUEUE)
    store = whole if atomic else _Mortal(whole)
    with BatchQueue(store, FLOW, by=name) as queue:
        while (order := _receive(pipe)) is not None:
            if isinstance(store, _Mortal):
                store.dies_after = order.dies_after
            answer = _handle(queue, order.message)
            if order.dies_after is not None:  # in one step there is no middle: it dies before it acknowledges
                os.kill(os.getpid(), signal.SIGKILL)
            pipe.send(answer)


def _receive(pipe: Connection) -> Order | None:
    try:
        order: Order | None = pipe.recv()
    except EOFError:
        return None
    return order


def _handle(queue: BatchQueue, message: Message) -> Answer:
    """Do what a message asks for, whether it comes for the first time or again."""
    if isinstance(message, Create):
        batch = queue.create(message.batch_id, requests=message.requests, attributes={"group": message.group})
        return Answer("created", next_of(batch) if batch.state == FLOW.initial else ())
    try:
        step = queue.advance(message.batch_id, message.to, entered=message.entered)
    except VersionMismatchError:
        return Answer("ahead")
    # What follows belongs to the state, not to the call: whoever moved the batch may have died before publishing it.
    follow_ups = next_of(step.batch) if step.batch.state == message.to else ()
    outcome: str = step.outcome
    return Answer("moved" if outcome == "moved" else "already" if outcome == "already" else "stale", follow_ups)


def next_of(batch: Batch) -> tuple[Message, ...]:
    """Answer the message that the pipeline sends when a batch has come to its state."""
    if batch.state == "queued":
        return (Move(batch.id, "testing", batch.entered),)
    if batch.state == "testing":
        red = crc32(batch.id.encode()) % 16 == 0  # about one batch in sixteen does not pass its tests
        return (Move(batch.id, "failed" if red else "merging", batch.entered),)
    if batch.state == "merging":
        return (Move(batch.id, "merged", batch.entered),)
    return ()
