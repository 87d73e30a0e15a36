"""What is printed where it does not change from run to run, as it stands in `transcript.txt`, word for word."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from batchstate import Dead, Lifecycle, MembershipRecord, open_queue

if TYPE_CHECKING:
    from tests.cli.terminal import Command

TRANSCRIPT = Path(__file__).with_name("transcript.txt")
PROMPT = "$ batchstate "
FLOW = "queued > testing > merging > merged; testing | merging > failed"


def fill(url: str) -> None:
    """Make a queue of batches, one of them filed nowhere and one twice, and a queue of jobs, one of them dead."""
    with open_queue(
        "merges", url, lifecycle=Lifecycle.parse(FLOW), by="ci-1", clock=lambda: 1_700_000_000_000
    ) as queue:
        for number in range(1, 5):
            queue.create(f"batch-{number}", requests=[f"pr-{number}", f"pr-{number}0"], attributes={"size": number})
        queue.advance("batch-3", "testing", source="queued")
        queue.advance("batch-4", "testing", source="queued")
        queue.advance("batch-4", "failed", source="testing", why="red\nvery")
        queue.store.delete_records([MembershipRecord("merges", "queued", "batch-2", 1)])
        queue.store.put_records([MembershipRecord("merges", "queued", "batch-3", 1)])
    with open_queue("emails", url, by="worker-1", clock=lambda: 1_700_000_000_000) as queue:
        for name in ("ada", "bob"):
            queue.add(name, {"to": name}, group="news")
        claim = queue.claim(1)
        assert claim is not None
        claim.settle({"ada": Dead("no such user")})
        queue.pause(reason="moving")


def test_what_is_printed_is_what_stands_in_the_transcript(sqlite: Command) -> None:
    """Each command of the transcript prints what stands below it, blanks at the ends of lines apart."""
    fill(sqlite.url)
    given = TRANSCRIPT.read_text(encoding="utf-8")
    seen = ""
    for line in given.splitlines():
        if line.startswith(PROMPT):
            said = sqlite(*shlex.split(line.removeprefix(PROMPT)))
            printed = "".join(f"{one.rstrip()}\n" for one in (said.out + said.err).splitlines())
            seen += f"{line}\n{printed}[{said.code}]\n\n"
    assert seen == given
