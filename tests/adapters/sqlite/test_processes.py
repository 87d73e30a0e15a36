"""Processes share a file: none loses an update, one that is killed leaves no half of a step, a child is by itself."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from batchstate.errors import BatchStateError
from batchstate.listing import list_by_states
from batchstate.transition import transition
from batchstate_sqlite import SQLiteStorage

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from batchstate.entities import Batch

COMPETE = """
import sys
from batchstate.errors import VersionMismatchError
from batchstate.transition import transition
from batchstate_sqlite import SQLiteStorage

wins = int(sys.argv[2])
with SQLiteStorage(sys.argv[1], "q", synchronous="NORMAL", timeout="60s") as store:
    while wins:
        batch = store.get_batches(["b1"])["b1"]
        try:
            transition(store, batch, ("testing", "merging", "queued")[batch.version % 3])
        except VersionMismatchError:
            continue
        wins -= 1
"""

DIE = """
import os, signal, sys
from batchstate.transition import transition
from batchstate_sqlite import SQLiteStorage

store = SQLiteStorage(sys.argv[1], "q")
batch = store.get_batches(["b1"])["b1"]

def die(statement):
    if statement.strip().startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

store.database.read(lambda cursor: cursor.connection.set_trace_callback(die))
transition(store, batch, "testing", update={"by": "the one who died"})
"""

FORK = """
import os, sys
from batchstate.creation import create_batch
from batchstate.entities import Batch
from batchstate_sqlite import SQLiteStorage

store = SQLiteStorage(sys.argv[1], "q")
create_batch(store, Batch("before", "q", "queued"))
ready, proceed = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    create_batch(store, Batch("child-1", "q", "queued"))
    os.write(ready[1], b".")
    os.read(proceed[0], 1)
    create_batch(store, Batch("child-2", "q", "queued"))
    sys.exit()
os.read(ready[0], 1)
create_batch(store, Batch("parent", "q", "queued"))
store.close()  # the last connection of a process that believes to be alone would delete the log
os.write(proceed[1], b".")
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""

FORK_AMONG_THREADS = """
import os, sys, threading
from batchstate.creation import create_batch
from batchstate.entities import Batch
from batchstate_sqlite import SQLiteStorage

store = SQLiteStorage(sys.argv[1], "q", synchronous="NORMAL", timeout="30s")
ended = threading.Event()

def write(number):
    count = 0
    while not ended.is_set():
        create_batch(store, Batch(f"thread-{number}-{count}", "q", "queued"))
        count += 1

threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for number in range(20):
    child = os.fork()
    if child == 0:
        create_batch(store, Batch(f"child-{number}", "q", "queued"))
        store.close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
ended.set()
for thread in threads:
    thread.join()
store.close()
"""

FORK_IN_MEMORY = """
import os, sys
from batchstate.creation import create_batch
from batchstate.entities import Batch
from batchstate.errors import StorageUnavailableError
from batchstate_sqlite import SQLiteStorage

store = SQLiteStorage(":memory:", "q")
create_batch(store, Batch("b1", "q", "queued"))
child = os.fork()
if child == 0:
    try:
        store.get_batches(["b1"])
    except StorageUnavailableError as error:
        print(error)
    sys.exit()
os.waitpid(child, 0)
assert list(store.get_batches(["b1"])) == ["b1"]
"""


def test_four_processes_lose_no_update(
    path: Path, start: Callable[..., subprocess.Popen[str]], create: Callable[..., Batch]
) -> None:
    """Four processes move one batch 200 times each: no lock reaches a caller, and its version tells of every move."""
    with SQLiteStorage(path, "q") as store:
        create(store)
        competitors = [start(COMPETE, path, 200) for _ in range(4)]
        for competitor in competitors:
            _, complaints = competitor.communicate(timeout=100)
            assert competitor.returncode == 0, complaints
        row = store.get_batches(["b1"])["b1"]
        assert not isinstance(row, BatchStateError)
        assert row.version == 801
        assert list_by_states(store, [row.state]) == [row]
        records = [record for state in ("queued", "testing", "merging") for record in store.list_records(state).items]
        assert [(record.state, record.version) for record in records] == [(row.state, 801)]


@pytest.mark.parametrize(
    "statement", ["UPDATE batchstate_batches", "INSERT INTO batchstate_records", "DELETE FROM batchstate_rec", "COMMIT"]
)
def test_a_process_killed_in_the_middle_of_a_move_leaves_nothing_of_it(
    path: Path, start: Callable[..., subprocess.Popen[str]], create: Callable[..., Batch], statement: str
) -> None:
    """SIGKILL before each statement of a move: row and records are as before, and another moves it at once."""
    with SQLiteStorage(path, "q", timeout="10s") as store:
        batch = create(store)
        with start(DIE, path, statement) as process:
            _, complaints = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, complaints
        assert list_by_states(store, ["queued", "testing"]) == [batch]
        assert [record.version for record in store.list_records("queued").items] == [1]
        assert store.list_records("testing").items == []
        assert transition(store, batch, "testing").version == 2
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_process_that_died_after_its_move_has_moved_it(
    path: Path, start: Callable[..., subprocess.Popen[str]], create: Callable[..., Batch]
) -> None:
    """Not closing anything takes nothing back: what was acknowledged stays."""
    with SQLiteStorage(path, "q") as store:
        create(store)
        with start(f"{DIE}\nos.kill(os.getpid(), signal.SIGKILL)", path, "no such statement") as process:
            process.communicate(timeout=60)
        assert [batch.attributes for batch in list_by_states(store, ["testing"])] == [{"by": "the one who died"}]


def test_parent_and_child_write_beside_each_other(path: Path, run: Callable[..., str]) -> None:
    """After a fork both sides work with the storage, and nothing of either is lost when the parent closes first."""
    run(FORK, path)
    with SQLiteStorage(path, "q") as store:
        names = {batch.id for batch in list_by_states(store, ["queued"])}
    assert names == {"before", "child-1", "parent", "child-2"}


def test_forks_amid_writing_threads_leave_every_side_whole(path: Path, run: Callable[..., str]) -> None:
    """20 children forked while three threads write: each child writes at once, and no thread sees an error."""
    run(FORK_AMONG_THREADS.replace("import os", "import warnings; warnings.simplefilter('ignore')\nimport os"), path)
    with SQLiteStorage(path, "q") as store:
        names = {batch.id for batch in list_by_states(store, ["queued"])}
    assert {f"child-{number}" for number in range(20)} <= names
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_child_is_told_that_memory_is_not_shared(run: Callable[..., str]) -> None:
    """A database in memory does not follow into a child: it says so there, and the parent's is as it was."""
    assert "is in the memory of the process that opened it" in run(FORK_IN_MEMORY)
