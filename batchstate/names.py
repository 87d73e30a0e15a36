"""Names: what a queue, state, batch, request or group may be called, the same for every adapter."""

from __future__ import annotations

import unicodedata

from batchstate.errors import InvalidNameError

__all__ = ["MAX_NAME_BYTES", "check_name"]

MAX_NAME_BYTES = 255
"""The longest name, in bytes of UTF-8: what fits every backend's keys with room for what we put around it."""


def check_name(what: str, name: object) -> str:
    """Answer `name` if it may name a `what` ("queue", "state", "batch", "request", "group").

    A name is 1 to 255 bytes of UTF-8 without control characters. Names are compared exactly: case,
    accents and spaces count.

    Raises:
        InvalidNameError: it is no such text. Nothing was written.
    """
    if type(name) is not str:
        msg = f"a {what} name must be a str, not {type(name).__name__}: {name!r:.80}"
        raise InvalidNameError(msg)
    if name.isascii() and name.isprintable() and 0 < len(name) <= MAX_NAME_BYTES:
        return name
    if not name:
        msg = f"a {what} name must not be empty"
        raise InvalidNameError(msg)
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        msg = f"a {what} name must be valid Unicode, and this has a lone surrogate: {name!r:.80}"
        raise InvalidNameError(msg) from None
    if size > MAX_NAME_BYTES:
        msg = f"a {what} name must be at most {MAX_NAME_BYTES} bytes of UTF-8, and this has {size}: {name[:40]!r}…"
        raise InvalidNameError(msg)
    if any(unicodedata.category(character) == "Cc" for character in name):
        msg = f"a {what} name must not have control characters (line breaks, tabs, NUL …): {name!r:.80}"
        raise InvalidNameError(msg)
    return name
