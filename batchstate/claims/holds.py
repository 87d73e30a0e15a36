"""Holds: a lease on a batch without jobs, so that two workers handed one message do not both do the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from batchstate.claims.claiming import new_claim_id
from batchstate.errors import ClaimLostError
from batchstate.names import check_name
from batchstate.times import milliseconds

if TYPE_CHECKING:
    from types import TracebackType

    from batchstate.claims.context import JobContext
    from batchstate.times import Duration

__all__ = ["Hold", "hold"]


class Hold:
    """A batch held by one worker. As a context manager it extends itself meanwhile, and ends on leaving.

    Attributes:
        batch_id: the batch.
        token: the holder's fencing token.
        expires_at: when it lapses, in milliseconds since the epoch by the store's clock.
        lease_ms: how long the lease is, in milliseconds.
        lost: whether extending has found that it lapsed or is another's; work should stop.
    """

    def __init__(self, context: JobContext, batch_id: str, token: str, expires_at: int, lease_ms: int) -> None:
        self._context = context
        self.batch_id = batch_id
        self.token = token
        self.expires_at: int = expires_at
        self.lease_ms: int = lease_ms
        self.lost: bool = False

    def __repr__(self) -> str:
        return f"<Hold of batch {self.batch_id!r} until {self.expires_at}>"

    def extend(self, lease: Duration | None = None) -> int:
        """Set its end to now + `lease`, by default its length so far, and answer it.

        Raises:
            ClaimLostError: it lapsed, or another holds the batch.
            StorageUnavailableError: the store could not be reached; whether it was extended is unknown.
        """
        if lease is not None:
            self.lease_ms = milliseconds(lease, "lease")
        try:
            self.expires_at = self._context.store.extend_hold(self.batch_id, self.token, self.lease_ms).expires_at
        except ClaimLostError:
            self.lost = True
            raise
        return self.expires_at

    def keep(self) -> bool:
        """Extend by the lease's length; answer whether it is still held. What the keeper calls."""
        self.extend()
        return True

    def release(self) -> None:
        """End it; twice is harmless. Raises as `extend` does."""
        self._context.store.release_hold(self.batch_id, self.token)

    def __enter__(self) -> Self:
        self._context.keeper.hold(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._context.keeper.drop(self)
        try:
            self.release()
        except ClaimLostError:
            if error is None:
                raise


def hold(context: JobContext, batch_id: str, lease: Duration, *, token: str | None = None) -> Hold | None:
    """Hold a batch, so that nobody else who asks for a hold works on it meanwhile.

    Args:
        context: the queue.
        batch_id: the batch.
        lease: how long; a lapsed hold may be taken by anyone and needs no sweep.
        token: sent again after an unknown outcome, the same token answers the same hold; a fresh one by default.

    Returns:
        The hold, or `None` where another holds the batch.

    Raises:
        NotFoundError: there is no such batch.
        InvalidValueError: the lease is not positive, or a name is none.
        StorageUnavailableError: the store could not be reached; send the same token again.
    """
    lease_ms = milliseconds(lease, "lease")
    ours = check_name("token", token) if token is not None else new_claim_id()
    held = context.store.take_hold(check_name("batch", batch_id), ours, lease_ms)
    return Hold(context, batch_id, ours, held.expires_at, lease_ms) if held.token == ours else None
