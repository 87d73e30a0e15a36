"""The entry point of the command: missing extras and errors are said in a line, without a traceback."""

from __future__ import annotations

import os
import sys
from typing import Final

from batchstate.errors import BatchStateError, StorageUnavailableError

__all__ = ["main"]

REFUSED: Final = 1
UNREACHABLE: Final = 3


def main() -> None:
    """Run the `batchstate` command."""
    try:
        from batchstate.cli.app import app  # noqa: PLC0415 - the extra `cli` may be missing
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("batchstate"):
            raise
        sys.exit(f"batchstate: the command needs {error.name}, which is not installed: pip install 'batchstate[cli]'")
    try:
        app()
    except BatchStateError as error:
        if "--debug" in sys.argv:
            raise
        print(f"batchstate: {error}", file=sys.stderr)  # noqa: T201 - a command talks to the person who runs it
        sys.exit(UNREACHABLE if isinstance(error, StorageUnavailableError) else REFUSED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever reads has seen enough
        sys.exit(0)
