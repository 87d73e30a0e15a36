"""The SQL of the job tables, each statement a search by key; only `HELD_JOBS_AFTER` sorts, which is what it lists."""

from __future__ import annotations

from typing import Final

from attrs import fields

from batchstate.job_wire import JobRow
from batchstate_sqlite.job_states import ClaimState, GroupState

_COLUMNS: Final = ", ".join(f'"{column}"' for column in JobRow._fields)
_COLUMNS_OF_J: Final = ", ".join(f'j."{column}"' for column in JobRow._fields)
_BARE_COLUMNS_OF_J: Final = _COLUMNS_OF_J.replace('j."payload"', "'null'")
"""Without the payload, which no step looks at and which may be long."""

# -------------------------------------------------------------------------------------- queue

QUEUE_OF: Final = "SELECT paused, ceiling, added, turns FROM batchstate_job_queues WHERE queue = ?"

PUT_QUEUE: Final = """
    INSERT OR REPLACE INTO batchstate_job_queues (queue, paused, ceiling, added, turns) VALUES (?, ?, ?, ?, ?)
"""

JOB_QUEUES: Final = "SELECT queue FROM batchstate_job_queues WHERE queue > '' ORDER BY queue"

# --------------------------------------------------------------------------------------- jobs

KNOWN_JOBS: Final = """
    SELECT j.id, j.place, j.due_at FROM json_each(?) AS k CROSS JOIN batchstate_jobs AS j
    WHERE j.queue = ? AND j.id = k.value
"""

PUT_JOB: Final = f"""
    INSERT OR REPLACE INTO batchstate_jobs (queue, {_COLUMNS}) VALUES (?, {", ".join("?" * len(JobRow._fields))})
"""

WRITE_JOB: Final = """
    UPDATE batchstate_jobs
    SET "group" = ?, place = ?, deliveries = ?, attempts = ?, stalls = ?, error = ?, claim = ?, due_at = ?,
        extended_to = ?, dead_at = ?
    WHERE queue = ? AND id = ?
"""

DROP_JOB: Final = "DELETE FROM batchstate_jobs WHERE queue = ? AND id = ?"

DROP_JOBS: Final = """
    DELETE FROM batchstate_jobs WHERE queue = ? AND id IN (SELECT value FROM json_each(?))
"""

FORGET_JOBS: Final = """
    DELETE FROM batchstate_jobs
    WHERE queue = ? AND id IN (SELECT value FROM json_each(?)) AND place = 'done' AND due_at = ?
"""

COMPLETE_HELD_JOBS: Final = """
    UPDATE batchstate_jobs SET place = 'done', due_at = ?, payload = '', error = '', extended_to = NULL
    WHERE queue = ? AND id IN (SELECT value FROM json_each(?)) AND claim = ? AND place = 'active'
"""

JUST_COMPLETED: Final = """
    SELECT j.id
    FROM json_each(?) AS k CROSS JOIN batchstate_jobs AS j
    LEFT JOIN batchstate_associations AS a ON a.queue = j.queue AND a.request_id = j.id AND a.batch_id = j.claim
    WHERE j.queue = ? AND j.id = k.value AND j.claim = ? AND j.place = 'done' AND j.due_at = ?
        AND coalesce(a.outcome, '') = ''
"""

COMPLETE_JOB: Final = """
    UPDATE batchstate_jobs SET place = 'done', due_at = ?, payload = '', error = '' WHERE queue = ? AND id = ?
"""

JOBS_OF: Final = f"""
    SELECT {_COLUMNS_OF_J}, c.expires_at
    FROM json_each(?) AS k CROSS JOIN batchstate_jobs AS j
    LEFT JOIN batchstate_claims AS c ON c.queue = j.queue AND c.id = j.claim
    WHERE j.queue = ? AND j.id = k.value AND j.place <> 'done'
"""

BARE_JOBS_OF: Final = f"""
    SELECT {_BARE_COLUMNS_OF_J}
    FROM json_each(?) AS k CROSS JOIN batchstate_jobs AS j WHERE j.queue = ? AND j.id = k.value
"""

