"""What all steps on a queue's jobs share: the way to the table, looking things up, and deciding anew.

Every step on a group's jobs writes the group's item on condition that nobody wrote it since the step read it; what it
then read of the group is still so when it writes. Where it is not, nothing was written, and it decides anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from batchstate.entities import Batch
from batchstate.errors import StorageUnavailableError
from batchstate_dynamodb.job_layout import SHARDS, ClaimItem, Group, Guard, Settings, read_state
from batchstate_dynamodb.layout import Key, item_key, number, read_number, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from batchstate.job_wire import JobRow
    from batchstate.times import Clock
    from batchstate_dynamodb.job_layout import JobKeys
    from batchstate_dynamodb.layout import Item, Layout
    from batchstate_dynamodb.queues import QueueEntry
    from batchstate_dynamodb.requests import Requests
    from batchstate_dynamodb.retired import Retired
    from batchstate_dynamodb.sharding import Shards

__all__ = ["JobBase"]

_TRIES: Final = 50
"""How often a step decides anew because others wrote in between, before the store counts as unavailable."""

Answer = TypeVar("Answer")


class JobBase:
    """The part of `TransactingDynamoDBStorage` that finds jobs."""

    _queue: str
    _requests: Requests
    _layout: Layout
    _shards: Shards
    _entry: QueueEntry
    _retired: Retired
    _keys: JobKeys
    clock: Clock

    def _decide(self, decide: Callable[[], Answer | None]) -> Answer:
        """Do `decide` until it answers something; it answers `None` where others wrote in between."""
        for tries in range(_TRIES):
            answer = decide()
            if answer is not None:
                return answer
            self._requests.back_off(tries)
        msg = f"others write the same jobs of queue {self._queue!r} all the time; nothing was written"
        raise StorageUnavailableError(msg)

    def _reserve(self, counter: str, many: int) -> int:
        """Take so many numbers off a counter; answer the first."""
        response = self._requests.call(
            "update_item",
            Key=item_key(self._keys.numbers),
            UpdateExpression="ADD #counter :many",
            ExpressionAttributeNames={"#counter": counter},
            ExpressionAttributeValues={":many": number(many)},
            ReturnValues="UPDATED_NEW",
        )
        last = read_number(response["Attributes"], counter)
        assert isinstance(last, int)  # noqa: S101 - a counter
        return last - many + 1

    def _settings(self) -> Settings:
        return Settings.of(self._requests.get(self._keys.settings))

    def _groups(self, names: Iterable[str]) -> tuple[Settings, dict[str, Group]]:
        """Load groups, and what holds for the whole queue; a group without an item is a bare one."""
        settings, groups, _ = self._look_up(names, ())
        return settings, groups

    def _look_up(self, names: Iterable[str], keys: Iterable[Key]) -> tuple[Settings, dict[str, Group], dict[Key, Item]]:
        """Load groups as `_groups` does, and other items with them; those that are missing are absent."""
        distinct = list(dict.fromkeys(names))
        wanted = [self._keys.settings, *map(self._keys.group, distinct), *keys]
        found = self._requests.get_many(wanted, lambda item: item)
        groups = {
            name: Group.of(found[key]) if (key := self._keys.group(name)) in found else Group(name) for name in distinct
        }
        return Settings.of(found.get(self._keys.settings)), groups, found

    def _all_groups(self) -> dict[str, Group]:
        groups = [Group.of(item) for item in self._requests.query_all(self._keys.groups)]
        return {group.name: group for group in groups}

    def _guards(self, ids: Iterable[str]) -> dict[str, Guard]:
        found = self._requests.get_many([self._keys.guard(job_id) for job_id in ids], Guard.of)
        return {guard.id: guard for guard in found.values()}

    def _claim_item(self, claim_id: str) -> ClaimItem | None:
        item = self._requests.get(self._keys.claim(claim_id)) if claim_id else None
        return None if item is None else ClaimItem.of(item)

    def _all_claims(self) -> list[ClaimItem]:
        shards = self._requests.side_by_side(
            lambda shard: self._requests.query_all(self._keys.claims(shard)), range(SHARDS)
        )
        return [ClaimItem.of(item) for items in shards for item in items]

    def _outcomes(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Load the outcomes of jobs' associations with claims, by `(job, claim)`; missing ones are absent."""
        keys = self._association_keys(pairs)
        return self._outcomes_among(self._requests.get_many(keys, lambda item: item), keys)

    def _association_keys(self, pairs: Iterable[tuple[str, str]]) -> list[Key]:
        return [Key(self._layout.attempts(job_id), claim_id) for job_id, claim_id in pairs if claim_id]

    def _outcomes_among(self, found: dict[Key, Item], keys: Iterable[Key]) -> dict[tuple[str, str], str]:
        """Answer the outcomes of those associations that were found."""
        read = [self._layout.read_association(found[key]) for key in keys if key in found]
        return {(one.request_id, one.batch_id): one.outcome for one in read}

    def _batch(self, batch_id: str) -> Batch | None:
        """Load a batch; `None` where there is none that can be read."""
        return self._read_batch(self._requests.get(self._layout.row(batch_id)))

    def _read_batch(self, item: Item | None) -> Batch | None:
        found = None if item is None else self._layout.read_row(item)
        return found if isinstance(found, Batch) else None

    def _locate(self, guards: Iterable[Guard]) -> dict[str, tuple[JobRow, ClaimItem | None]]:
        """Find where jobs are: their rows, and the claims of those that are held.

        The places that follow from what the guard says are read first; who is in none of them is sought in the
        claims in flight. A job that moves meanwhile may be in none.
        """
        present = [guard for guard in guards if guard.done is None]
        places: dict[Key, tuple[Guard, str]] = {}
        for guard in present:
            line = f"{guard.order:016d}:{guard.id}"
            places[Key(self._keys.waiting(guard.group), line)] = (guard, "waiting")
            places[Key(self._keys.dead, line)] = (guard, "dead")
            if guard.due is not None:
                due = Key(self._keys.scheduled(guard.group), f"{max(guard.due, 0):016d}:{line}")
                places[due] = (guard, "scheduled")
        found: dict[str, tuple[JobRow, ClaimItem | None]] = {}
        for key, item in self._requests.get_many(places, lambda item: item).items():
            guard, place = places[key]
            row = read_state(item, place, guard.payload)
            if row.group == guard.group:
                found[guard.id] = (row, None)
        missing = {guard.id: guard for guard in present if guard.id not in found}
        for claim in self._all_claims() if missing else ():
            for job_id in missing.keys() & claim.held.keys():
                found[job_id] = (claim.held[job_id]._replace(payload=missing[job_id].payload), claim)
        return found

    def _head(self, pk: str, limit: int, before: str | None = None) -> Sequence[Item]:
        """Load the first items of a partition, or those of them whose sort keys are before one."""
        if before is None:
            return self._requests.query(pk, None, limit).items
        response = self._requests.call(
            "query",
            KeyConditionExpression="pk = :pk AND sk < :before",
            ExpressionAttributeValues={":pk": {"S": pk}, ":before": {"S": before}},
            ConsistentRead=True,
            Limit=limit,
        )
        items: Sequence[Item] = response.get("Items", [])
        return items

    @staticmethod
    def _sk(item: Item) -> str:
        return read_text(item, "sk")
