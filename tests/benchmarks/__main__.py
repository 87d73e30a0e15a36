"""Runs the benchmarks and prints their results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tests.benchmarks import bench_claims, bench_dynamodb, bench_lifecycle, bench_redis, bench_redis_jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.benchmarks.racing import Race

BENCHMARKS: dict[str, Callable[[], Iterator[Race]]] = {
    "memory lifecycle": bench_lifecycle.memory,
    "redis7 lifecycle": bench_redis.redis7,
    "sqlite lifecycle": bench_lifecycle.sqlite,
    "memory claims": bench_claims.memory,
    "sqlite claims": bench_claims.sqlite,
    "dynamodb lifecycle": bench_dynamodb.dynamodb,
    "valkey claims": bench_redis_jobs.valkey,
    "valkey lifecycle": bench_redis.valkey,
}


def main(words: list[str]) -> None:
    """Run the benchmarks whose name has one of `words` in it, or all."""
    table = Table(title="Medians, interleaved; ratio = the floor's time to ours")
    for column in ("work", "contestant", "µs per operation", "ratio", "CPU ratio"):
        table.add_column(column, justify="left" if column in ("work", "contestant") else "right")
    console = Console()
    for name, benchmark in BENCHMARKS.items():
        if words and not any(word in name for word in words):
            continue
        for result in benchmark():
            console.print(f"{result.title}: done, {result.rounds} rounds of {result.operations}")
            for standing in result.standings:
                figures = (f"{standing.microseconds:,.1f}", f"{standing.ratio:.2f}", f"{standing.cpu_ratio:.2f}")
                table.add_row(result.title, standing.name, *figures)
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
