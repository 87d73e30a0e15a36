"""`batchstate demo`: real changes through a merge pipeline, by workers that are killed, from a feed that repeats."""

from batchstate.cli.demo.run import run_demo

__all__ = ["run_demo"]
