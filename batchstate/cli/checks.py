"""`check`: reads a store and says where it breaks a promise."""

from __future__ import annotations

from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from batchstate import BatchStateError, ensure_record
from batchstate.checking import Fault, check_batches
from batchstate.claims.context import has_jobs
from batchstate.cli.output import errors, json_text, out, say, table
from batchstate.cli.safe import many
from batchstate.cli.settings import JsonOption, LifecycleOption, QueueOption, UrlOption, target
from batchstate.creation import associations_of
from batchstate.job_checking import check_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Self

    from batchstate import Lifecycle, Storage

__all__ = ["register"]

SHOWN = 200


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", rich_help_panel="Looking")(check)


def check(
    url: UrlOption = None,
    queue: QueueOption = None,
    lifecycle: LifecycleOption = None,
    fix: Annotated[bool, typer.Option(help="Mend what can be mended without losing anything.")] = False,
    json: JsonOption = False,
) -> None:
    """Check every promise: records against rows, requests against batches, jobs against claims and groups.

    Works on a live store: what was written within the last minute may be on its way, and is not judged. Without a
    lifecycle, any state will do. Exit code 0 where all is well, 1 where something is wrong and was not mended.

    Example: batchstate check --fix
    """
    chosen = target(url, queue, lifecycle)
    chosen.doubt()
    mended = 0
    with Findings(json=json) as found:
        with _progress() as bar:
            for name in chosen.queues():
                with chosen.store(name) as store:
                    for fault in _faults_of(store, chosen.lifecycle, bar):
                        if fix and fault.safe and _mend(store, fault):
                            mended += 1
                        else:
                            found.add(name, fault)
        found.tell(mended if fix else None)
    raise typer.Exit(1 if found.count else 0)


class Findings:
    """The faults that are left: the first for a table, or all in a file for JSON, so that no number is too many.

    Args:
        json: whether they are told as JSON.
    """

    def __init__(self, *, json: bool) -> None:
        self.count = 0
        self._json = json
        self._first: list[tuple[str, Fault]] = []

    def __enter__(self) -> Self:
        """Make the file."""
        self._all = TemporaryFile("w+", encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the file away."""
        self._all.close()

    def add(self, queue: str, fault: Fault) -> None:
        """Take one more."""
        if self._json:
            told = {"queue": queue, "kind": fault.kind, "key": fault.key, "says": fault.says, "mend": fault.mend}
            self._all.write((",\n    " if self.count else "    ") + json_text({**told, "safe": fault.safe}))
        elif self.count < SHOWN:
            self._first.append((queue, fault))
        self.count += 1

    def tell(self, mended: int | None) -> None:
        """Print them, and how many were mended; `None` where nothing was to be mended."""
        if self._json:
            self._all.seek(0)
            out.file.write(f'{{\n  "mended": {mended or 0},\n  "faults": [\n')
            copyfileobj(self._all, out.file)
            out.file.write("\n  ]\n}\n")
            return
        if self._first:
            rows = [(name, f.kind, f.key, f.says, f.mend) for name, f in self._first]
            table("", ("queue", "fault", "of", "says", "mend it with"), rows)
        more = f", of which {SHOWN} are shown; --json has all" if self.count > SHOWN else ""
        done = "" if mended is None else f", {mended:,} mended"
        say(many(self.count, "fault") + more + done if self.count or mended else "All is well.")


def _faults_of(store: Storage, lifecycle: Lifecycle | None, bar: Progress) -> Iterator[Fault]:
    task = bar.add_task(f"{store.queue}: looking", total=None)

    def told(what: str, count: int) -> None:
        bar.update(task, description=f"{store.queue}: {count:,} {what}")

    yield from check_batches(store, lifecycle, on_progress=told)
    if has_jobs(store):
        yield from check_jobs(store, on_progress=told)


def _mend(store: Storage, fault: Fault) -> bool:
    """Mend what is safe: file the batch where its row says, and only then remove what disagrees with it."""
    batch = store.get_batches([fault.key]).get(fault.key)
    if batch is None or isinstance(batch, BatchStateError):
        return False
    if batch.retired_at is None:
        store.put_associations(associations_of(batch))
        ensure_record(store, batch)
    if fault.record is not None and (batch.retired_at is not None or fault.record.state != batch.state):
        store.delete_records([fault.record])
    return True


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )
