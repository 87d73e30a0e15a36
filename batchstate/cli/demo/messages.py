"""What the feed sends to workers, and what they answer."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

__all__ = ["Answer", "Create", "Message", "Move", "Order", "What"]

What: TypeAlias = Literal["created", "moved", "already", "stale", "ahead"]
"""What a delivery came to."""


@frozen
class Create:
    """Create this batch."""

    batch_id: str
    group: str
    requests: tuple[str, ...]


@frozen
class Move:
    """Move this batch into `to`; `entered` says out of which stay in which state."""

    batch_id: str
    to: str
    entered: int


Message: TypeAlias = Create | Move


@frozen
class Order:
    """A message on its way to a worker, and after how many writes of it that worker is to be killed."""

    message: Message
    dies_after: int | None = None


@frozen
class Answer:
    """What a delivery came to, and the messages that follow from it."""

    what: What
    follow_ups: tuple[Message, ...] = ()
