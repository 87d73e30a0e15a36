"""Who acts in a scope: actors that are handed messages one after the other, and what may go wrong for them."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from batchstate.entities import Batch
from batchstate.errors import BatchStateError, InvalidValueError, VersionMismatchError
from batchstate.lifecycle import Lifecycle
from batchstate.storage import Storage
from batchstate.testing.clock import ManualClock
from batchstate.testing.explorer.watching import Watch

__all__ = ["CLOCK", "Actor", "Message", "Scope", "fused"]

CLOCK = ManualClock()
"""The clock of all explorations, which stands still: a time that went on would make every state a new one."""


def fused(store: Storage) -> Storage:
    """Answer the store as it is, with all that it does in one step."""
    return store


@frozen
class Message:
    """What an actor is handed: it comes until it is acknowledged.

    Attributes:
        text: names it for a reader, and is the `by` of what it writes: the same message handed out
            twice has the same text.
        run: does it, on the store given. It must be a function of what the store answers alone.
        creates: the batch that must be reachable for ever once the message is acknowledged.
        again: the errors after which the message comes again.
        drops: the errors after which it is dropped, as one that says nothing any more. Any error
            that is in neither is a fault of the program.
        watch: what its answer is held against, if it is a listing.
    """

    text: str
    run: Callable[[Storage], object]
    creates: str = ""
    again: tuple[type[BatchStateError], ...] = (VersionMismatchError,)
    drops: tuple[type[BatchStateError], ...] = ()
    watch: Watch | None = None


@frozen
class Actor:
    """A process that works off its messages in order, each to its end.

    Attributes:
        name: for a reader.
        messages: what it is handed.
        crashes: how often it may die, before any call and after any, also after the last and before
            its acknowledgement; the message comes again.
        resends: how often its client may send a write a second time, any time after the first was
            applied.
        lost_replies: how often a write may be applied and answered with `StorageUnavailableError`.
        sees: how it sees the store: `fused`, or `ThreeSteps`, which hides what the store does in one
            step.
        after: the names of the actors that must have come to their end before it begins a message.
        idle: the names of those that must not be in the middle of a delivery when it begins one: a
            purge does not begin before the longest stall of a writer is over.
    """

    name: str
    messages: tuple[Message, ...]
    crashes: int = 0
    resends: int = 0
    lost_replies: int = 0
    sees: Callable[[Storage], Storage] = fused
    after: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


@frozen
class Scope:
    """What is explored: the actors, the lifecycle, and the batches that are there at the start.

    Attributes:
        title: for a reader.
        lifecycle: the states, all of which are looked into.
        actors: who acts.
        existing: the batches there at the start, with records and associations.
    """

    title: str
    lifecycle: Lifecycle
    actors: tuple[Actor, ...]
    existing: tuple[Batch, ...] = ()

    def __attrs_post_init__(self) -> None:
        """Check that the names fit together."""
        names = [actor.name for actor in self.actors]
        if len(set(names)) < len(names):
            msg = f"two actors have one name: {names}"
            raise InvalidValueError(msg)
        for actor in self.actors:
            if unknown := {*actor.after, *actor.idle} - set(names):
                msg = f"{actor.name} waits for {sorted(unknown)}, and nobody is called that"
                raise InvalidValueError(msg)
        if len([message for actor in self.actors for message in actor.messages if message.watch is not None]) > 1:
            msg = "one listing in a scope can be watched; make a scope of each"
            raise InvalidValueError(msg)

    @property
    def batch_ids(self) -> tuple[str, ...]:
        """The IDs of all batches there are or may come to be."""
        created = [message.creates for actor in self.actors for message in actor.messages if message.creates]
        return tuple(dict.fromkeys([*(batch.id for batch in self.existing), *created]))
