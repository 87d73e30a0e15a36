"""Whether all that `batchstate` exports has full types: pyright's own count, kept to what users are told to import.

Run with the Python of an environment that has the wheel installed, and pyright's path:

    python tests/typing/public_types.py pyright

pyright counts every module without an underscore as public; here only the names that the package itself exports, and
what stands in their classes, must be whole.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import batchstate


def _prefixes() -> set[str]:
    """The full names of what is exported, as it is imported and where it is defined."""
    names = {f"batchstate.{name}" for name in batchstate.__all__}
    for name in batchstate.__all__:
        exported = getattr(batchstate, name)
        if hasattr(exported, "__qualname__"):
            names.add(f"{exported.__module__}.{exported.__qualname__}")
    return names


def _is_exported(symbol: str, prefixes: set[str]) -> bool:
    parts = symbol.split(".")
    return any(".".join(parts[:length]) in prefixes for length in range(1, len(parts) + 1))


def _report(pyright: str) -> dict[str, Any]:
    """What pyright makes of the installed package; it takes the first Python on the PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [pyright, "--ignoreexternal", "--outputjson", "--verifytypes", "batchstate"],
        check=False,  # it is not content where anything at all is inferred
        capture_output=True,
        env={**os.environ, "PATH": path},
        text=True,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def main() -> int:
    """Print what is not whole; answer how the program ends."""
    prefixes = _prefixes()
    symbols = _report(sys.argv[1])["typeCompleteness"]["symbols"]
    exported = [symbol for symbol in symbols if _is_exported(symbol["name"], prefixes)]
    loose = [symbol for symbol in exported if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]]
    for symbol in loose:
        print(symbol["name"], *(found["message"] for found in symbol["diagnostics"]), sep="\n    ")  # noqa: T201 - its answer
    print(f"{len(exported)} public symbols, {len(loose)} of them not fully typed")  # noqa: T201 - its answer
    return 1 if loose or not exported else 0


if __name__ == "__main__":
    sys.exit(main())
