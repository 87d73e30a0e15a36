"""The stage: starts the workers, hands each one message at a time, kills some, sends again what they dropped."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from attrs import define, field

from batchstate.cli.demo.messages import Answer, Create, Message, Order
from batchstate.cli.demo.worker import work

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from random import Random

    from batchstate.cli.demo.feed import Feed

__all__ = ["Stage"]

THIRD = 3


@define(eq=False)
class _Worker:
    """One worker process, and what it has in hand."""

    name: str
    atomic: bool
    process: multiprocessing.process.BaseProcess
    pipe: Connection
    in_hand: Message | None = None


@define
class Stage:
    """Runs the pipeline to its end.

    Attributes:
        url: the store.
        feed: the messages.
        random: decides who is killed, and when.
        size: how many workers.
        kills: how many of them are killed on the way.
        on_kill: called with the message that a killed worker had in hand.
        counts: how many deliveries came to what, and how many workers were killed.
        moves: how many batches have come to which state, as far as workers said.
    """

    url: str
    feed: Feed
    random: Random
    size: int
    kills: int
    on_kill: Callable[[Message], None]
    counts: Counter[str] = field(factory=Counter)
    moves: Counter[str] = field(factory=Counter)
    _workers: list[_Worker] = field(factory=list)
    _started: int = 0

    def run(self, on_tick: Callable[[], None], expected: int) -> None:
        """Deliver until nothing waits and nothing is in hand; `expected` is about how many deliveries that takes."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["batchstate.cli.demo.worker", "batchstate_sqlite"])
        each = max(1, expected // (self.kills + 1))
        try:
            self._workers = [self._start(context, number) for number in range(self.size)]
            while True:
                for worker in self._workers:
                    if worker.in_hand is None and self.feed:
                        self._deliver(worker, each)
                busy = [worker for worker in self._workers if worker.in_hand is not None]
                if not busy:
                    return
                self._collect(context, busy)
                on_tick()
        finally:
            for worker in self._workers:
                worker.pipe.close()
            for worker in self._workers:
                worker.process.join(timeout=5)
                worker.process.kill()

    def _start(self, context: multiprocessing.context.ForkServerContext, number: int) -> _Worker:
        ours, theirs = context.Pipe()
        self._started += 1
        atomic = number % 2 == 0  # half of the workers take the three steps, so that there is something to repair
        name = f"worker-{self._started}"
        process = context.Process(target=work, args=(self.url, name, theirs), kwargs={"atomic": atomic}, daemon=True)
        process.start()
        theirs.close()
        return _Worker(name, atomic, process, ours)

    def _deliver(self, worker: _Worker, each: int) -> None:
        message = self.feed.take()
        self.counts["deliveries"] += 1
        dies_after = None
        due = self.counts["doomed"] < min(self.kills, self.counts["deliveries"] // each)
        # Two of three die in the middle of the three steps, the third before it acknowledges.
        if due and worker.atomic == (self.counts["doomed"] % THIRD == 0):
            self.counts["doomed"] += 1
            dies_after = self.random.randint(1, 2)
        worker.in_hand = message
        worker.pipe.send(Order(message, dies_after))

    def _collect(self, context: multiprocessing.context.ForkServerContext, busy: list[_Worker]) -> None:
        ready = wait([worker.pipe for worker in busy], timeout=1)
        for worker in busy:
            if worker.pipe not in ready or worker.in_hand is None:
                continue
            try:
                answer: Answer = worker.pipe.recv()
            except (EOFError, ConnectionResetError):
                self._bury(context, worker)
                continue
            self._note(worker.in_hand, answer)
            worker.in_hand = None

    def _note(self, message: Message, answer: Answer) -> None:
        self.counts[answer.what] += 1
        if answer.what == "ahead":
            self.feed.give_back(message)
        elif answer.what == "moved" and not isinstance(message, Create):
            self.moves[message.to] += 1
        self.feed.publish(answer.follow_ups)

    def _bury(self, context: multiprocessing.context.ForkServerContext, worker: _Worker) -> None:
        worker.process.join()
        self.counts["killed"] += 1
        worker.pipe.close()
        if worker.in_hand is not None:
            self.on_kill(worker.in_hand)
            self.feed.give_back(worker.in_hand)
        place = self._workers.index(worker)
        self._workers[place] = self._start(context, place)
