"""An at-least-once feed: it repeats messages, reorders them, and sends again what nobody acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from batchstate.cli.demo.messages import Message

__all__ = ["Feed"]

REACH = 40
"""How far a message may overtake others."""


class Feed:
    """The messages that wait to be delivered.

    Args:
        messages: the first of them.
        random: decides what is repeated and what overtakes what.
        repeats: which part of the messages is delivered twice.
    """

    def __init__(self, messages: Iterable[Message], random: Random, *, repeats: float = 0.15) -> None:
        self._waiting = list(messages)
        self._random = random
        self._repeats = repeats
        self.repeated = 0
        self.sent_again = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self) -> Message:
        """Answer the next message to deliver, and now and then keep it to deliver it once more."""
        message = self._waiting.pop(self._random.randrange(min(REACH, len(self._waiting))))
        if self._random.random() < self._repeats:
            self.repeated += 1
            self._waiting.insert(self._random.randrange(len(self._waiting) + 1), message)
        return message

    def publish(self, messages: Iterable[Message]) -> None:
        """Take new messages."""
        self._waiting.extend(messages)

    def give_back(self, message: Message) -> None:
        """Take a message back that was not acknowledged, to deliver it again soon."""
        self.sent_again += 1
        self._waiting.insert(self._random.randrange(min(REACH, len(self._waiting) + 1)), message)
