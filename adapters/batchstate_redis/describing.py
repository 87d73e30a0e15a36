"""What can be told of a server, and which of its settings endanger data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from redis import exceptions
from redis.client import NEVER_DECODE
from redis.cluster import RedisCluster

from batchstate_redis.scripts import Call, script

if TYPE_CHECKING:
    from batchstate_redis.scripts import Runner

__all__ = ["describe"]

_UNKNOWN: Final = "unknown: the user may not ask"
_CONFIG: Final = ("appendfsync", "min-replicas-to-write")


def describe(runner: Runner, key: bytes) -> tuple[dict[str, str], list[str]]:
    """Answer facts by name, and a sentence for each setting that endangers data.

    Args:
        runner: runs scripts.
        key: any key of the queue: in a cluster its primary is the one asked.

    Raises:
        StorageUnavailableError: the server cannot be reached.
    """
    text: bytes = runner.run(script("describe_settings"), Call(key))
    info = dict(line.split(":", 1) for line in text.decode("utf-8", "replace").splitlines() if ":" in line)
    config = _config(runner, key)
    facts = {
        "server": _server(info),
        "mode": info.get("server_mode") or info.get("redis_mode") or _UNKNOWN,
        "role": info.get("role", _UNKNOWN),
        "replicas": info.get("connected_slaves", _UNKNOWN),
        "maxmemory-policy": info.get("maxmemory_policy", _UNKNOWN),
        "appendonly": {"1": "yes", "0": "no"}.get(info.get("aof_enabled", ""), _UNKNOWN),
        **{name: config.get(name, _UNKNOWN) for name in _CONFIG},
        "memory": info.get("used_memory_human", _UNKNOWN),
        "keys": ", ".join(f"{info[name].split(',')[0].removeprefix('keys=')} in {name}" for name in _databases(info)),
    }
    return facts, _warnings(facts)


def _server(info: dict[str, str]) -> str:
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}" if "redis_version" in info else _UNKNOWN


def _databases(info: dict[str, str]) -> list[str]:
    return [name for name in info if name.startswith("db") and name[2:].isdigit()]


def _config(runner: Runner, key: bytes) -> dict[str, str]:
    """Answer the settings that `INFO` does not have, as far as the user may read them."""
    client: Any = runner.client
    options: dict[str, Any] = {NEVER_DECODE: True}
    if isinstance(runner.client, RedisCluster):
        options["target_nodes"] = client.get_node_from_key(key)
    found: dict[str, str] = {}
    for name in _CONFIG:
        try:
            answer: Any = client.execute_command("CONFIG GET", name, **options)
        except exceptions.RedisError:
            continue  # the user may not ask, or a proxy knows no such command
        flat = [part for pair in answer.items() for part in pair] if isinstance(answer, dict) else list(answer or ())
        texts = [part.decode("utf-8", "replace") if isinstance(part, bytes) else str(part) for part in flat]
        found.update(zip(texts[::2], texts[1::2], strict=False))
    return found


def _warnings(facts: dict[str, str]) -> list[str]:
    warnings = []
    if facts["maxmemory-policy"] not in ("noeviction", _UNKNOWN):
        warnings.append(
            f"maxmemory-policy is {facts['maxmemory-policy']}: when the memory is used up rows are deleted; set it to "
            "noeviction"
        )
    if facts["appendonly"] == "no":
        warnings.append("appendonly is no: a restart goes back to the last snapshot; set it to yes")
    elif facts["appendfsync"] not in ("always", _UNKNOWN):
        warnings.append(
            f"appendfsync is {facts['appendfsync']}: a crash loses what was acknowledged last; set it to always"
        )
    if facts["replicas"] not in ("0", _UNKNOWN) and facts["min-replicas-to-write"] == "0":
        warnings.append(
            "min-replicas-to-write is 0: a primary that is cut off from its replicas takes writes that a failover "
            "loses; set it to 1 or more"
        )
    unknown = [name for name in ("maxmemory-policy", "appendonly", *_CONFIG) if facts[name] == _UNKNOWN]
    if unknown:
        warnings.append(f"{', '.join(unknown)} cannot be read by this user, so nothing is known of what they endanger")
    return warnings