JOBS_TO_SETTLE: Final = f"""
    SELECT k.value, a.outcome, {_BARE_COLUMNS_OF_J}
    FROM json_each(?) AS k
    LEFT JOIN batchstate_associations AS a ON a.queue = ? AND a.request_id = k.value AND a.batch_id = ?
    LEFT JOIN batchstate_jobs AS j ON j.queue = ? AND j.id = k.value AND j.place <> 'done'
"""

SET_OUTCOMES: Final = """
    UPDATE batchstate_associations SET outcome = ?
    WHERE queue = ? AND request_id IN (SELECT value FROM json_each(?)) AND batch_id = ?
"""

OUTCOME_OF: Final = """
    SELECT outcome FROM batchstate_associations WHERE queue = ? AND request_id = ? AND batch_id = ?
"""

LOST_JOBS: Final = """
    SELECT a.request_id
    FROM batchstate_batches AS b CROSS JOIN json_each(b.requests) AS k CROSS JOIN batchstate_associations AS a
    WHERE b.queue = ? AND b.id = ? AND a.queue = b.queue AND a.request_id = k.value AND a.batch_id = b.id
        AND a.outcome IN ('swept', 'removed')
"""

# ------------------------------------------------------------------------------------- places

PUT_IN_LINE: Final = """
    INSERT OR REPLACE INTO batchstate_line (queue, "group", "order", job_id) VALUES (?, ?, ?, ?)
"""

LEAVE_LINE: Final = 'DELETE FROM batchstate_line WHERE queue = ? AND "group" = ? AND "order" = ?'

ADVANCE_LINE: Final = 'DELETE FROM batchstate_line WHERE queue = ? AND "group" = ? AND "order" <= ?'

_HELD_NOW: Final = {"place": "'active'", "deliveries": "j.deliveries + 1", "claim": "?"}

FIRST_IN_LINE: Final = f"""
    SELECT {", ".join(_HELD_NOW.get(column, f'j."{column}"') for column in JobRow._fields)}
    FROM batchstate_line AS l CROSS JOIN batchstate_jobs AS j
    WHERE l.queue = ? AND l."group" = ? AND j.queue = l.queue AND j.id = l.job_id ORDER BY l."order" LIMIT ?
"""

HOLD_FIRST_IN_LINE: Final = """
    UPDATE batchstate_jobs SET place = 'active', deliveries = deliveries + 1, claim = ?
    WHERE queue = ? AND id IN (
        SELECT job_id FROM batchstate_line WHERE queue = ? AND "group" = ? ORDER BY "order" LIMIT ?
    )
"""

PUT_SCHEDULED: Final = """
    INSERT OR REPLACE INTO batchstate_scheduled (queue, "group", due_at, "order", job_id) VALUES (?, ?, ?, ?, ?)
"""

LEAVE_SCHEDULED: Final = """
    DELETE FROM batchstate_scheduled WHERE queue = ? AND "group" = ? AND due_at = ? AND "order" = ?
"""

DUE_JOBS: Final = """
    SELECT due_at, "order", job_id FROM batchstate_scheduled
    WHERE queue = ? AND "group" = ? AND due_at <= ? ORDER BY due_at, "order" LIMIT ?
"""

NEXT_DUE: Final = 'SELECT min(due_at) FROM batchstate_scheduled WHERE queue = ? AND "group" = ? AND due_at > ?'

COUNT_DUE: Final = """
    SELECT count(*) FROM (
        SELECT 1 FROM batchstate_scheduled WHERE queue = ? AND "group" = ? AND due_at <= ? LIMIT ?
    )
"""

JOBS_ARE_DUE: Final = """
    UPDATE batchstate_jobs SET place = 'waiting', due_at = NULL
    WHERE queue = ? AND id IN (SELECT value FROM json_each(?))
"""

PUT_DEAD: Final = 'INSERT OR REPLACE INTO batchstate_dead (queue, "order", job_id) VALUES (?, ?, ?)'

LEAVE_DEAD: Final = 'DELETE FROM batchstate_dead WHERE queue = ? AND "order" = ?'

PUT_DEAD_SINCE: Final = """
    INSERT OR REPLACE INTO batchstate_dead_since (queue, dead_at, "order", job_id) VALUES (?, ?, ?, ?)
"""

