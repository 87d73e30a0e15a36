"""The entry point of the command: what it needs is looked for first, so that a missing extra is said in one line."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the `batchstate` command."""
    try:
        from batchstate.cli.app import app  # noqa: PLC0415 - the extra `cli` may be missing
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("batchstate"):
            raise
        sys.exit(f"batchstate: the command needs {error.name}, which is not installed: pip install 'batchstate[cli]'")
    app()
