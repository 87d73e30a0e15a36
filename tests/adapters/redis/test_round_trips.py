"""How often a call goes to the server and back, counted on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batchstate.creation import create_batch, create_many
from batchstate.entities import Batch
from batchstate.errors import VersionMismatchError
from batchstate.listing import find_by_request_id, list_by_states
from batchstate.transition import ensure_record, transition, transition_many
from tests.adapters.redis.given import made, new

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from batchstate_redis import RedisStorage
    from tests.servers.proxy import DroppingProxy

    Count: TypeAlias = Callable[[Callable[[], object]], int]


@pytest.fixture
def counted(far_store: RedisStorage, proxy: DroppingProxy) -> Count:
    """Count the round trips of a call, once the scripts are in the server's cache and the queue is known."""
    batch = made(far_store, "first")
    transition(far_store, batch, "testing")
    list_by_states(far_store, ["testing"])
    find_by_request_id(far_store, "r-1")
    ensure_record(far_store, batch)

    def count(call: Callable[[], object]) -> int:
        proxy.forget()
        call()
        return proxy.round_trips

    return count


def test_a_transition_is_one(far_store: RedisStorage, counted: Count) -> None:
    """A transition, its record's put and the old one's removal are one round trip."""
    batch = made(far_store)
    assert counted(lambda: transition(far_store, batch, "testing")) == 1


def test_a_creation_is_one(far_store: RedisStorage, counted: Count) -> None:
    """A creation with its associations and its record is one round trip."""
    assert counted(lambda: create_batch(far_store, new())) == 1


def test_a_hundred_are_one(far_store: RedisStorage, counted: Count) -> None:
    """A hundred creations are one round trip, and so are a hundred transitions."""
    batches = [new(f"b-{number}") for number in range(100)]
    assert counted(lambda: create_many(far_store, batches)) == 1
    rows = far_store.get_batches([batch.id for batch in batches]).values()
    stored = [row for row in rows if isinstance(row, Batch)]
    assert len(stored) == 100
    assert counted(lambda: transition_many(far_store, stored, "testing")) == 1


def test_thousands_are_some(far_store: RedisStorage, counted: Count) -> None:
    """Thousands take some round trips, since no single one may keep the server from others for long."""
    batches = [new(f"b-{number}") for number in range(3_000)]
    assert 5 < counted(lambda: create_many(far_store, batches)) < 20


def test_a_listing_is_two(far_store: RedisStorage, counted: Count) -> None:
    """A listing of up to 500 batches, of however many states, is two round trips."""
    create_many(far_store, [new(f"b-{number}") for number in range(499)])
    assert counted(lambda: list_by_states(far_store, ["queued", "testing", "merging"])) == 2


def test_a_search_is_two(far_store: RedisStorage, counted: Count) -> None:
    """A search for the attempts at a request is two round trips."""
    made(far_store)
    assert counted(lambda: find_by_request_id(far_store, "r-1")) == 2


def test_a_lost_race_is_one(far_store: RedisStorage, counted: Count) -> None:
    """A swap that fails its condition is answered with the row it met: nobody need ask again."""
    batch = made(far_store)
    transition(far_store, batch, "testing")

    def lose() -> None:
        with pytest.raises(VersionMismatchError) as lost:
            transition(far_store, batch, "merging")
        assert lost.value.current is not None
        assert lost.value.current.state == "testing"

    assert counted(lose) == 1
