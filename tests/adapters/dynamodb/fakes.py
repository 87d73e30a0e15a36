"""What the service does and emulators do not: replies made by hand, and replies that are lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen
from botocore.exceptions import ConnectionClosedError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Reply: TypeAlias = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any] | None] | None
"""A reply; or what makes one of the request's parameters; `None` to let the emulator answer."""


@frozen
class _Http:
    status_code: int


class Fakes:
    """Stands before an emulator and answers in its place where it has something to answer with.

    Args:
        client: the client whose requests are answered.
    """

    def __init__(self, client: DynamoDBClient) -> None:
        self._replies: dict[str, list[Reply]] = {}
        self._always: dict[str, Reply] = {}
        self._lost: dict[str, int] = {}
        self._params: dict[str, Any] = {}
        client.meta.events.register("provide-client-params.dynamodb", self._keep)
        client.meta.events.register("before-call.dynamodb", self._answer)  # type: ignore[arg-type]  # it may answer
        client.meta.events.register("after-call.dynamodb", self._lose)

    def next(self, operation: str, *replies: Reply) -> None:
        """Answer the next requests of this operation with these."""
        self._replies.setdefault(operation, []).extend(replies)

    def always(self, operation: str, reply: Reply) -> None:
        """Answer every request of this operation with this."""
        self._always[operation] = reply

    def lose_reply(self, operation: str, times: int = 1) -> None:
        """Let the next requests of this operation be applied, and lose their replies."""
        self._lost[operation] = times

    def _keep(self, params: dict[str, Any], **_: object) -> None:
        self._params = params

    def _answer(self, model: Any, **_: object) -> tuple[_Http, dict[str, Any]] | None:
        waiting = self._replies.get(model.name)
        reply = waiting.pop(0) if waiting else self._always.get(model.name)
        if callable(reply):
            reply = reply(self._params)
        if reply is None:
            return None
        return _Http(400 if "Error" in reply else 200), reply

    def _lose(self, model: Any, **_: object) -> None:
        if self._lost.get(model.name, 0) > 0:
            self._lost[model.name] -= 1
            raise ConnectionClosedError(endpoint_url="http://nowhere")


def failure(code: str, message: str = "so it is", **more: Any) -> dict[str, Any]:
    """Answer the reply of a failed request."""
    return {"Error": {"Code": code, "Message": message}, **more}


def cancellation(*codes: str, item: dict[str, Any] | None = None) -> dict[str, Any]:
    """Answer the reply of a cancelled transaction, whose first reason brings `item`."""
    reasons: list[dict[str, Any]] = [
        {"Code": code, "Message": code} if code != "None" else {"Code": code} for code in codes
    ]
    if item is not None:
        reasons[0]["Item"] = item
    text = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{', '.join(codes)}]"
    return failure("TransactionCanceledException", text, CancellationReasons=reasons)
