"""Sizes and units by the service's rules, since emulators count them in ways of their own.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

WRITE_UNIT = 1024
READ_UNIT = 4096


def item_size(item: Mapping[str, Any]) -> int:
    """Answer the bytes of an item: the UTF-8 of its names and values; of a number, half its digits and two."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: Mapping[str, Any]) -> int:
    [(kind, content)] = value.items()
    if kind == "S":
        return len(str(content).encode())
    if kind == "N":
        digits = str(content).lstrip("-").strip("0")
        return ceil(len(digits) / 2) + 1 + int(str(content).startswith("-"))
    if kind == "L":
        return 3 + sum(1 + _value_size(one) for one in content)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value_size(one) for name, one in content.items())
    raise AssertionError(f"no item of ours has a value of type {kind}")


def write_units(size: int) -> int:
    """Answer what writing an item costs: one for each KB begun of the larger of before and after, at least one."""
    return max(ceil(size / WRITE_UNIT), 1)


def read_units(size: int) -> int:
    """Answer what reading consistently costs: one for each 4 KB begun, at least one."""
    return max(ceil(size / READ_UNIT), 1)
