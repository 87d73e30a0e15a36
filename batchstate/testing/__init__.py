"""For whoever tests on batchstate or writes an adapter for it: the fault store, the explorer, the contract as a suite.

Needs the extra `testing`.
"""

from batchstate.testing.faults import (
    WRITES,
    Call,
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

__all__ = [
    "WRITES",
    "Call",
    "Crash",
    "Fault",
    "FaultStore",
    "Record",
    "Stop",
    "crash_after",
    "crash_before",
    "drop_reply",
    "record",
    "resend",
    "stop_after",
    "stop_before",
]
