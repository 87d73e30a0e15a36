"""The SQL, all of it, each statement a search by key; only those of `scan` go through a table, a queue's part of it."""

from __future__ import annotations

from typing import Final

from batchstate.wire import BatchRow

__all__ = [
    "ASSOCIATIONS_OF",
    "BATCHES_AFTER",
    "BATCHES_OF",
    "BATCH_OF",
    "DELETE_ASSOCIATION",
    "DELETE_BATCH",
    "DELETE_RECORD",
    "DELETE_RETIRED",
    "FILE_RETIRED",
    "INSERT_BATCH",
    "PUT_ASSOCIATION",
    "PUT_LIVE_RECORD",
    "PUT_RECORD",
    "QUEUES",
    "RECORDS_AFTER",
    "RECORDS_OF",
    "RECORDS_OF_STATES",
    "RETIRED_AFTER",
    "SCAN_ASSOCIATIONS",
    "SCAN_RECORDS",
    "STANDING",
    "SWAP_BATCH",
]

_COLUMNS: Final = ", ".join(BatchRow._fields)
_COLUMNS_OF_B: Final = ", ".join(f"b.{column}" for column in BatchRow._fields)

# --------------------------------------------------------------------------------------- rows

INSERT_BATCH: Final = f"""
    INSERT INTO batchstate_batches (queue, mark, {_COLUMNS})
    VALUES (?, ?, {", ".join("?" * len(BatchRow._fields))})
    ON CONFLICT (queue, id) DO NOTHING
"""

SWAP_BATCH: Final = """
    UPDATE batchstate_batches
    SET format = ?, mark = ?, version = ?, state = ?, entered = ?, updated_at = ?, retired_at = ?, marks = ?,
        moves = ?, attributes = ?
    WHERE queue = ? AND id = ? AND version = ? AND ? IN (mark, '') AND retired_at IS NULL
"""

BATCH_OF: Final = f"SELECT {_COLUMNS} FROM batchstate_batches WHERE queue = ? AND id = ?"

BATCHES_OF: Final = f"""
    SELECT {_COLUMNS_OF_B} FROM json_each(?) AS k CROSS JOIN batchstate_batches AS b
    WHERE b.queue = ? AND b.id = k.value
"""

STANDING: Final = "SELECT version, retired_at FROM batchstate_batches WHERE queue = ? AND id = ?"

DELETE_BATCH: Final = "DELETE FROM batchstate_batches WHERE queue = ? AND id = ?"

BATCHES_AFTER: Final = f"""
    SELECT {_COLUMNS} FROM batchstate_batches WHERE queue = ? AND id > ? ORDER BY id LIMIT ?
"""

QUEUES: Final = """
    WITH RECURSIVE found (queue) AS (
        SELECT min(queue) FROM batchstate_batches
        UNION ALL
        SELECT (SELECT min(b.queue) FROM batchstate_batches AS b WHERE b.queue > found.queue)
        FROM found WHERE found.queue IS NOT NULL
    )
    SELECT queue FROM found WHERE queue IS NOT NULL
"""

# ------------------------------------------------------------------------------------ records

_KEEP_HIGHER: Final = """
    ON CONFLICT (queue, state, batch_id) DO UPDATE SET version = excluded.version
    WHERE excluded.version > batchstate_records.version
"""

PUT_RECORD: Final = f"""
    INSERT INTO batchstate_records (queue, state, batch_id, version) VALUES (?, ?, ?, ?) {_KEEP_HIGHER}
"""

# Numbered parameters would say it shorter, but Python 3.12 and later want names for those.
PUT_LIVE_RECORD: Final = f"""
    INSERT INTO batchstate_records (queue, state, batch_id, version)
    SELECT new.queue, new.state, new.batch_id, new.version
    FROM (SELECT ? AS queue, ? AS state, ? AS batch_id, ? AS version) AS new
    JOIN batchstate_batches AS b ON b.queue = new.queue AND b.id = new.batch_id
    WHERE b.retired_at IS NULL {_KEEP_HIGHER}
"""

DELETE_RECORD: Final = """
    DELETE FROM batchstate_records WHERE queue = ? AND state = ? AND batch_id = ? AND version <= ?
"""

RECORDS_OF: Final = """
    SELECT r.state, r.batch_id, r.version FROM json_each(?) AS k CROSS JOIN batchstate_records AS r
    WHERE r.queue = ? AND r.state = json_extract(k.value, '$[0]') AND r.batch_id = json_extract(k.value, '$[1]')
"""

RECORDS_AFTER: Final = """
    SELECT batch_id, version FROM batchstate_records
    WHERE queue = ? AND state = ? AND batch_id > ? ORDER BY batch_id LIMIT ?
"""

RECORDS_OF_STATES: Final = """
    SELECT r.state, r.batch_id, r.version FROM json_each(?) AS k CROSS JOIN batchstate_records AS r
    WHERE r.queue = ? AND r.state = k.value
"""

SCAN_RECORDS: Final = """
    SELECT state, batch_id, version FROM batchstate_records
    WHERE queue = ? AND (state, batch_id) > (?, ?) ORDER BY state, batch_id LIMIT ?
"""

# ------------------------------------------------------------------------------- associations

PUT_ASSOCIATION: Final = """
    INSERT INTO batchstate_associations (queue, request_id, batch_id, outcome) VALUES (?, ?, ?, ?)
    ON CONFLICT (queue, request_id, batch_id) DO NOTHING
"""

DELETE_ASSOCIATION: Final = """
    DELETE FROM batchstate_associations WHERE queue = ? AND request_id = ? AND batch_id = ?
"""

ASSOCIATIONS_OF: Final = """
    SELECT batch_id, outcome FROM batchstate_associations WHERE queue = ? AND request_id = ?
"""

SCAN_ASSOCIATIONS: Final = """
    SELECT request_id, batch_id, outcome FROM batchstate_associations
    WHERE queue = ? AND (request_id, batch_id) > (?, ?) ORDER BY request_id, batch_id LIMIT ?
"""

# ------------------------------------------------------------------------------------ retired

FILE_RETIRED: Final = """
    INSERT INTO batchstate_retired (queue, retired_at, batch_id) VALUES (?, ?, ?)
    ON CONFLICT (queue, retired_at, batch_id) DO NOTHING
"""

DELETE_RETIRED: Final = "DELETE FROM batchstate_retired WHERE queue = ? AND retired_at = ? AND batch_id = ?"

RETIRED_AFTER: Final = f"""
    SELECT f.retired_at, f.batch_id, {_COLUMNS_OF_B}
    FROM batchstate_retired AS f CROSS JOIN batchstate_batches AS b
    WHERE f.queue = ? AND (f.retired_at, f.batch_id) > (?, ?) AND b.queue = f.queue AND b.id = f.batch_id
    ORDER BY f.retired_at, f.batch_id LIMIT ?
"""
