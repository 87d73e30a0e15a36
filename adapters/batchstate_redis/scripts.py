"""Running commands and scripts: sent once, sent again while a failover passes, their cache refilled when it is lost."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import stamina
from attrs import frozen
from redis import exceptions
from redis.client import NEVER_DECODE

from batchstate_redis.faults import CLIENT_ERRORS, code_of, explained, is_passing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from redis import Redis
    from redis.cluster import RedisCluster

    Client: TypeAlias = Redis | RedisCluster

Item = TypeVar("Item")

__all__ = ["Call", "Runner", "Script", "in_chunks", "script"]

MOST_AT_ONCE = 2000
"""How much one script call does at most, counted in commands: some 2 ms, in which the server serves nobody else."""

BYTES_A_COMMAND = 1024
"""How many bytes cost about as much as one command."""


@frozen
class Script:
    """One of our Lua programs.

    Attributes:
        name: its file's, without the ending.
        text: the program.
        sha: what the server's cache knows it by.
    """

    name: str
    text: bytes
    sha: bytes


@cache
def script(name: str) -> Script:
    """Answer the script in the file `lua/{name}.lua`."""
    text = resources.files("batchstate_redis").joinpath("lua", f"{name}.lua").read_bytes()
    return Script(name, text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


class Call:
    """The keys and arguments of one script call.

    Every key that the script touches is declared. So a cluster that moves a slot answers with a
    redirection or TRYAGAIN; a script that made up its keys would find those not yet arrived absent,
    and say that there is no such row.

    Args:
        keys: the keys that the script knows by their order. What `place` declares follows them,
            each key once, and arguments name it by its place.
    """

    __slots__ = ("_places", "arguments", "keys")

    def __init__(self, *keys: bytes) -> None:
        self.keys = list(keys)
        self.arguments: list[bytes | int] = []  # no str: a client may have another encoding than ours
        self._places: dict[bytes, int] = {}

    def place(self, key: bytes) -> int:
        """Answer the place of `key` in KEYS, declaring it."""
        place = self._places.get(key)
        if place is None:
            self.keys.append(key)
            place = self._places[key] = len(self.keys)
        return place


class Runner:
    """Runs commands on a client.

    Our commands are all safe to send again: a swap and a creation carry a mark, and whatever else
    there is may be repeated. So what passes by itself is waited for, for as long as `patience`.

    Args:
        client: redis-py's, for one server, a cluster or sentinels.
        patience: how long a call goes on trying, in seconds, beside what the client does by itself.
        where: the server, as errors may name it.
    """

    def __init__(self, client: Client, patience: float, where: str) -> None:
        self.client = client
        self.where = where
        self.is_opening = False
        """Whether nothing was done yet but to connect, see `faults.explained`."""
        self._patience = patience

    def run(self, program: Script, call: Call) -> Any:  # noqa: ANN401 - an answer is what its script's head says
        """Run a script, sending its text where the server's cache has lost it, and answer bytes and ints.

        Raises:
            StorageUnavailableError: the server cannot be reached or did not do it in time.
            CorruptRowError: one of the keys holds what nobody of ours wrote.
        """
        return self.run_on(program, call.keys, call.arguments)

    def run_on(self, program: Script, keys: Sequence[bytes], arguments: Sequence[bytes | int]) -> Any:  # noqa: ANN401 - as above
        """As `run`, for keys that are known beforehand."""
        try:
            return self.execute("EVALSHA", program.sha, len(keys), *keys, *arguments)
        except exceptions.NoScriptError:
            return self.execute("EVAL", program.text, len(keys), *keys, *arguments)

    def execute(self, *command: bytes | str | int) -> Any:  # noqa: ANN401 - as above
        """Run one command; answers and errors as for `run`, but for `NoScriptError`, which is raised as it is."""
        try:
            return self._send(command)
        except exceptions.NoScriptError:
            raise
        except CLIENT_ERRORS as error:
            if not is_passing(error):
                raise explained(error, self.where, opening=self.is_opening) from error
            self._prepare_again(error)
        try:
            return self._insist(command)
        except exceptions.NoScriptError:
            raise
        except CLIENT_ERRORS as error:
            raise explained(error, self.where, opening=self.is_opening) from error

    def _send(self, command: tuple[bytes | str | int, ...]) -> Any:  # noqa: ANN401 - as above
        # Never decoded, whatever the client is set to: a row that is no text must not break the others.
        execute: Callable[..., Any] = self.client.execute_command
        return execute(*command, **{NEVER_DECODE: True})

    def _insist(self, command: tuple[bytes | str | int, ...]) -> Any:  # noqa: ANN401 - as above
        for attempt in stamina.retry_context(
            on=is_passing, attempts=None, timeout=self._patience, wait_initial=0.02, wait_max=0.5, wait_jitter=0.05
        ):
            with attempt:
                try:
                    return self._send(command)
                except CLIENT_ERRORS as error:
                    self._prepare_again(error)
                    raise
        raise AssertionError  # pragma: no cover - the loop ends by returning or raising

    def _prepare_again(self, error: Exception) -> None:
        """Let go of connections to what was the primary, so that the next try looks up who is."""
        pool = getattr(self.client, "connection_pool", None)
        if code_of(error) == "READONLY" and pool is not None:
            pool.disconnect(inuse_connections=False)


def in_chunks(items: Iterable[Item], cost: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Cut `items` into lists that one script call each can do without keeping the server from others for long.

    Args:
        items: in order, which is kept.
        cost: how much one of them is, counted in commands.
    """
    chunk: list[Item] = []
    total = 0
    for item in items:
        weight = cost(item)
        if chunk and total + weight > MOST_AT_ONCE:
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += weight
    if chunk:
        yield chunk
