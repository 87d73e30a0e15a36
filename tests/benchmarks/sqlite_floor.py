"""The floor for SQLite: the adapter's own statements with the same bytes, by hand on the bare `sqlite3` module."""

from __future__ import annotations

import json
import secrets
import sqlite3
from typing import TYPE_CHECKING, Any

from batchstate_sqlite import statements

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from batchstate import Batch

__all__ = ["SQLiteFloor"]

Held = tuple[str, int, str, str, str, dict[str, Any]]
"""ID, version, state, marks, moves, attributes."""


class SQLiteFloor:
    """Moves and lists batches by hand, on a file that the adapter has made and filled."""

    def __init__(self, path: Path, queue: str, batches: Sequence[Batch]) -> None:
        self._queue = queue
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = FULL")
        self.held: list[Held] = [
            (batch.id, batch.version, batch.state, batch.marks, batch.history.text, batch.attributes)
            for batch in batches
        ]

    def move(self, places: Sequence[int], to: str, now: int) -> None:
        """Move the held batches at these places in one transaction."""
        execute = self._connection.execute
        puts: list[tuple[str, str, str, int]] = []
        deletes: list[tuple[str, str, str, int]] = []
        execute("BEGIN IMMEDIATE")
        for place in places:
            batch_id, version, state, marks, moves, attributes = self.held[place]
            mark = secrets.token_hex(8)
            new_marks = f"{' '.join(marks.split(' ')[-7:])} {version + 1}:{mark}"
            move = json.dumps([state, to, version + 1, now, "bench", ""], separators=(",", ":"))
            new_moves = "\n".join([*moves.split("\n")[-19:], move])
            encoded = json.dumps(attributes, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            done = execute(
                statements.SWAP_BATCH,
                (
                    *(1, mark, version + 1, to, version + 1, now, None, new_marks, new_moves, encoded),
                    *(self._queue, batch_id, version, marks.rpartition(":")[2]),
                ),
            )
            if done.rowcount != 1:
                raise AssertionError(batch_id)
            puts.append((self._queue, to, batch_id, version + 1))
            deletes.append((self._queue, state, batch_id, version))
            self.held[place] = (batch_id, version + 1, to, new_marks, new_moves, attributes)
        self._connection.executemany(statements.PUT_RECORD, puts)
        self._connection.executemany(statements.DELETE_RECORD, deletes)
        execute("COMMIT")

    def list_state(self, state: str) -> list[tuple[Any, ...]]:
        """List a state: its records, then their rows by key, requests and attributes decoded."""
        records = self._connection.execute(statements.RECORDS_OF_STATES, (json.dumps([state]), self._queue)).fetchall()
        found: list[tuple[Any, ...]] = []
        for start in range(0, len(records), 500):
            ids = json.dumps([batch_id for _, batch_id, _ in records[start : start + 500]])
            rows = self._connection.execute(statements.BATCHES_OF, (ids, self._queue))
            found += [(*row[:10], json.loads(row[10]), json.loads(row[11])) for row in rows if row[3] == state]
        return sorted(found, key=lambda row: str(row[1]))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
