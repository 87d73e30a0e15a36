"""For whoever tests on batchstate or writes an adapter for it: the fault store, the explorer, the contract as a suite.

Needs the extra `testing`. The author of an adapter inherits the suite and gives a fixture, see `Harness`:

    class TestMine(StorageContract):
        @pytest.fixture
        def harness(self) -> Harness: ...

One whose storage keeps jobs inherits `JobContract` in a second class, with the same fixture.
"""

import pytest

# Before the imports: the asserts of the suite are to say what they compared, wherever it is used.
pytest.register_assert_rewrite(
    "batchstate.testing.contract", "batchstate.testing.machine", "batchstate.testing.machine_checks"
)

from batchstate.testing.clock import ManualClock  # noqa: E402
from batchstate.testing.contract import StorageContract  # noqa: E402
from batchstate.testing.contract.interleaved import ExplorerContract, JobExplorerContract  # noqa: E402
from batchstate.testing.contract.jobs import JobContract  # noqa: E402
from batchstate.testing.faults import (  # noqa: E402
    WRITES,
    Crash,
    Fault,
    FaultStore,
    Record,
    Stop,
    crash_after,
    crash_before,
    drop_reply,
    record,
    resend,
    stop_after,
    stop_before,
)
from batchstate.testing.forwarding import Call  # noqa: E402
from batchstate.testing.harness import Harness  # noqa: E402

__all__ = [
    "WRITES",
    "Call",
    "Crash",
    "ExplorerContract",
    "Fault",
    "FaultStore",
    "Harness",
    "JobContract",
    "JobExplorerContract",
    "ManualClock",
    "Record",
    "Stop",
    "StorageContract",
    "crash_after",
    "crash_before",
    "drop_reply",
    "record",
    "resend",
    "stop_after",
    "stop_before",
]
