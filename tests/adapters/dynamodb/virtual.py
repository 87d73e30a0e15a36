"""Workers side by side in a time of their own: what takes seconds there takes none here, and goes alike each time."""

from __future__ import annotations

import heapq
import random
from itertools import count
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

if TYPE_CHECKING:
    from collections.abc import Callable

    from types_boto3_dynamodb import DynamoDBClient


class VirtualTime:
    """A time that passes while workers wait, and not while they compute.

    Attributes:
        now: the seconds that have passed.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, greenlet]] = []
        self._numbers = count()
        self._hub = getcurrent()

    def run(self, *workers: Callable[[], object]) -> None:
        """Let workers work side by side until all are done; what one of them raises is raised here, at once."""
        self._hub = getcurrent()
        for worker in workers:
            self._wake_at(self.now, greenlet(worker))
        while self._waiting:
            self.now, _, worker_to_wake = heapq.heappop(self._waiting)
            worker_to_wake.switch()

    def sleep(self, seconds: float) -> None:
        """Let so much time pass for the worker that calls this."""
        self._wake_at(self.now + seconds, getcurrent())
        self._hub.switch()

    def _wake_at(self, at: float, worker: greenlet) -> None:
        heapq.heappush(self._waiting, (at, next(self._numbers), worker))


class FarClient:
    """A client whose requests take a while to arrive, and their answers to come back: some five milliseconds each.

    Args:
        client: the client; it answers at once, so what it does is done in one step.
        time: the time that passes.
    """

    def __init__(self, client: DynamoDBClient, time: VirtualTime) -> None:
        self._client = client
        self._time = time
        self._way = random.Random(0)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if name == "meta" or not callable(attribute):
            return attribute

        def call(**parameters: Any) -> Any:
            self._time.sleep(self._way.uniform(0.003, 0.007))
            try:
                return attribute(**parameters)
            finally:
                self._time.sleep(self._way.uniform(0.003, 0.007))

        return call
