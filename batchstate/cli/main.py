"""The entry point of the command: missing extras and errors are said in a line, without a traceback."""

from __future__ import annotations

import logging
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
        from batchstate.cli.output import complain  # noqa: PLC0415 - the same
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("batchstate"):
            raise
        sys.exit(f"batchstate: the command needs {error.name}, which is not installed: pip install 'batchstate[cli]'")
    if "--debug" not in sys.argv:
        logging.getLogger("stamina").addHandler(logging.NullHandler())  # what is tried again is told once, at the end
    try:
        app(prog_name="batchstate")
    except BatchStateError as error:
        if "--debug" in sys.argv:
            raise
        complain(str(error))
        sys.exit(UNREACHABLE if isinstance(error, StorageUnavailableError) else REFUSED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever reads has seen enough
        sys.exit(0)
    except OSError as error:
        if "--debug" in sys.argv or error.filename is None:
            raise
        complain(f"{error.filename}: {error.strerror}; is the path right?")
        sys.exit(REFUSED)
