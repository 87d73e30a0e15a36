"""The `batchstate` command."""

from batchstate.cli.main import main

__all__ = ["main"]