LEAVE_DEAD_SINCE: Final = 'DELETE FROM batchstate_dead_since WHERE queue = ? AND dead_at = ? AND "order" = ?'

DEAD_SINCE: Final = f"""
    SELECT {_BARE_COLUMNS_OF_J} FROM batchstate_dead_since AS d CROSS JOIN batchstate_jobs AS j
    WHERE d.queue = ? AND d.dead_at <= ? AND j.queue = d.queue AND j.id = d.job_id
    ORDER BY d.dead_at, d."order" LIMIT ?
"""

PUT_FORGETTING: Final = """
    INSERT INTO batchstate_forgetting (queue, due_at, claim, first_id, job_ids) VALUES (?, ?, ?, ?, ?)
"""

LEAVE_FORGETTING: Final = """
    DELETE FROM batchstate_forgetting WHERE queue = ? AND due_at = ? AND claim = ? AND first_id = ?
"""

TO_FORGET: Final = """
    SELECT due_at, claim, first_id, job_ids FROM batchstate_forgetting
    WHERE queue = ? AND due_at <= ? ORDER BY due_at, claim, first_id LIMIT 1
"""

# ------------------------------------------------------------------------------------- groups

_GROUP: Final = ", ".join(column.name for column in fields(GroupState))
_GROUP_OF_G: Final = ", ".join(f"g.{column.name}" for column in fields(GroupState))

GROUP_OF: Final = f"SELECT {_GROUP} FROM batchstate_groups WHERE queue = ? AND name = ?"

GROUPS: Final = f"SELECT {_GROUP} FROM batchstate_groups WHERE queue = ? ORDER BY name"

GROUPS_WITH_OLDEST: Final = f"""
    SELECT {_GROUP_OF_G}, (
        SELECT j.added_at FROM batchstate_line AS l CROSS JOIN batchstate_jobs AS j
        WHERE l.queue = g.queue AND l."group" = g.name AND j.queue = l.queue AND j.id = l.job_id
        ORDER BY l."order" LIMIT 1
    )
    FROM batchstate_groups AS g WHERE g.queue = ? ORDER BY g.name
"""

PUT_GROUP: Final = f"""
    INSERT OR REPLACE INTO batchstate_groups (queue, {_GROUP}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

DROP_GROUP: Final = "DELETE FROM batchstate_groups WHERE queue = ? AND name = ?"

NEXT_ALARM: Final = """
    SELECT due_at, "group" FROM batchstate_alarms
    WHERE queue = ? AND due_at <= ? ORDER BY due_at, "group" LIMIT 1
"""

ALARMED_GROUPS: Final = f"""
    SELECT {_GROUP_OF_G} FROM batchstate_alarms AS a CROSS JOIN batchstate_groups AS g
    WHERE a.queue = ? AND a.due_at <= ? AND g.queue = a.queue AND g.name = a."group"
    ORDER BY a.due_at, a."group"
"""

PUT_ALARM: Final = 'INSERT OR REPLACE INTO batchstate_alarms (queue, due_at, "group") VALUES (?, ?, ?)'

LEAVE_ALARM: Final = 'DELETE FROM batchstate_alarms WHERE queue = ? AND due_at = ? AND "group" = ?'

GROUPS_IN_TURN: Final = f"""
    SELECT {_GROUP_OF_G} FROM batchstate_ring AS r CROSS JOIN batchstate_groups AS g
    WHERE r.queue = ? AND g.queue = r.queue AND g.name = r."group" ORDER BY r.turn LIMIT ?
"""

PUT_TURN: Final = 'INSERT OR REPLACE INTO batchstate_ring (queue, turn, "group") VALUES (?, ?, ?)'

LEAVE_TURN: Final = "DELETE FROM batchstate_ring WHERE queue = ? AND turn = ?"

# ------------------------------------------------------------------------------------- claims

BATCH_EXISTS: Final = "SELECT 1 FROM batchstate_batches WHERE queue = ? AND id = ?"

CLAIM_IS_KNOWN: Final = """
    SELECT 1 FROM batchstate_batches WHERE queue = ? AND id = ?
    UNION ALL
    SELECT 1 FROM batchstate_claims WHERE queue = ? AND id = ?
