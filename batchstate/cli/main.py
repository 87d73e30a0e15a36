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
    is_told_all = "--debug" in sys.argv
    if not is_told_all:
        logging.getLogger("stamina").addHandler(logging.NullHandler())  # what is tried again is told once, at the end
    try:
        app(prog_name="batchstate")
    except BatchStateError as error:
        if is_told_all:
            raise
        complain(str(error))
        sys.exit(UNREACHABLE if isinstance(error, StorageUnavailableError) else REFUSED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever reads has seen enough
        sys.exit(0)
    except Exception as error:
        if is_told_all:
            raise
        if isinstance(error, OSError) and error.filename is not None:
            complain(f"{error.filename}: {error.strerror}; is the path right?")
        else:
            complain(f"this should not happen: {type(error).__name__}: {error}; batchstate --debug … shows where")
        sys.exit(REFUSED)
