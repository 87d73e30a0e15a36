"""Runs the benchmarks and prints their results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tests.benchmarks import (
    bench_claims,
    bench_dynamodb,
    bench_dynamodb_jobs,
    bench_lifecycle,
    bench_redis,
    bench_redis_jobs,
)

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
COUNTS: dict[str, Callable[[], Iterator[bench_dynamodb_jobs.Count]]] = {"dynamodb claims": bench_dynamodb_jobs.dynamodb}


def main(words: list[str]) -> None:
    """Run the benchmarks whose name has one of `words` in it, or all."""
    table = Table(title="Medians, interleaved; ratio = the floor's time to ours")
    for column in ("work", "contestant", "µs per operation", "ratio", "CPU ratio"):
        table.add_column(column, justify="left" if column in ("work", "contestant") else "right")
    console = Console()
    for name, benchmark in BENCHMARKS.items():
        if not _is_chosen(name, words):
            continue
        for result in benchmark():
            console.print(f"{result.title}: done, {result.rounds} rounds of {result.operations}")
            for standing in result.standings:
                figures = (f"{standing.microseconds:,.1f}", f"{standing.ratio:.2f}", f"{standing.cpu_ratio:.2f}")
                table.add_row(result.title, standing.name, *figures)
    console.print(table)
    _count(console, words)


def _count(console: Console, words: list[str]) -> None:
    """Print what is not measured but counted."""
    chosen = [counted for name, counted in COUNTS.items() if _is_chosen(name, words)]
    table = Table(title="What a job costs by the service's rules")
    for column in ("work", "requests", "read units", "write units"):
        table.add_column(column, justify="left" if column == "work" else "right")
    for one in (one for counted in chosen for one in counted()):
        table.add_row(one.title, f"{one.requests:.2f}", f"{one.reads:.2f}", f"{one.writes:.2f}")
    if chosen:
        console.print(table)


def _is_chosen(name: str, words: list[str]) -> bool:
    return not words or any(word in name for word in words)


if __name__ == "__main__":
    main(sys.argv[1:])
