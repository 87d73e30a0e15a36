"""The conditional writes, as the client takes them: alone or as an action of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from batchstate_dynamodb.layout import Key, association_item, item_key, number, record_item, row_item, text

if TYPE_CHECKING:
    from batchstate.entities import Batch
    from batchstate.wire import BatchRow

__all__ = [
    "delete_record",
    "delete_row",
    "insert_association",
    "insert_row",
    "put_record",
    "row_is_live",
    "update_row",
]

Write = dict[str, Any]

_MET: Final = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
_WRITTEN: Final = ("format", "version", "state", "entered", "updated_at", "retired_at", "marks", "moves", "attributes")
"""What an update writes: the requests and the time of creation stay as they are stored."""


def insert_row(key: Key, row: BatchRow) -> Write:
    """Put the row unless there is one."""
    return {"Item": row_item(key, row), "ConditionExpression": "attribute_not_exists(pk)", **_MET}


def update_row(key: Key, before: Batch, row: BatchRow) -> Write:
    """Write `row` where the stored one is live, at the version of `before` and, where that knows it, of its mark."""
    names, values, sets, removes = {"#retired_at": "retired_at"}, {":before": number(before.version)}, [], []
    for name in _WRITTEN:
        value = getattr(row, name)
        if value is None:
            continue
        names[f"#{name}"] = name
        if value == "":
            removes.append(f"#{name}")
        else:
            sets.append(f"#{name} = :{name}")
            values[f":{name}"] = number(value) if isinstance(value, int) else text(value)
    condition = "#version = :before AND attribute_not_exists(#retired_at)"
    if before.mark:
        # The mark of the stored version is the last in the row's memory, so that no other can be meant.
        condition += " AND contains(#marks, :mark)"
        names["#marks"] = "marks"
        values[":mark"] = text(f"{before.version}:{before.mark}")
    return {
        "Key": item_key(key),
        "UpdateExpression": f"SET {', '.join(sets)}" + (f" REMOVE {', '.join(removes)}" if removes else ""),
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        **_MET,
    }


def delete_row(key: Key, version: int) -> Write:
    """Delete the row where it is retired and at this version."""
    return {
        "Key": item_key(key),
        "ConditionExpression": "#version = :version AND attribute_exists(#retired_at)",
        "ExpressionAttributeNames": {"#version": "version", "#retired_at": "retired_at"},
        "ExpressionAttributeValues": {":version": number(version)},
        **_MET,
    }


def row_is_live(key: Key) -> Write:
    """Look, as part of a transaction, that there is a row and that it is not retired."""
    return {
        "Key": item_key(key),
        "ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(#retired_at)",
        "ExpressionAttributeNames": {"#retired_at": "retired_at"},
    }


def put_record(key: Key, version: int) -> Write:
    """Put the record unless the stored one's version is as high or higher."""
    return {
        "Item": record_item(key, version),
        "ConditionExpression": "attribute_not_exists(pk) OR #version < :version",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":version": number(version)},
    }


def delete_record(key: Key, up_to: int) -> Write:
    """Delete the record unless its version is above the one given; an absent one meets the condition as well."""
    return {
        "Key": item_key(key),
        "ConditionExpression": "attribute_not_exists(pk) OR #version <= :version",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":version": number(up_to)},
    }


def insert_association(key: Key, outcome: str = "") -> Write:
    """Put the association unless there is one."""
    return {"Item": association_item(key, outcome), "ConditionExpression": "attribute_not_exists(pk)"}
