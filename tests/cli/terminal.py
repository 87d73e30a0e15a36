"""Running the command as a person or a script does: as a process of its own, through its entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from attrs import frozen

__all__ = ["COMMAND", "Command", "Ended", "environment"]

COMMAND = [sys.executable, "-c", "from batchstate.cli import main; main()"]


def environment(**more: str) -> dict[str, str]:
    """The environment in which the command finds the packages of this test run, and nothing else that is set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BATCHSTATE_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "120", **more}


@frozen
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever the command printed
        """What it printed, read as JSON."""
        return json.loads(self.out)


@frozen
class Command:
    """The command, set up for one store and folder."""

    url: str
    folder: Path

    def __call__(self, *words: str, text: str | None = None, **more: str) -> Ended:
        """Run it to its end."""
        ended = subprocess.run(
            [*COMMAND, *words],
            env=environment(**{"BATCHSTATE_URL": self.url, **more}),
            cwd=self.folder,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)
