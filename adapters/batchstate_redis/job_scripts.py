"""Running the scripts on jobs, which share what stands in `lua/jobs/shared`.

A script's head names the shared parts it uses, in a line `-- uses    base, groups`. Before its own text are put, in
that order, the pieces of these parts that it needs: a piece is what stands between two empty lines, and it is needed if
a piece that is needed, or the script, mentions a name that it declares, or if it declares none. The whole is one
program to the server.

The server makes all functions anew whenever a script runs, which takes as long as a third of a claim of one job. So
those that a script does not call are left out, and those that it calls in rare cases alone stand in the block for
these cases: where such a block has a line `-- uses    groups` of its own, the pieces are put there.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from batchstate.errors import StorageUnavailableError, UnsupportedFormatError
from batchstate_redis.scripts import Script

if TYPE_CHECKING:
    from batchstate.times import Clock
    from batchstate_redis.keys import Keys
    from batchstate_redis.scripts import Runner

__all__ = ["JobRunner", "job_script"]

_USES: Final = re.compile(r"^ *-- uses    (.+)\n", re.MULTILINE)
_DECLARES: Final = re.compile(r"^local (?:function )?(\w+(?:, \w+)*)", re.MULTILINE)
_COMMENT: Final = re.compile(r"--.*$", re.MULTILINE)
_WORD: Final = re.compile(r"\w+")
_FORMAT: Final = "FORMAT "
"""How the scripts begin the error that a newer program's jobs are met with."""


@cache
def job_script(name: str) -> Script:
    """Answer the script in the file `lua/jobs/{name}.lua`, with the shared parts that it uses."""
    own = _read(f"{name}.lua")
    head, *inner = _USES.finditer(own)
    mentioned = set(_WORD.findall(_COMMENT.sub("", own)))
    text = own
    for uses in reversed(inner):
        text = "\n".join([text[: uses.end()], *_needed(uses[1], mentioned), text[uses.end() :]])
    text = "\n".join([*_needed(head[1], mentioned), text])
    return Script(name, text.encode(), hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest().encode())


def _needed(parts: str, mentioned: set[str]) -> list[str]:
    """Answer the pieces of some parts that are needed where these words are `mentioned`, and mention theirs as well."""
    needed: list[str] = []
    pieces = [piece for part in parts.split(", ") for piece in _read(f"shared/{part}.lua").strip().split("\n\n")]
    for piece in reversed(pieces):  # each mentions only what stands before it
        code = _COMMENT.sub("", piece)
        declared = {name for names in _DECLARES.findall(code) for name in _WORD.findall(names)}
        if code.strip() and (not declared or declared & mentioned):
            needed.append(f"{piece}\n")
            mentioned.update(_WORD.findall(code))
    return needed[::-1]


def _read(path: str) -> str:
    return resources.files("batchstate_redis").joinpath("lua", "jobs", path).read_text(encoding="utf-8")


class JobRunner:
    """Runs the scripts on one queue's jobs.

    Args:
        runner: runs scripts.
        keys: the queue's keys.
        clock: answers the time in milliseconds; `None` for the server's own clock.
    """

    def __init__(self, runner: Runner, keys: Keys, clock: Clock | None) -> None:
        self._runner = runner
        self._keys = (keys.jobs, keys.absent)
        self._clock = clock

    def __call__(self, name: str, *arguments: bytes | str | int) -> Any:  # noqa: ANN401 - as the script's head says
        """Run a script; arguments and answer as its head says from ARGV 2 on.

        Raises:
            StorageUnavailableError: the server cannot be reached or did not do it in time.
            UnsupportedFormatError: a newer program stores jobs in this queue.
        """
        now = b"" if self._clock is None else self._clock()
        told = [now, *[one.encode() if isinstance(one, str) else one for one in arguments]]
        try:
            return self._runner.run_on(job_script(name), self._keys, told)
        except StorageUnavailableError as error:
            cause = str(error.__cause__)
            if _FORMAT in cause:
                raise UnsupportedFormatError(cause.partition(_FORMAT)[2] + ": upgrade batchstate") from error
            raise
