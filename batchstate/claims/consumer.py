"""`BatchConsumer`: a worker's loop, which waits for enough work, claims it, hands it over, settles, and tidies."""

from __future__ import annotations

import logging
import signal
import threading
import time
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING

from attrs import evolve

from batchstate.claims.claiming import new_claim_id, plan_claim, send_claim
from batchstate.claims.handlers import bisect_batch, check_handler, run_batch, run_each
from batchstate.claims.settling import text_of
from batchstate.claims.shaper import Shape, Window
from batchstate.claims.upkeep import purge_ended, sweep
from batchstate.claims.waiting import Nudge, listening
from batchstate.errors import ClaimLostError, HandlerContractError, InvalidValueError, StorageUnavailableError
from batchstate.jobs import Retry
from batchstate.marks import new_mark
from batchstate.times import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batchstate.claims.claim import Claim
    from batchstate.claims.context import JobContext
    from batchstate.claims.handlers import BatchHandler, JobHandler
    from batchstate.jobs import Group, Settlement
    from batchstate.times import Duration

__all__ = ["BatchConsumer"]

log = logging.getLogger("batchstate")

_LONGEST_WAIT = 30_000  # ms between two tries to reach a store that is away


class BatchConsumer:
    """Works a queue's jobs off until it is told to stop.

    Made by `BatchQueue.consumer`. The handler is a function of a job (`each`) or of a claim's jobs (`batch`), see
    `batchstate.claims.handlers`. Trouble of the store is waited out with back-off and logged once.

    Args:
        context: the queue.
        each: called with each job.
        batch: called with all jobs of a claim; it answers a mapping from job ID to verdict.
        shape: how large a claim should be, and how long to wait for it.
        lease: how long jobs are held at a time; it is extended while the handler works.
        bisect: find the job that makes a batch handler raise by running halves again.
        poll: how long to wait after finding nothing, where the backend does not wake who waits.
        group: the group to serve; without one, the group whose turn it is.
        across_groups: one job a group, round after round.
        tidy_every: about how long from one sweep to the next; each is moved at random by up to a half, so that a
            fleet does not sweep at once.
        on_settled: called with each claim and what became of all its jobs, also where the handler's fault or an
            interrupt ends the work.

    Raises:
        InvalidValueError: neither or both handlers are given, or a coroutine or generator function, or a knob makes
            no sense.
    """

    def __init__(  # noqa: PLR0913 - each is a knob of the loop, and has a default
        self,
        context: JobContext,
        *,
        each: JobHandler | None = None,
        batch: BatchHandler | None = None,
        shape: Shape | None = None,
        lease: Duration = "30s",
        bisect: bool = False,
        poll: Duration = "1s",
        group: Group | None = None,
        across_groups: bool = False,
        tidy_every: Duration = "10s",
        on_settled: Callable[[Claim, Settlement], None] | None = None,
    ) -> None:
        if (each is None) == (batch is None):
            msg = "give either each= (a function of a job) or batch= (a function of a claim's jobs)"
            raise InvalidValueError(msg)
        check_handler(each if each is not None else batch)
        if bisect and batch is None:
            msg = "bisect=True is for batch handlers; a function of a job is charged job by job anyway"
            raise InvalidValueError(msg)
        self._context = context
        self._each = each
        self._batch = batch
        self._bisect = bisect
        self._shape = shape or Shape()
        self._claiming = plan_claim(context, self._shape.max_size, lease, group, across_groups=across_groups)
        self._on_settled = on_settled
        self._poll_ms = milliseconds(poll, "poll")
        self._tidy_ms = milliseconds(tidy_every, "tidy_every")
        self._next_tidy = 0
        self._window = Window(self._shape)
        self._stopped = False
        self._nudge = Nudge()
        self._unanswered = False
        self._jitter = Random().uniform  # noqa: S311 - spreads load, guards no secret

    def run(self, *, burst: bool = False) -> None:
        """Work until `stop` is called, or SIGTERM or SIGINT comes (in the main thread).

        The claim in hand is finished and settled; nothing more is claimed.

        Args:
            burst: end as soon as nothing can be served, instead of waiting for more.

        Raises:
            HandlerContractError: a batch handler's answer is no mapping. Jobs without a recorded verdict were
                released.
            KeyboardInterrupt, SystemExit: raised by a handler; likewise.
        """
        failures = 0
        with self._signals(), listening(self._context.store, self._nudge):
            while not self._stopped:
                try:
                    busy = self.step()
                except StorageUnavailableError as error:
                    failures += 1
                    if failures == 1:
                        log.warning("the store cannot be reached, which is waited out: %s", error)
                    self._wait_out(failures)
                    continue
                if failures:
                    log.warning("the store can be reached again")
                    failures = 0
                if not busy and burst and self._window.remaining(self._context.clock()) is None:
                    return
                if not busy and not self._stopped:
                    self._wait()

    def stop(self) -> None:
        """Finish and settle the claim in hand, claim nothing more, return from `run`; while it waits, at once.

        May be called from any thread or from a signal handler. Twice is harmless.
        """
        self._stopped = True
        self._nudge()

    def step(self) -> bool:
        """Tidy if it is time, then claim and work one claim if enough waits; answer whether there was one."""
        self._tidy()
        size = self._wanted()
        found = self._claim(size) if size else None
        if found is None:
            return False
        self.work(found)
        return True

    def work(self, found: Claim) -> None:
        """Hand a claim to the handler and settle it."""
        try:
            with found:
                self._handle(found)
        finally:
            if self._on_settled is not None:
                self._on_settled(found, found.settlement)

    def _handle(self, found: Claim) -> None:
        try:
            if self._each is not None:
                run_each(found, self._each)
            elif self._batch is not None and self._bisect:
                bisect_batch(found, self._batch)
            elif self._batch is not None:
                run_batch(found, self._batch)
        except HandlerContractError:
            raise
        except Exception as error:  # whatever the handler raises is the verdict of what it left
            log.warning("the handler raised: %s", text_of(error), exc_info=True)
            for job in found.untouched():
                found.record(job, Retry(text_of(error)))

    def _claim(self, size: int) -> Claim | None:
        """Claim; a claim whose answer never came is sent again, since its jobs may be held for us already."""
        sent_again = self._unanswered
        if not sent_again:
            self._claiming = evolve(self._claiming, id=new_claim_id(), mark=new_mark(), limit=size)
        self._unanswered = True
        try:
            found = send_claim(self._context, self._claiming)
        except ClaimLostError:
            if not sent_again:
                raise
            found = None
        self._unanswered = False
        return found

    def _wanted(self) -> int:
        """Answer how many jobs to claim now, 0 for none yet."""
        if self._shape.min_size == 1:
            return self._shape.max_size  # any job is enough, and counting them first would be a round trip for nothing
        waiting = self._context.store.count_claimable(
            self._shape.max_size,
            self._claiming.group,
            across_groups=self._claiming.across_groups,
        )
        return self._window.see(waiting, self._context.clock())

    def _tidy(self) -> None:
        now = self._context.clock()
        if now < self._next_tidy:
            return
        self._next_tidy = now + int(self._tidy_ms * self._jitter(0.5, 1.5))
        sweep(self._context)
        purge_ended(self._context, on_problem=lambda problem: log.warning("not purged: %s", problem))

    def _wait(self) -> None:
        now = self._context.clock()
        due = [self._poll_ms, max(1, self._next_tidy - now)]
        window = self._window.remaining(now)
        if window is not None:
            due += [max(1, window), max(1, self._shape.timeout_ms // 4)]
        self._nudge.wait(min(due))

    def _wait_out(self, failures: int) -> None:
        deadline = time.monotonic() + min(_LONGEST_WAIT, 100 * 2 ** min(failures, 12)) / 1000 * self._jitter(0.5, 1)
        while not self._stopped and (left := deadline - time.monotonic()) > 0:
            self._nudge.wait(left * 1000)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT, where this is the main thread; what was there before comes back afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        for number in before:
            signal.signal(number, lambda *_: self.stop())
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