"""

ASSOCIATE: Final = """
    INSERT OR REPLACE INTO batchstate_associations (queue, request_id, batch_id, outcome)
    SELECT ?, value, ?, '' FROM json_each(?)
"""

_CLAIM: Final = ", ".join(f'"{column}"' for column in ClaimState._fields)
_CLAIM_OF_C: Final = ", ".join(f'c."{column}"' for column in ClaimState._fields)

PUT_CLAIM: Final = f"""
    INSERT INTO batchstate_claims (queue, lost, {_CLAIM}) VALUES (?, 0, ?, ?, ?, ?, ?, ?)
"""

PUT_CLAIM_JOBS: Final = "INSERT INTO batchstate_claim_jobs (queue, claim, job_ids) VALUES (?, ?, ?)"

CLAIM_OF: Final = f"SELECT {_CLAIM} FROM batchstate_claims WHERE queue = ? AND id = ?"

EXTEND_CLAIM: Final = """
    UPDATE batchstate_claims SET expires_at = ? WHERE queue = ? AND id = ? RETURNING filed_at, held, lost
"""

FILE_CLAIM: Final = "UPDATE batchstate_claims SET filed_at = ? WHERE queue = ? AND id = ?"

TAKE_FROM_CLAIM: Final = "UPDATE batchstate_claims SET held = ?, lost = max(lost, ?) WHERE queue = ? AND id = ?"

DROP_CLAIM: Final = "DELETE FROM batchstate_claims WHERE queue = ? AND id = ?"

DROP_CLAIM_JOBS: Final = "DELETE FROM batchstate_claim_jobs WHERE queue = ? AND claim = ?"

PUT_LEASE: Final = "INSERT OR REPLACE INTO batchstate_leases (queue, filed_at, claim) VALUES (?, ?, ?)"

DROP_LEASE: Final = "DELETE FROM batchstate_leases WHERE queue = ? AND filed_at = ? AND claim = ?"

LEASES_TO_LOOK_AT: Final = f"""
    SELECT {_CLAIM_OF_C} FROM batchstate_leases AS l CROSS JOIN batchstate_claims AS c
    WHERE l.queue = ? AND l.filed_at <= ? AND c.queue = l.queue AND c.id = l.claim
    ORDER BY l.filed_at, l.claim LIMIT ?
"""

_HELD: Final = """
    FROM batchstate_claim_jobs AS h CROSS JOIN json_each(h.job_ids) AS k CROSS JOIN batchstate_jobs AS j
    WHERE h.queue = ? AND h.claim = ? AND j.queue = h.queue AND j.id = k.value AND j.claim = h.claim
        AND j.place = 'active'
"""

HELD_JOBS: Final = f"SELECT {_COLUMNS_OF_J} {_HELD}"

HELD_LEASES: Final = f"SELECT j.id, j.extended_to {_HELD}"

LAPSED_JOBS: Final = f"SELECT {_BARE_COLUMNS_OF_J} {_HELD} AND coalesce(j.extended_to, 0) <= ? LIMIT ?"

FIRST_OWN_LEASE: Final = f"SELECT min(j.extended_to) {_HELD}"

EXTENDED_JOB: Final = """
    SELECT c.expires_at, j.extended_to FROM batchstate_claims AS c CROSS JOIN batchstate_jobs AS j
    WHERE c.queue = ? AND c.id = ? AND j.queue = c.queue AND j.id = ? AND j.claim = c.id AND j.place = 'active'
"""

EXTEND_JOB: Final = "UPDATE batchstate_jobs SET extended_to = ? WHERE queue = ? AND id = ?"

CLAIMS_AFTER: Final = """
    SELECT id, expires_at FROM batchstate_claims WHERE queue = ? AND id > ? ORDER BY id LIMIT ?
