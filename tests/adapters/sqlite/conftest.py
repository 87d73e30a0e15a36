"""What the tests of the SQLite adapter share."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from batchstate.creation import create_batch
from batchstate.entities import Batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from batchstate.storage import Storage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test's file is to be; there is none yet."""
    return tmp_path / "batches.db"


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[str]]:
    """Start a Python program, given as text with its arguments, that can import what this process can."""

    def start_program(program: str, *args: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program, *map(str, args)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_program


@pytest.fixture
def run(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., str]:
    """Run such a program to its end, and answer what it printed."""

    def run_program(program: str, *args: object) -> str:
        with start(program, *args) as process:
            printed, complaints = process.communicate(timeout=60)
        assert process.returncode == 0, complaints
        return printed

    return run_program


@pytest.fixture
def create() -> Callable[..., Batch]:
    """Create a batch in state `queued` with a request of its own."""

    def create_one(store: Storage, batch_id: str = "b1", state: str = "queued") -> Batch:
        return create_batch(store, Batch(batch_id, store.queue, state, request_ids=(f"r-{batch_id}",)))

    return create_one
