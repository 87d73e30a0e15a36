"""The floor for jobs on SQLite: the adapter's own statements for claim and settlement, by hand on the bare module.

It knows beforehand that there is one group, that nothing is paused or due, and that every job is held and done, so that
it looks nothing up that a program for one purpose would not look up.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from batchstate_sqlite import job_statements as sql
from batchstate_sqlite import statements

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SQLiteJobFloor"]

ENDING = json.dumps({"settled": "settled", "abandoned": "abandoned", "terminal": ["settled", "abandoned"]})


class SQLiteJobFloor:
    """Claims, extends and settles on a file that the adapter has made and filled with jobs of no group."""

    def __init__(self, path: Path, queue: str, waiting: int) -> None:
        self._queue = queue
        self._waiting = waiting
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = FULL")

    def claim(self, limit: int, now: int) -> tuple[str, list[str], list[Any]]:
        """Take up to `limit` jobs and make a claim of them; answer its ID, the jobs' IDs and their payloads."""
        execute, queue = self._connection.execute, self._queue
        claim_id, mark = str(uuid4()), secrets.token_hex(8)
        execute("BEGIN IMMEDIATE")
        rows = execute(sql.FIRST_IN_LINE, (claim_id, queue, "", limit)).fetchall()
        ids = [row[1] for row in rows]
        payloads = [json.loads(row[5]) for row in rows]
        execute(sql.HOLD_FIRST_IN_LINE, (claim_id, queue, queue, "", len(ids)))
        execute(sql.ADVANCE_LINE, (queue, "", rows[-1][4]))
        requests = json.dumps(ids, separators=(",", ":"))
        move = json.dumps([None, "claimed", 1, now, "bench", ""], separators=(",", ":"))
        values = (1, claim_id, 1, "claimed", 1, now, now, None, f"1:{mark}", move, requests, "{}")
        execute(statements.INSERT_BATCH, (queue, mark, *values))
        execute(statements.PUT_RECORD, (queue, "claimed", claim_id, 1))
        execute(sql.ASSOCIATE, (queue, claim_id, requests))
        execute(sql.PUT_CLAIM, (queue, claim_id, "", now + 30_000, now + 30_000, len(ids), ENDING))
        execute(sql.PUT_CLAIM_JOBS, (queue, claim_id, requests))
        execute(sql.PUT_LEASE, (queue, now + 30_000, claim_id))
        self._waiting -= len(ids)
        execute(sql.PUT_GROUP, (queue, "", self._waiting, len(ids), 0, 0, None, None, None, 1))
        execute("COMMIT")
        return claim_id, ids, payloads

    def settle(self, claim_id: str, ids: list[str], now: int) -> None:
        """Complete all jobs of a claim, which ends it."""
        execute, queue = self._connection.execute, self._queue
        text, until = json.dumps(ids), now + 86_400_000
        execute("BEGIN IMMEDIATE")
        execute(sql.COMPLETE_HELD_JOBS, (until, queue, text, claim_id))
        execute(sql.SET_OUTCOMES, ("completed", queue, text, claim_id))
        execute(sql.PUT_FORGETTING, (queue, until, claim_id, ids[0], text))
        execute(sql.DROP_CLAIM, (queue, claim_id))
        execute(sql.DROP_CLAIM_JOBS, (queue, claim_id))
        execute(sql.DROP_LEASE, (queue, now + 30_000, claim_id))
        row = execute(statements.BATCH_OF, (queue, claim_id)).fetchone()
        mark = secrets.token_hex(8)
        moves = f"{row[9]}\n{json.dumps(['claimed', 'settled', 2, now, 'bench', ''], separators=(',', ':'))}"
        values = (1, mark, 2, "settled", 2, now, now, f"{row[8]} 2:{mark}", moves, row[11])
        execute(statements.SWAP_BATCH, (*values, queue, claim_id, 1, row[8].partition(":")[2]))
        execute(statements.FILE_RETIRED, (queue, now, claim_id))
        execute(statements.DELETE_RECORD, (queue, "claimed", claim_id, 1))
        execute(sql.PUT_GROUP, (queue, "", self._waiting, 0, 0, 0, None, None, None, 1))
        execute("COMMIT")

    def extend(self, claim_id: str, now: int) -> None:
        """Extend a claim."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute(sql.EXTEND_CLAIM, (now + 30_000, self._queue, claim_id)).fetchall()
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
