"""`RedisStorage`: the storage protocol over a Redis or Valkey server or cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self, TypeVar

from batchstate.entities import Association, Batch, MembershipRecord
from batchstate.errors import (
    BatchStateError,
    InvalidTransitionError,
    InvalidValueError,
    VersionMismatchError,
)
from batchstate.names import check_name
from batchstate.storage import Kind, Outcome, Page, Swap, Unreadable, judge_creation, judge_swap
from batchstate.times import Clock, wall_clock
from batchstate.transition import record_of
from batchstate.wire import BatchRow, check_association, check_record, encode_each
from batchstate_redis import calls
from batchstate_redis.clients import PATIENCE, check_client, check_server, describe_client, open_client
from batchstate_redis.describing import describe
from batchstate_redis.job_scripts import JobRunner
from batchstate_redis.jobs import RedisJobs
from batchstate_redis.keys import DEFAULT_PREFIX, Keys, queues_key, text_of
from batchstate_redis.paging import Pager, entries_of
from batchstate_redis.rows import MAX_ROW, read_row
from batchstate_redis.scripts import MOST_AT_ONCE, Call, Runner, in_chunks, script
from batchstate_redis.waking import Listener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    from batchstate.urls import StorageURL
    from batchstate_redis.clients import Client

__all__ = ["RedisStorage"]

ROWS_AT_ONCE: Final = 500
SNAPSHOT: Final = 10_000
"""How many records one snapshot holds at most: some 3 ms for the server."""

HIGHEST_VERSION: Final = 2**53
"""A sorted set's scores are exact up to here."""

Item = TypeVar("Item")


