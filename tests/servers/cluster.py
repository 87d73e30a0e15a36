"""A real Valkey cluster: three primaries with one replica each, in six processes.

```python
with ValkeyCluster() as cluster:
    client = cluster.client()
    client.set("a", 1)
    cluster.fail_over("a")  # kills its primary, and waits until the replica has taken over
    cluster.heal()  # the killed node is back, as a replica
```
"""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Self

from redis.cluster import RedisCluster
from typing_extensions import override

from tests.servers.cluster_node import ValkeyNode
from tests.servers.ports import wait_until
from tests.servers.redis_servers import RedisServer

_PRIMARIES = 3
_SLOTS = 16_384
_LONGEST_FORMING = 20.0
_LONGEST_FAILOVER = 20.0


class ClusterEndpoint:
    """A cluster known by its URL alone, `redis+cluster://host:port,host:port`."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        """What a user would write to connect."""
        return self._url

    def client(self, **options: object) -> RedisCluster:
        """Return a new redis-py client; `options` are those of `RedisCluster.from_url`."""
        # One node is enough, it names the others; and all in the URL run, at present.
        first = self.url.removeprefix("redis+cluster://").split(",")[0]
        client: RedisCluster = RedisCluster.from_url(f"redis://{first}", **options)
        return client


class ValkeyCluster(ClusterEndpoint):
    """A cluster of ours. As a context manager it runs within the block.

    Args:
        settings: Further lines of every node's configuration file.

    Raises:
        FileNotFoundError: This machine lacks Valkey.

    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(url="")
        self.nodes = [ValkeyNode(settings or {}) for _ in range(2 * _PRIMARIES)]

    @property
    @override
    def url(self) -> str:
        """The URL with the nodes that run."""
        addresses = ",".join(f"{node.host}:{node.port}" for node in self._running())
        return f"redis+cluster://{addresses}"

    def start(self) -> Self:
        """Start the nodes, make them a cluster, wait until all of it is up."""
        with ExitStack() as undo:
            undo.callback(self.stop)
            for node in self.nodes:
                node.start()
            self._form()
            undo.pop_all()
        return self

    def stop(self) -> None:
        """End all nodes."""
        for node in self.nodes:
            node.kill()  # a primary that ends politely waits for its replica first

    def pause(self) -> None:
        """Leave every connection to every node open and answer nothing."""
        for node in self._running():
            node.pause()

    def resume(self) -> None:
        """End the pauses of all nodes."""
        for node in self.nodes:
            node.resume()

    def restart(self) -> None:
        """Start all nodes anew, without their data, and wait until the cluster is up."""
        self.stop()
        self.heal()

    def primary_of(self, key: str) -> RedisServer:
        """Return the node that holds the key's slot, as the nodes that run agree.

        Raises:
            TimeoutError: They do not agree, or no primary that runs has it.

        """
        found: list[RedisServer] = []

        def agreed() -> bool:
            found[:] = self.owners(key)
            return found != []

        wait_until(agreed, f"one primary of {key!r}", _LONGEST_FAILOVER)
        return found[0]

    def owners(self, key: str, *, besides: RedisServer | None = None) -> list[RedisServer]:
        """Return the one node that holds the key's slot, or none while the nodes do not agree.

        Args:
            key: The key.
            besides: A node that is not asked, because it is paused, and that does not count.

        """
        asked = [node for node in self._running() if node is not besides]
        slot = int(asked[0].tell("KEYSLOT", key))
        ports = {frozenset(seen.port for seen in node.view() if seen.is_primary_of(slot)) for node in asked}
        return [node for node in asked if ports == {frozenset({node.port})}]

    def replica_of(self, primary: RedisServer) -> RedisServer:
        """Return the replica that a primary has."""
        with primary.client(decode_responses=True) as client:
            port = int(client.info("replication")["slave0"]["port"])
        return next(node for node in self.nodes if node.port == port)

    def kill_primary_of(self, key: str) -> RedisServer:
        """Kill the node that holds the key's slot and return it; nothing is waited for."""
        node = self.primary_of(key)
        node.kill()
        return node

    def fail_over(self, key: str) -> float:
        """Kill the key's primary; return the seconds until another serves the key."""
        self.wait_until_whole()
        self.kill_primary_of(key)
        return wait_until(
            lambda: self.owners(key) != [] and self._is_served(),
            f"a new primary of {key!r}",
            _LONGEST_FAILOVER,
        )

    def heal(self) -> None:
        """Let every node run again, and wait until the cluster is whole."""
        for node in self.nodes:
            if node.process.running:
                node.resume()
            else:
                node.restart()
        self.wait_until_whole()

    def wait_until_whole(self) -> None:
        """Wait until all nodes agree, all slots are served, each primary has a replica in step."""
        wait_until(self._is_whole, "the cluster to be whole", _LONGEST_FORMING)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _form(self) -> None:
        primaries, replicas = self.nodes[:_PRIMARIES], self.nodes[_PRIMARIES:]
        bounds = [_SLOTS * number // _PRIMARIES for number in range(_PRIMARIES + 1)]
        for number, node in enumerate(self.nodes):
            node.tell("SET-CONFIG-EPOCH", number + 1)  # else they have to settle who wins a tie
        for number, node in enumerate(primaries):
            node.tell("ADDSLOTSRANGE", bounds[number], bounds[number + 1] - 1)
        for node in self.nodes[1:]:
            node.meet(self.nodes[0])
        wait_until(self._all_have_met, "the nodes to meet", _LONGEST_FORMING)
        for primary, replica in zip(primaries, replicas, strict=True):
            replica.tell("REPLICATE", primary.tell("MYID"))
        self.wait_until_whole()

    def _running(self) -> list[ValkeyNode]:
        return [node for node in self.nodes if node.process.running]

    def _all_have_met(self) -> bool:
        views = [node.view() for node in self.nodes]
        return all(
            len(view) == len(self.nodes) and not any("handshake" in seen.flags for seen in view) for view in views
        )

    def _is_served(self) -> bool:
        return all(node.is_serving() for node in self._running())

    def _is_whole(self) -> bool:
        views = {node.view() for node in self.nodes}
        return (
            len(views) == 1
            and all(seen.flags <= {"master", "slave"} for seen in views.pop())
            and self._is_served()
            and all(node.is_in_step() and node.tells_of_replicas() for node in self.nodes)
        )
