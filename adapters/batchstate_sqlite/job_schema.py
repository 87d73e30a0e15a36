"""The tables of jobs. Each listing and each search has a table that is keyed by what it asks for.

A job has one row, and its place has one entry that says where it stands: in its group's line, among the
scheduled, among the dead. What is held needs no entry: a claim keeps the list of its jobs. A job that is
done leaves its ID behind in its row until that is forgotten.

`batchstate_jobs` is an ordinary table, as `batchstate_batches` is, for the sake of payloads of a kilobyte and more
(claiming and settling them was measured a fifth to a third faster so, and small ones the same).

Two kinds of entry are no later than the truth, so that what moves the truth on costs nothing there; whoever
finds one that has passed looks at the truth, and files it anew: a claim's entry among the leases (its jobs'
leases end then or later, however often they were extended), and a group's alarm (its next job falls due then
or later, however many were removed).
"""

from __future__ import annotations

from typing import Final

__all__ = ["JOB_TABLES"]

JOB_TABLES: Final = (
    """
    CREATE TABLE batchstate_job_queues (
        queue TEXT NOT NULL PRIMARY KEY,
        paused TEXT,
        ceiling INTEGER,
        added INTEGER NOT NULL,
        turns INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_jobs (
        queue TEXT NOT NULL,
        id TEXT NOT NULL,
        format INTEGER NOT NULL,
        "group" TEXT NOT NULL,
        place TEXT NOT NULL,
        "order" INTEGER NOT NULL,
        max_attempts INTEGER NOT NULL,
        deliveries INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        stalls INTEGER NOT NULL,
        error TEXT NOT NULL,
        claim TEXT,
        added_at INTEGER NOT NULL,
        due_at INTEGER,
        extended_to INTEGER,
        dead_at INTEGER,
        payload TEXT NOT NULL,
        PRIMARY KEY (queue, id)
    )
    """,
    """
    CREATE TABLE batchstate_line (
        queue TEXT NOT NULL,
        "group" TEXT NOT NULL,
        "order" INTEGER NOT NULL,
        job_id TEXT NOT NULL,
        PRIMARY KEY (queue, "group", "order")
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_scheduled (
        queue TEXT NOT NULL,
        "group" TEXT NOT NULL,
        due_at INTEGER NOT NULL,
        "order" INTEGER NOT NULL,
        job_id TEXT NOT NULL,
        PRIMARY KEY (queue, "group", due_at, "order")
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_dead (
        queue TEXT NOT NULL,
        "order" INTEGER NOT NULL,
        job_id TEXT NOT NULL,
        PRIMARY KEY (queue, "order")
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_dead_since (
        queue TEXT NOT NULL,
        dead_at INTEGER NOT NULL,
        "order" INTEGER NOT NULL,
        job_id TEXT NOT NULL,
        PRIMARY KEY (queue, dead_at, "order")
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_forgetting (
        queue TEXT NOT NULL,
        due_at INTEGER NOT NULL,
        claim TEXT NOT NULL,
        first_id TEXT NOT NULL,
        job_ids TEXT NOT NULL,
        PRIMARY KEY (queue, due_at, claim, first_id)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_groups (
        queue TEXT NOT NULL,
        name TEXT NOT NULL,
        waiting INTEGER NOT NULL,
        active INTEGER NOT NULL,
        scheduled INTEGER NOT NULL,
        dead INTEGER NOT NULL,
        ceiling INTEGER,
        paused TEXT,
        alarm INTEGER,
        turn INTEGER,
        PRIMARY KEY (queue, name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_alarms (
        queue TEXT NOT NULL,
        due_at INTEGER NOT NULL,
        "group" TEXT NOT NULL,
        PRIMARY KEY (queue, due_at, "group")
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_ring (
        queue TEXT NOT NULL,
        turn INTEGER NOT NULL,
        "group" TEXT NOT NULL,
        PRIMARY KEY (queue, turn)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_claims (
        queue TEXT NOT NULL,
        id TEXT NOT NULL,
        "group" TEXT,
        expires_at INTEGER NOT NULL,
        filed_at INTEGER NOT NULL,
        held INTEGER NOT NULL,
        lost INTEGER NOT NULL,
        ending TEXT NOT NULL,
        PRIMARY KEY (queue, id)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_claim_jobs (
        queue TEXT NOT NULL,
        claim TEXT NOT NULL,
        job_ids TEXT NOT NULL,
        PRIMARY KEY (queue, claim)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_leases (
        queue TEXT NOT NULL,
        filed_at INTEGER NOT NULL,
        claim TEXT NOT NULL,
        PRIMARY KEY (queue, filed_at, claim)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE batchstate_holds (
        queue TEXT NOT NULL,
        batch_id TEXT NOT NULL,
        token TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        PRIMARY KEY (queue, batch_id)
    ) WITHOUT ROWID
    """,
)
"""What makes the tables, a statement each."""
