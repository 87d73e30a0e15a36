"""One node of a Valkey cluster, and what it knows of the others."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

import attrs
import redis

from tests.servers.ports import free_port
from tests.servers.redis_servers import Make, RedisServer

NODE_TIMEOUT_MS = 1_000


@attrs.frozen
class Seen:
    """What one node knows of another, or of itself: its port, its role and state, its slots."""

    port: int
    flags: frozenset[str]
    slots: tuple[tuple[int, int], ...]

    def is_primary_of(self, slot: int) -> bool:
        """Whether the slot is served by this node."""
        return "master" in self.flags and any(first <= slot <= last for first, last in self.slots)


class ValkeyNode(RedisServer):
    """A server in cluster mode.

    Args:
        settings: Further lines of its configuration file.

    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.bus_port = free_port()
        super().__init__(
            Make.VALKEY,
            settings={
                "cluster-enabled": "yes",
                "cluster-config-file": "nodes.conf",
                "cluster-port": str(self.bus_port),
                "cluster-node-timeout": str(NODE_TIMEOUT_MS),
                "cluster-replica-validity-factor": "0",  # a replica may always take over
                "cluster-allow-replica-migration": "no",
                **settings,
            },
        )

    def tell(self, word: str, *arguments: str | int) -> str:
        """Send a CLUSTER command and return its answer."""
        with self.impatient_client(decode_responses=True) as client:
            return str(client.execute_command(f"CLUSTER {word}", *arguments))

    def meet(self, other: "ValkeyNode") -> None:
        """Make this node and the other known to each other."""
        self.tell("MEET", other.host, other.port, other.bus_port)

    def view(self) -> frozenset[Seen]:
        """Return what the node knows of all nodes, itself included; nothing if it is down."""
        with suppress(redis.RedisError), self.impatient_client(decode_responses=True) as client:
            return frozenset(_seen(client.execute_command("CLUSTER NODES")))
        return frozenset()

    def is_serving(self) -> bool:
        """Whether the node finds that all slots are served."""
        with suppress(redis.RedisError), self.impatient_client(decode_responses=True) as client:
            return bool(client.execute_command("CLUSTER INFO")["cluster_state"] == "ok")
        return False

    def tells_of_replicas(self) -> bool:
        """Whether the node names a replica of every slot to clients; it does once it has heard of its progress."""
        with suppress(redis.RedisError), self.impatient_client(decode_responses=True) as client:
            ranges = client.execute_command("CLUSTER SLOTS")
            return all(len(nodes) > 1 for _, _, *nodes in ranges)
        return False

    def is_in_step(self) -> bool:
        """Whether a replica follows its primary, and a primary has its one replica."""
        with suppress(redis.RedisError), self.impatient_client(decode_responses=True) as client:
            state = client.info("replication")
            if state["role"] == "slave":
                return bool(state["master_link_status"] == "up")
            return bool(state["connected_slaves"] == 1 and state["slave0"]["state"] == "online")
        return False


def _seen(nodes: Mapping[str, Mapping[str, str]]) -> Iterator[Seen]:
    for address, node in nodes.items():
        flags = frozenset(node["flags"].split(",")) - {"myself"}
        slots = tuple((int(each[0]), int(each[-1])) for each in node["slots"])
        yield Seen(int(address.rpartition(":")[2]), flags, slots)
