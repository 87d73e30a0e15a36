"""The SQLite backend: the embedded default, one machine, any number of processes and threads.

What it promises beyond the protocol, and what it does not:

- a move, a creation and a purge of a batch are each one `BEGIN IMMEDIATE` transaction; a listing of
  several states is one snapshot;
- with `synchronous="FULL"`, the default, what was acknowledged is on disk; with `"NORMAL"` a loss of
  power (not a crash of the program) may take the last few commits back, whole ones;
- a store that stays busy beyond `timeout` raises a retryable error with nothing written;
- the file needs a local disk: write-ahead logging does not work over a network file system.
"""

from batchstate_sqlite.database import SQLiteDatabase
from batchstate_sqlite.storage import SQLiteStorage

__all__ = ["SQLiteDatabase", "SQLiteStorage"]
