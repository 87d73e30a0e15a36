"""Every example runs to its end; each asserts for itself what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

SAYS = {
    "embed_in_a_consumer.py": "parcel-7 is shipped",
    "merge_queue.py": "Nothing was lost.",
    "repair_on_redelivery.py": "the message comes again: already",
    "swap_the_storage.py": "sqlite: queued > testing > merging > merged",
    "walk_while_held.py": "pr-2 was completed in a batch that is merged",
    "work_in_groups.py": "599 done in",
}
ARGUMENTS = {"merge_queue.py": ["300", "2", "4"]}


def test_every_example_is_run() -> None:
    """No example is there without a test that runs it."""
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", sorted(SAYS))
def test_the_example_runs(name: str) -> None:
    """The example ends well and shows what it promises."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *ARGUMENTS.get(name, [])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert SAYS[name] in ended.stdout
