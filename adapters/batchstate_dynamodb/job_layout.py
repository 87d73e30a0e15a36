"""Where a queue's jobs lie in the table, and their items.

What changes about a job lies in the item of its *place*, so that it cannot be in two; its payload lies apart, in the
guard of its ID, which is written when it is added and when it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from attrs import field, frozen

from batchstate.job_calls import Ending
from batchstate.job_wire import JOB_FORMAT, JobRow
from batchstate_dynamodb.layout import Item, Key, item_key, number, read_number, read_text, text

if TYPE_CHECKING:
    from batchstate_dynamodb.layout import Layout

__all__ = ["SHARDS", "ClaimItem", "Group", "Guard", "JobKeys", "Settings", "encode_state", "instant", "read_state"]

SHARDS: Final = 4
"""Over how many partitions the claims in flight are spread, and the remembered IDs. It never changes."""

_APART: Final = frozenset({"payload", "place"})
_TEXTS: Final = frozenset({"id", "group", "error", "claim"})
_COUNTS: Final = frozenset({"deliveries", "attempts", "stalls"})


def instant(at: int) -> str:
    """Answer an instant or a number as the beginning of a sort key, in whose order they are."""
    return f"{max(at, 0):016d}"


def _shard(name: str) -> int:
    return crc32(name.encode()) % SHARDS


class JobKeys:
    """The keys of one queue's jobs.

    Args:
        layout: where the queue's batches are.
    """

    def __init__(self, layout: Layout) -> None:
        self._prefix = layout.batches.removesuffix("batch#")
        self.settings = Key(f"{self._prefix}jobs", "queue")
        self.numbers = Key(f"{self._prefix}jobs", "numbers")
        self.groups = f"{self._prefix}groups"
        self.dead = f"{self._prefix}dead"

    def guard(self, job_id: str) -> Key:
        """The key of what guards an ID."""
        return Key(f"{self._prefix}job#{job_id}", "guard")

    def group(self, name: str) -> Key:
        """The key of a group."""
        return Key(self.groups, f":{name}")

    def waiting(self, group: str) -> str:
        """The partition of those who wait in a group."""
        return f"{self._prefix}waiting#{group}"

    def scheduled(self, group: str) -> str:
        """The partition of those of a group that are due later."""
        return f"{self._prefix}scheduled#{group}"

    def claims(self, shard: int) -> str:
        """The partition of one shard of the claims in flight."""
        return f"{self._prefix}claims#{shard}"

    def claim(self, claim_id: str) -> Key:
        """The key of a claim in flight."""
        return Key(self.claims(_shard(claim_id)), claim_id)

    def remembered(self, shard: int) -> str:
        """The partition of one shard of the remembered IDs, by the instant they are forgotten."""
        return f"{self._prefix}done#{shard}"

    def done(self, job_id: str, until: int) -> Key:
        """The key under which a remembered ID is found when its time is over."""
        return Key(self.remembered(_shard(job_id)), f"{instant(until)}:{job_id}")

    def hold(self, batch_id: str) -> Key:
        """The key of the hold on a batch."""
        return Key(f"{self._prefix}hold#{batch_id}", "hold")

    def place(self, row: JobRow) -> Key:
        """The key of the item of the place a job is in, save that of a held one."""
        line = f"{instant(row.order)}:{row.id}"
        if row.place == "waiting":
            return Key(self.waiting(row.group), line)
        if row.place == "dead":
            return Key(self.dead, line)
        return Key(self.scheduled(row.group), f"{instant(row.due_at or 0)}:{line}")


def encode_state(row: JobRow) -> Item:
    """Answer what changes about a job, as attributes; what is empty is left out."""
    state: Item = {}
    for name, value in zip(JobRow._fields, row, strict=True):
        if name in _APART or value is None or value == "" or (value == 0 and name in _COUNTS):
            continue
        state[name] = number(value) if isinstance(value, int) else text(value)
    return state


def read_state(item: Item, place: str, payload: str = "null") -> JobRow:
    """Answer the row of a job from the item of its place, and its payload, which lies apart."""
    values: list[Any] = []
    for name in JobRow._fields:
        if name == "payload":
            values.append(payload)
        elif name == "place":
            values.append(place)
        elif name in _TEXTS:
            values.append(read_text(item, name) or (None if name == "claim" else ""))
        else:
            values.append(read_number(item, name) if name in item or name not in _COUNTS else 0)
    return JobRow._make(values)


@frozen
class Guard:
    """What guards an ID: the payload of a job that is here, or the memory of one that is done.

    Attributes:
        id: the job.
        group: its group.
        order: its place in the line.
        payload: its JSON text.
        due: when it is due, if it is scheduled; it says nothing otherwise.
        done: until when it is remembered as done; `None` while it is here.
        mark: of the call that wrote it.
    """

    id: str
    group: str = ""
    order: int = 0
    payload: str = "null"
    due: int | None = None
    done: int | None = None
    mark: str = ""

    def item(self, key: Key) -> Item:
        """Answer its item."""
        item = {**item_key(key), "id": text(self.id), "mark": text(self.mark)}
        if self.done is not None:
            return {**item, "done": number(self.done)}
        item |= {"format": number(JOB_FORMAT), "order": number(self.order), "payload": text(self.payload)}
        if self.group:
            item["group"] = text(self.group)
        if self.due is not None:
            item["due"] = number(self.due)
        return item

    @classmethod
    def of(cls, item: Item) -> Guard:
        """Read its item."""
        return cls(
            read_text(item, "id"),
            read_text(item, "group"),
            _whole(item, "order") or 0,
            read_text(item, "payload"),
            _whole(item, "due"),
            _whole(item, "done"),
            read_text(item, "mark"),
        )


@frozen
class Group:
    """A group as it is stored.

    Attributes:
        name: the group, `""` for the jobs without one.
        mark: of the step that wrote it last; `None` where there is no item.
        waiting, active, scheduled, dead: how many of its jobs are where.
        ceiling: its own.
        paused: the reason.
        turn: its place in the ring; `None` where it is not in it.
        due: no scheduled job is due before.
    """

    name: str
    mark: str | None = None
    waiting: int = 0
    active: int = 0
    scheduled: int = 0
    dead: int = 0
    ceiling: int | None = None
    paused: str | None = None
    turn: int | None = None
    due: int | None = None

    @property
    def is_bare(self) -> bool:
        """Whether nothing is to be known of it."""
        used = self.waiting or self.active or self.scheduled or self.dead
        return not used and self.ceiling is None and self.paused is None

    def headroom(self, default: int | None) -> int | None:
        """Answer how many more may be held; `None` for no limit."""
        ceiling = self.ceiling if self.ceiling is not None else default
        return None if ceiling is None else max(0, ceiling - self.active)

    def item(self, key: Key) -> Item:
        """Answer its item."""
        item = {**item_key(key), "mark": text(self.mark or "")}
        for name in ("waiting", "active", "scheduled", "dead", "ceiling", "turn", "due"):
            value = getattr(self, name)
            if value is not None and (value or name == "due"):
                item[name] = number(value)
        if self.paused is not None:
            item["paused"] = text(self.paused)
        return item

    @classmethod
    def of(cls, item: Item) -> Group:
        """Read its item."""
        return cls(
            read_text(item, "sk")[1:],
            read_text(item, "mark"),
            _whole(item, "waiting") or 0,
            _whole(item, "active") or 0,
            _whole(item, "scheduled") or 0,
            _whole(item, "dead") or 0,
            ceiling=_whole(item, "ceiling"),
            paused=read_text(item, "paused") if "paused" in item else None,
            turn=_whole(item, "turn"),
            due=_whole(item, "due"),
        )


@frozen
class Settings:
    """What holds for the whole queue: the reason it is paused for, and the ceiling of groups without their own."""

    paused: str | None = None
    ceiling: int | None = None

    @classmethod
    def of(cls, item: Item | None) -> Settings:
        """Read its item."""
        item = item or {}
        return cls(read_text(item, "paused") if "paused" in item else None, _whole(item, "ceiling"))


@frozen
class ClaimItem:
    """A claim in flight.

    Attributes:
        id: the claim.
        mark: of the step that last changed what it holds.
        expires_at: when its lease ends.
        ending: what its end does to its batch.
        total: how many jobs it took.
        held: the jobs it holds, in its order.
    """

    id: str
    mark: str
    expires_at: int
    ending: Ending
    total: int
    held: Mapping[str, JobRow] = field(factory=dict)

    def deadline(self, row: JobRow) -> int:
        """Answer when a held job's lease ends."""
        return max(self.expires_at, row.extended_to or 0)

    def held_map(self) -> dict[str, Any]:
        """Answer what it holds, as an attribute."""
        return {
            "M": {
                job_id: {"M": {**encode_state(row), "at": number(place)}}
                for place, (job_id, row) in enumerate(self.held.items())
            }
        }

    def item(self, key: Key) -> Item:
        """Answer its item."""
        return {
            **item_key(key),
            "mark": text(self.mark),
            "expires_at": number(self.expires_at),
            "total": number(self.total),
            "settled": text(self.ending.settled),
            "abandoned": text(self.ending.abandoned),
            "terminal": {"L": [text(state) for state in self.ending.terminal]},
            "held": self.held_map(),
        }

    @classmethod
    def of(cls, item: Item) -> ClaimItem:
        """Read its item."""
        held: dict[str, Any] = item.get("held", {}).get("M", {})
        ordered = sorted(held.items(), key=lambda pair: _whole(pair[1]["M"], "at") or 0)
        terminal = tuple(state["S"] for state in item.get("terminal", {}).get("L", []))
        return cls(
            read_text(item, "sk"),
            read_text(item, "mark"),
            _whole(item, "expires_at") or 0,
            Ending(read_text(item, "settled"), read_text(item, "abandoned"), terminal),
            _whole(item, "total") or 0,
            {job_id: read_state(state["M"], "active") for job_id, state in ordered},
        )


def _whole(item: Item, name: str) -> int | None:
    value = read_number(item, name)
    return value if isinstance(value, int) else None
