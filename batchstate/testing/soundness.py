"""Whether a store is sound after a test: nothing that `check` finds may be left that the test did not declare."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from batchstate.checking import check_batches
from batchstate.claims.context import has_jobs
from batchstate.job_checking import check_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batchstate.checking import Fault
    from batchstate.storage import Storage
    from batchstate.testing.harness import Harness

__all__ = ["faults_left", "leaves"]

Test = TypeVar("Test", bound="Callable[..., object]")

ANYTHING = "*"


def leaves(*kinds: str) -> Callable[[Test], Test]:
    """Declare which kinds of faults a test may leave in the store, as it means to; `"*"` stands for all."""

    def declare(test: Test) -> Test:
        test.__dict__["leaves"] = frozenset(kinds)
        return test

    return declare


def faults_left(harness: Harness, test: Callable[..., object]) -> list[Fault]:
    """Answer the faults in all queues of the harness's store that `test` does not declare."""
    declared: frozenset[str] = getattr(test, "leaves", frozenset())
    if ANYTHING in declared:
        return []
    with harness.open() as store:
        names = store.list_queues()
    found: list[Fault] = []
    for name in names:
        with harness.open(name) as store:
            found += [fault for fault in _faults_of(store, harness) if fault.kind not in declared]
    return found


def _faults_of(store: Storage, harness: Harness) -> Iterator[Fault]:
    yield from check_batches(store, None, settled_for=0, clock=harness.clock)
    if has_jobs(store):
        yield from check_jobs(store)