class RedisStorage(RedisJobs):
    """One queue of a store on a Redis or Valkey server, or on a cluster of them.

    Args:
        client: redis-py's own for one server, for a cluster (`RedisCluster`) or from a `Sentinel`'s
            `master_for`; it is left open. Whether it decodes replies, and which protocol it
            speaks, makes no difference. One that reads from replicas is refused: they may lag.
        queue: the queue.
        prefix: what all keys of the store begin with, so that several share a server.
        patience: for how many seconds a call goes on trying, beside the client's own retries, while
            a failover or a restart passes; then it raises `StorageUnavailableError`.
        clock: answers the time in milliseconds since the epoch; by default the server's for leases
            and this machine's for the history.

    Raises:
        InvalidNameError: the queue or the prefix is no name, or the prefix has braces.
        InvalidValueError: `client` is none that can be used.
    """

    def __init__(
        self,
        client: Client,
        queue: str,
        *,
        prefix: str = DEFAULT_PREFIX,
        patience: float = PATIENCE,
        clock: Clock | None = None,
    ) -> None:
        self._queue = check_name("queue", queue)
        self._prefix = prefix
        self._keys = Keys(prefix, queue)
        self._queues = queues_key(prefix)
        self._runner = Runner(check_client(client), patience, describe_client(client))
        self._pager = Pager(self._runner, self._keys, queue)
        self._jobs = JobRunner(self._runner, self._keys, clock)
        self._listener = Listener(client, self._keys.job_part("wake").decode())
        self._has_looked = False
        self._is_known = False
        self._close: Callable[[], None] | None = None
        self.clock = clock or wall_clock

    @classmethod
    def from_url(cls, url: StorageURL, queue: str, *, clock: Clock | None = None) -> Self:
        """Open `redis://`, `rediss://`, `unix://`, `redis+cluster://`, `rediss+cluster://` or `redis+sentinel://`.

        Raises:
            InvalidValueError: the URL is none, or the server refuses the user, the password, the
                database or the TLS connection, or is older than 6.2.
            StorageUnavailableError: the server cannot be reached.
        """
        opened = open_client(url)
        try:
            store = cls(opened.client, queue, prefix=opened.prefix, patience=opened.patience, clock=clock)
            store._runner.is_opening = True
            store._look_at_server()
        except BaseException:
            opened.close()
            raise
        store._runner.is_opening = False
        store._close = opened.close
        return store

    def __repr__(self) -> str:
        return f"<RedisStorage of queue {self._queue!r} at {self._runner.where}>"

    @property
    def queue(self) -> str:
        return self._queue

    # ------------------------------------------------------------------------------------ batches

    def check_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return [row if isinstance(row, BatchStateError) else None for row in self._encode(batches)]

    def create_batches(self, batches: Sequence[Batch]) -> list[Outcome]:
        return self._create(batches, [()] * len(batches), whole=False)

    def create_whole(self, batches: Sequence[Batch]) -> list[Outcome]:
        """As `AtomicCreates` says; a batch of more than some 2,000 requests in several steps.

        Of such a one the associations are filed before, if there is no row of its ID yet. Where
        another creation of the ID comes in between, associations are left that lead nowhere, as in
        the protocol's own order; readers skip and count them.
        """
        requests = [tuple(dict.fromkeys(batch.request_ids)) for batch in batches]
        return self._create(batches, requests, whole=True)

    def get_batches(self, ids: Iterable[str]) -> dict[str, Batch | Unreadable]:
        wanted = list(dict.fromkeys(ids))
        rows: dict[str, Batch | Unreadable] = {}
        for start in range(0, len(wanted), ROWS_AT_ONCE):
            chunk = wanted[start : start + ROWS_AT_ONCE]
            found = self._runner.execute("MGET", *map(self._keys.batch, chunk))
            for batch_id, raw in zip(chunk, found, strict=True):
                if raw is not None:
                    rows[batch_id] = read_row(raw, batch_id, self._queue)
        return rows

    def update_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        return self._swap(swaps, records=False)

    def move_batches(self, swaps: Sequence[Swap]) -> list[Outcome]:
        return self._swap(swaps, records=True)

    def list_retired(self, cursor: str | None = None, *, limit: int = 500) -> Page[Batch | Unreadable]:
        batch_ids, following = self._pager.retired(cursor, limit)
        return Page(list(self.get_batches(batch_ids).values()), following)

    def delete_batches(self, batches: Sequence[Batch], states: Sequence[str]) -> list[Outcome]:
        states = tuple(dict.fromkeys(states))
        outcomes = [_refusal(record_of(batch), self._check_record) for batch in batches]
        pieces = [
            piece
            for place, (batch, outcome) in enumerate(zip(batches, outcomes, strict=True))
            if outcome is None
            for piece in _pieces(place, batch)
        ]
        for chunk in in_chunks(pieces, lambda piece: 4 + len(states) + len(piece[2])):
            due = [piece for piece in chunk if outcomes[piece[0]] is None]
            call = calls.deletion_call(self._keys, [piece[1:] for piece in due], states)
            for (place, batch, *_), answer in zip(due, self._runner.run(script("delete_batches"), call), strict=True):
                if answer != 1:
                    outcomes[place] = _judge_deletion(batch, read_row(answer, batch.id, self._queue))
        return outcomes

    # ------------------------------------------------------------------------------------ records

    def put_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._write(records, self._check_record, "put_records", calls.record_put_call)

    def delete_records(self, records: Sequence[MembershipRecord]) -> list[Outcome]:
        return self._write(records, self._check_record, "delete_records", calls.record_deletion_call)

    def get_records(self, keys: Iterable[tuple[str, str]]) -> list[MembershipRecord]:
        records = []
        for chunk in in_chunks(dict.fromkeys(keys), lambda _: 1):
            versions = self._runner.run(script("get_records"), calls.get_records_call(self._keys, chunk))
            records += [
                MembershipRecord(self._queue, state, batch_id, int(version))
                for (state, batch_id), version in zip(chunk, versions, strict=True)
                if version
            ]
        return records

    def list_records(self, state: str, cursor: str | None = None, *, limit: int = 500) -> Page[MembershipRecord]:
        """As `Storage` says; a bucket of up to some 128 records comes in one page, whatever the limit."""
        return Page(*self._pager.bucket(state, cursor, limit))

    def list_records_of(self, states: Sequence[str]) -> list[MembershipRecord] | None:
        """As `SnapshotListing` says, for up to 10,000 records."""
        if not states:
            return []
        distinct = tuple(dict.fromkeys(states))
        call = Call(*map(self._keys.state, distinct))
        call.arguments.append(SNAPSHOT)
        found = self._runner.run(script("list_records_of"), call)
        if found == 0:
            return None
        return [
            MembershipRecord(self._queue, state, *entry)
            for state, flat in zip(distinct, found, strict=True)
            for entry in entries_of(flat)
        ]

    # ------------------------------------------------------------------------------- associations

    def put_associations(self, associations: Sequence[Association]) -> list[Outcome]:
        return self._write(associations, self._check_association, "put_associations", calls.association_call)

    def list_associations(self, request_id: str) -> list[Association]:
        return [
            Association(self._queue, request_id, batch_id, outcome)
            for batch_id, outcome in self._pager.attempts(request_id)
        ]

    # ------------------------------------------------------------------------------------- status

    def list_queues(self) -> list[str]:
        names = sorted(text_of(name) for name in self._runner.execute("SMEMBERS", self._queues))
        return [name for name in names if self._is_in_use(Keys(self._prefix, name))]

    def _is_in_use(self, keys: Keys) -> bool:
        """Answer whether a queue has a batch or a job; the count of batches is there while there are some."""
        return int(self._runner.execute("EXISTS", keys.count, keys.job_part("jobs"))) > 0

    def scan(self, kind: Kind, cursor: str | None = None, *, limit: int = 500) -> Page[object]:
        if kind == "batches":
            keys, following = self._pager.keys("b", cursor, limit)
            return Page(list(self.get_batches(map(self._keys.batch_id, keys)).values()), following)
        if kind == "records":
            return Page(*self._pager.records(cursor, limit))
        keys, following = self._pager.keys("a", cursor, limit)
        return Page(self._pager.associations_under(keys), following)

    def describe(self) -> tuple[dict[str, str], list[str]]:
        return describe(self._runner, self._keys.count)

    def close(self) -> None:
        self._listener.close()
        close, self._close = self._close, None
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------------------ the rest

    def _encode(self, batches: Sequence[Batch]) -> list[BatchRow | BatchStateError]:
        rows = encode_each(batches, self._queue, most=MAX_ROW)
        return [row if isinstance(row, BatchStateError) else _too_high(row.version) or row for row in rows]

    def _create(self, batches: Sequence[Batch], requests: Sequence[Sequence[str]], *, whole: bool) -> list[Outcome]:
        rows = self._encode(batches)
        outcomes: list[Outcome] = [row if isinstance(row, BatchStateError) else None for row in rows]
        creations = [
            (batch, row, several)
            for batch, row, several in zip(batches, rows, requests, strict=True)
            if not isinstance(row, BatchStateError)
        ]
        if creations:
            self._introduce()
        answers: list[Outcome] = []
        for chunk in in_chunks(creations, calls.cost_of_creation):
            few = [self._file_ahead(*chunk[0])] if len(chunk[0][2]) > MOST_AT_ONCE else chunk
            call = calls.creation_call(self._keys, few, records=whole)
            answers += [
                None if answer == 1 else judge_creation(batch, read_row(answer, batch.id, self._queue))
                for (batch, *_), answer in zip(few, self._runner.run(script("create_batches"), call), strict=True)
            ]
        return _filled(outcomes, answers)

    def _file_ahead(self, batch: Batch, row: BatchRow, requests: Sequence[str]) -> calls.Creation:
        """File so many associations before the row, unless another's row is there; answer what is left to do."""
        met = self.get_batches([batch.id]).get(batch.id)
        if met is None or judge_creation(batch, met) is None:
            self.put_associations([Association(self._queue, request, batch.id) for request in requests])
        return batch, row, ()

    def _swap(self, swaps: Sequence[Swap], *, records: bool) -> list[Outcome]:
        rows = self._encode([swap.after for swap in swaps])
        outcomes: list[Outcome] = [row if isinstance(row, BatchStateError) else None for row in rows]
        sound = [(swap, row) for swap, row in zip(swaps, rows, strict=True) if not isinstance(row, BatchStateError)]
        answers: list[Outcome] = []
        for chunk in in_chunks(sound, calls.cost_of_swap):
            call = calls.swap_call(self._keys, chunk, records=records)
            for (swap, row), answer in zip(chunk, self._runner.run(script("swap_batches"), call), strict=True):
                if answer == 1:
                    answers.append(None)
                else:
                    met = None if answer == 0 else read_row(answer, row.id, self._queue)
                    answers.append(judge_swap(swap, met))
        return _filled(outcomes, answers)

    def _write(
        self,
        items: Sequence[Item],
        check: Callable[[Item], None],
        name: str,
        build: Callable[[Keys, Sequence[Item]], Call],
    ) -> list[Outcome]:
        """Run a script whose answer is the same for all, over the items that are sound."""
        outcomes = [_refusal(item, check) for item in items]
        sound = [item for item, outcome in zip(items, outcomes, strict=True) if outcome is None]
        for chunk in in_chunks(sound, lambda _: 2):
            self._runner.run(script(name), build(self._keys, chunk))
        return outcomes

    def _check_record(self, record: MembershipRecord) -> None:
        check_record(record, self._queue)
        if error := _too_high(record.version):
            raise error

    def _check_association(self, association: Association) -> None:
        check_association(association, self._queue)

    def _introduce(self) -> None:
        """Make the queue known to `list_queues`, before the first row that this storage creates."""
        if not self._is_known:
            self._look_at_server()
            self._runner.execute("SADD", self._queues, self._queue.encode())
            self._is_known = True

    def _look_at_server(self) -> None:
        if not self._has_looked:
            server, memory = self._runner.run(script("describe_server"), Call(self._keys.count))
            check_server(self._runner.client, server, memory, self._runner.where)
            self._has_looked = True