"""

COUNT_CLAIMS: Final = "SELECT count(*) FROM batchstate_claims WHERE queue = ?"

COUNT_LAPSED: Final = """
    SELECT count(*) FROM batchstate_leases AS l CROSS JOIN batchstate_claims AS c
    WHERE l.queue = ? AND l.filed_at <= ? AND c.queue = l.queue AND c.id = l.claim AND c.expires_at <= ?
        AND EXISTS (
            SELECT 1 FROM batchstate_claim_jobs AS h CROSS JOIN json_each(h.job_ids) AS k
                CROSS JOIN batchstate_jobs AS j
            WHERE h.queue = c.queue AND h.claim = c.id AND j.queue = h.queue AND j.id = k.value
                AND j.claim = h.claim AND j.place = 'active' AND coalesce(j.extended_to, 0) <= ?
        )
"""

# ----------------------------------------------------------------------------------- listings

WAITING_JOBS_AFTER: Final = f"""
    SELECT {_COLUMNS_OF_J}, NULL FROM batchstate_line AS l CROSS JOIN batchstate_jobs AS j
    WHERE l.queue = ? AND (l."group", l."order") > (?, ?) AND j.queue = l.queue AND j.id = l.job_id
    ORDER BY l."group", l."order" LIMIT ?
"""

WAITING_JOBS_OF_GROUP_AFTER: Final = f"""
    SELECT {_COLUMNS_OF_J}, NULL FROM batchstate_line AS l CROSS JOIN batchstate_jobs AS j
    WHERE l.queue = ? AND l."group" = ? AND l."order" > ? AND j.queue = l.queue AND j.id = l.job_id
    ORDER BY l."order" LIMIT ?
"""

SCHEDULED_JOBS_AFTER: Final = f"""
    SELECT {_COLUMNS_OF_J}, NULL FROM batchstate_scheduled AS s CROSS JOIN batchstate_jobs AS j
    WHERE s.queue = ? AND (s."group", s.due_at, s."order") > (?, ?, ?) AND j.queue = s.queue AND j.id = s.job_id
    ORDER BY s."group", s.due_at, s."order" LIMIT ?
"""

SCHEDULED_JOBS_OF_GROUP_AFTER: Final = f"""
    SELECT {_COLUMNS_OF_J}, NULL FROM batchstate_scheduled AS s CROSS JOIN batchstate_jobs AS j
    WHERE s.queue = ? AND s."group" = ? AND (s.due_at, s."order") > (?, ?) AND j.queue = s.queue AND j.id = s.job_id
    ORDER BY s.due_at, s."order" LIMIT ?
"""

DEAD_JOBS_AFTER: Final = f"""
    SELECT {_COLUMNS_OF_J}, NULL FROM batchstate_dead AS d CROSS JOIN batchstate_jobs AS j
    WHERE d.queue = ? AND d."order" > ? AND j.queue = d.queue AND j.id = d.job_id
    ORDER BY d."order" LIMIT ?
"""

DEAD_JOBS_OF_GROUP_AFTER: Final = f"""
    SELECT {_COLUMNS_OF_J}, NULL FROM batchstate_dead AS d CROSS JOIN batchstate_jobs AS j
    WHERE d.queue = ? AND j."group" = ? AND d."order" > ? AND j.queue = d.queue AND j.id = d.job_id
    ORDER BY d."order" LIMIT ?
"""

HELD_JOBS_AFTER: Final = f"""
    SELECT {_COLUMNS_OF_J}, c.expires_at
    FROM batchstate_claims AS c CROSS JOIN batchstate_claim_jobs AS h CROSS JOIN json_each(h.job_ids) AS k
        CROSS JOIN batchstate_jobs AS j
    WHERE c.queue = ? AND h.queue = c.queue AND h.claim = c.id AND j.queue = h.queue AND j.id = k.value
        AND j.claim = h.claim AND j.place = 'active' AND (? IS NULL OR j."group" = ?)
        AND (j."group", j."order") > (?, ?)
    ORDER BY j."group", j."order" LIMIT ?
"""

# -------------------------------------------------------------------------------------- holds

HOLD_OF: Final = "SELECT token, expires_at FROM batchstate_holds WHERE queue = ? AND batch_id = ?"

PUT_HOLD: Final = """
    INSERT OR REPLACE INTO batchstate_holds (queue, batch_id, token, expires_at) VALUES (?, ?, ?, ?)
"""

DROP_HOLD: Final = "DELETE FROM batchstate_holds WHERE queue = ? AND batch_id = ?"
