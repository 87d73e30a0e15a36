"""A hashable form of what storages are asked and answer, equal for what no program can tell apart.

The text of a history is left out: nothing decides by it, and a row's marks tell its histories apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchstate.entities import Batch
from batchstate.errors import BatchStateError
from batchstate.values import encode_json

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["canonical"]

_PLAIN = frozenset({str, int, bool, float, type(None)})


def canonical(value: object) -> Hashable:
    """Answer a hashable that is equal for equal `value`s: names, numbers, entities, errors, and collections of them."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (Batch, BaseException)):
        return _batch(value) if isinstance(value, Batch) else _error(value)
    if isinstance(value, (list, tuple, dict)):
        items = value.items() if isinstance(value, dict) else value
        return (type(value).__name__, *map(canonical, items))
    fields = getattr(type(value), "__attrs_attrs__", None)
    if fields is None:
        return repr(value)
    return (type(value).__name__, *(canonical(getattr(value, field.name)) for field in fields))


def _batch(batch: Batch) -> Hashable:
    return (
        "Batch",
        batch.id,
        batch.state,
        batch.version,
        batch.entered,
        batch.request_ids,
        encode_json(batch.attributes, "attributes") if batch.attributes else "",
        batch.created_at,
        batch.updated_at,
        batch.retired_at,
        batch.marks,
    )


def _error(error: BaseException) -> Hashable:
    told = (canonical(getattr(error, name, None)) for name in ("current", "batch", "applied"))
    if isinstance(error, BatchStateError):
        return (type(error).__name__, *told)
    return (type(error).__name__, str(error))
