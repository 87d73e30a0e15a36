"""Values: attributes and payloads are JSON and come back as they went in, from every backend."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from batchstate.errors import InvalidValueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["MAX_DEPTH", "MAX_INT_DIGITS", "encode_json", "encode_object", "encode_plain"]

MAX_DEPTH = 100
"""How deep lists and objects may nest: half of what the strictest of our JSON readers takes."""

MAX_INT_DIGITS = 4300
"""The largest int, in decimal digits: Python's own default limit for reading one back."""

_INT_LIMIT = 10**MAX_INT_DIGITS
_INT_BITS_BELOW_LIMIT = _INT_LIMIT.bit_length() - 1

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


def encode_json(value: object, what: str) -> str:
    """Answer the JSON text of `value`, which `what` names in an error.

    Exactly JSON's own types are taken, since nothing else comes back as it went in: a tuple would
    return as a list, an enum as its value.

    Raises:
        InvalidValueError: it holds something that is not JSON, a float that is not finite, an int
            of more than 4,300 digits, a text with a lone surrogate, or nests deeper than 100.
            Nothing was written.
    """
    if problem := _problem(value, 0):
        raise InvalidValueError(f"{what}{problem}")
    return encode_plain(value, what)


def encode_plain(value: object, what: str) -> str:
    """As `encode_json`, for a value that is known to be JSON but for the texts in it."""
    text = _encode(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            msg = f"{what} has a text with a lone surrogate, which is not valid Unicode"
            raise InvalidValueError(msg) from None
    return text


def encode_object(value: Mapping[str, Any], what: str) -> str:
    """Answer the JSON text of an object (a `dict`); else as `encode_json`."""
    if type(value) is not dict:
        msg = f"{what} must be a dict with str keys, not {type(value).__name__}"
        raise InvalidValueError(msg)
    return encode_json(value, what) if value else "{}"


def _problem(value: object, depth: int) -> str:
    """Answer where in `value` something is no JSON, and what, as the end of a sentence; `""` where all is well."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return ""
    if isinstance(value, dict) and kind is dict:
        alien = [key for key in value if type(key) is not str]
        return f" has the key {alien[0]!r:.80}; keys must be str" if alien else _problem_in(value.items(), depth)
    if isinstance(value, list) and kind is list:
        return _problem_in(enumerate(value), depth)
    return _problem_of_number(value)


def _problem_in(items: Iterable[tuple[object, object]], depth: int) -> str:
    if depth == MAX_DEPTH:
        return f" nests deeper than {MAX_DEPTH}, or contains itself"
    for key, item in items:
        if type(item) is str:  # most are
            continue
        if problem := _problem(item, depth + 1):
            return f"[{key!r:.80}]{problem}"
    return ""


def _problem_of_number(value: object) -> str:
    if type(value) is int:
        too_long = value.bit_length() > _INT_BITS_BELOW_LIMIT and abs(value) >= _INT_LIMIT
        return f" is an int of more than {MAX_INT_DIGITS} digits; store it as a text" if too_long else ""
    if type(value) is float:
        return "" if math.isfinite(value) else f" is {value}, which JSON does not know; store None or a text"
    return (
        f" is a {type(value).__name__}, which is not a JSON value; use None, bool, int, float, str, list or dict"
        " (their subclasses would not come back as they went in)"
    )