def _filled(outcomes: list[Outcome], answers: Iterable[Outcome]) -> list[Outcome]:
    """Put the answers in the places of those that nothing was refused for."""
    rest = iter(answers)
    return [next(rest) if outcome is None else outcome for outcome in outcomes]


def _refusal(item: Item, check: Callable[[Item], None]) -> Outcome:
    try:
        check(item)
    except BatchStateError as error:
        return error
    return None


def _too_high(version: int) -> InvalidValueError | None:
    if version <= HIGHEST_VERSION:
        return None
    return InvalidValueError(f"a version must be at most 2**53 here, not {version}: a bucket could not order it")


def _pieces(place: int, batch: Batch) -> Iterator[tuple[int, Batch, Sequence[str], bool]]:
    """Cut a deletion so that each piece is little work for the server; the last one deletes the row."""
    requests = tuple(dict.fromkeys(batch.request_ids))
    while len(requests) > MOST_AT_ONCE:
        yield place, batch, requests[:MOST_AT_ONCE], False
        requests = requests[MOST_AT_ONCE:]
    yield place, batch, requests, True


def _judge_deletion(batch: Batch, met: Batch | Unreadable) -> Outcome:
    if isinstance(met, BatchStateError):
        return met
    if met.retired_at is None:
        return InvalidTransitionError(f"batch {batch.id!r} is not retired, and only retired ones are deleted")
    return VersionMismatchError(
        f"batch {batch.id!r} is at version {met.version}, and you hold {batch.version}",
        batch_id=batch.id,
        expected=batch.version,
        current=met,
        applied=False,
    )
