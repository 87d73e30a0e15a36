"""What goes wrong between us and the server: what is worth another try, and what each error amounts to."""

from __future__ import annotations

import re
import ssl
from typing import Final

from redis import exceptions

from batchstate.errors import BatchStateError, CorruptRowError, InvalidValueError, StorageUnavailableError

__all__ = ["CLIENT_ERRORS", "NODE_OF_A_CLUSTER", "code_of", "explained", "is_misconfiguration", "is_passing"]

CLIENT_ERRORS: Final[tuple[type[Exception], ...]] = (
    exceptions.RedisError,
    exceptions.RedisClusterException,  # which is no RedisError
    OSError,
)
"""All that redis-py raises."""

_UNCERTAIN: Final = (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.RedisClusterException, OSError)
"""After these nobody knows whether the command was applied: no answer came, or a cluster could not be asked."""

_BY_CLASS: Final[tuple[tuple[type[Exception], str], ...]] = (
    # redis-py takes the code off the text where it has a class for it.
    (exceptions.ReadOnlyError, "READONLY"),
    (exceptions.BusyLoadingError, "LOADING"),
    (exceptions.MasterDownError, "MASTERDOWN"),
    (exceptions.TryAgainError, "TRYAGAIN"),
    (exceptions.AskError, "ASK"),
    (exceptions.MovedError, "MOVED"),
    (exceptions.ClusterDownError, "CLUSTERDOWN"),
    (exceptions.OutOfMemoryError, "OOM"),
    (exceptions.NoPermissionError, "NOPERM"),
    (exceptions.AuthenticationError, "NOAUTH"),
    (exceptions.AuthorizationError, "NOAUTH"),
)
_CODE: Final = re.compile(r"^([A-Z]{3,})\b")
_NESTED: Final = re.compile(r"-([A-Z]{3,}) ")
"""Up to 6.2 the server reports what went wrong inside a script as an ERR with the error's own code within."""

_PASSING: Final = frozenset(
    {"READONLY", "LOADING", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "BUSY", "NOREPLICAS", "UNBLOCKED", "TTL"}
)
"""What a failover, a restart or a move of slots answers until it is over; TTL is redis-py's own, tired of asking."""

NODE_OF_A_CLUSTER: Final = "it is one node of a cluster: connect with redis+cluster:// or a RedisCluster client"

_MEANING: Final = {
    "READONLY": "it is a replica, and the primary is elsewhere: a failover is under way, or the address is not the "
    "primary's",
    "LOADING": "it is loading its data",
    "MASTERDOWN": "it is a replica and has lost its primary",
    "TRYAGAIN": "the queue's slot is on its way to another node",
    "TTL": "the queue's slot is on its way to another node",
    "CLUSTERDOWN": "the cluster is down: not all of its slots are served",
    "BUSY": "it is busy with another's script",
    "NOREPLICAS": "it has too few replicas to accept a write (min-replicas-to-write)",
    "OOM": "its memory is used up",
    "MISCONF": "it cannot save to disk, and accepts no write until it can",
    "NOPERM": "this user may not do what batchstate needs to",
    "NOAUTH": "it refused the user name or the password",
    "MOVED": NODE_OF_A_CLUSTER,
    "ASK": NODE_OF_A_CLUSTER,
}


def code_of(error: BaseException) -> str:
    """Answer the code that the server began its error with, also one that a script met; `""` where there is none."""
    if isinstance(error, exceptions.RedisClusterException) and error.__cause__ is not None:
        error = error.__cause__  # what each of the nodes that were asked has said
    for kind, code in _BY_CLASS:
        if isinstance(error, kind):
            return code
    text = str(error)
    code_match = _CODE.match(text)
    code = code_match[1] if code_match else ""
    nested = _NESTED.search(text) if code in ("", "ERR") else None
    return nested[1] if nested else "NOAUTH" if code == "WRONGPASS" else code


def is_misconfiguration(error: BaseException) -> bool:
    """Answer whether this will not pass by itself: password, database, certificate, kind of server."""
    if code_of(error) in {"NOAUTH", "NOPERM", "MOVED", "ASK"} or _is_tls(error):
        return True
    text = str(error).lower()
    return "db index" in text or "invalid database" in text or "select is not allowed" in text


def is_passing(error: BaseException) -> bool:
    """Answer whether the same command may succeed shortly, and is safe to send again, as all of ours are."""
    if is_misconfiguration(error):
        return False
    if isinstance(error, _UNCERTAIN):
        return True
    return code_of(error) in _PASSING


def explained(error: Exception, where: str, *, opening: bool = False) -> BatchStateError:
    """Answer what a client's error amounts to, in words that have no secret in them.

    Args:
        error: as redis-py raised it.
        where: the server, as we may show it.
        opening: nothing was done yet but to connect: what is set up wrongly is then a wrong value,
            and no outage that a consumer should wait for.
    """
    code = code_of(error)
    if code == "WRONGTYPE":
        return CorruptRowError(f"a key of this queue at {where} holds what batchstate did not write: {error}")
    if _is_tls(error):
        what = f"it does not speak TLS as it must: {_tls_reason(error)}"
    else:
        what = _MEANING.get(code, f"{type(error).__name__}: {error}")
    if opening and is_misconfiguration(error):
        return InvalidValueError(f"the server at {where} cannot be used: {what}")
    if isinstance(error, _UNCERTAIN) and code != "LOADING":
        told = "whether the last write was applied is unknown, and it is safe to do it again"
    else:
        told = "try again later"
    return StorageUnavailableError(f"the server at {where} is of no use now: {what}; {told}")


def _is_tls(error: BaseException | None) -> bool:
    return _tls_reason(error) != ""


def _tls_reason(error: BaseException | None) -> str:
    """Answer what is wrong with the TLS set-up, if it is that; a broken connection is none of it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({error.verify_message})"
        if isinstance(error, ssl.SSLError) and error.reason in {
            "WRONG_VERSION_NUMBER",
            "RECORD_LAYER_FAILURE",
            "NO_PROTOCOLS_AVAILABLE",
            "UNSUPPORTED_PROTOCOL",
        }:
            return f"it answered something else than TLS ({error.reason})"
        error = error.__cause__ or error.__context__
    return ""
