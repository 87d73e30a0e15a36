"""Every command, through the entry point: what it prints, what it changes, and with which exit code it ends."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from batchstate import Lifecycle, Retry, open_queue
from batchstate.cli import main
from batchstate.transition import record_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.terminal import Command

FLOW = "queued > testing > merging > merged; testing | merging > failed"
ON_MERGES = ("--queue", "merges", "--lifecycle", FLOW)


@pytest.fixture
def merges(sqlite: Command) -> Command:
    """A store with batches in three states."""
    with open_queue("merges", sqlite.url, lifecycle=Lifecycle.parse(FLOW), by="setup") as queue:
        for number in range(5):
            queue.create(f"batch-{number}", requests=[f"pr-{number}"], attributes={"n": number})
        queue.advance("batch-3", "testing", source="queued")
        queue.advance("batch-4", "testing", source="queued")
        queue.advance("batch-4", "failed", source="testing", why="red")
    return sqlite


@pytest.fixture
def emails(sqlite: Command) -> Command:
    """A store with jobs in every place."""
    with open_queue("emails", sqlite.url, by="setup") as queue:
        for number in range(6):
            queue.add(f"email-{number}", {"n": number}, group="a" if number % 2 else None, max_attempts=1)
        queue.add("later", delay="1h")
        claim = queue.claim(1)
        assert claim is not None
        claim.settle({"email-0": Retry("boom")})
        queue.claim(1, lease="1h")
    return sqlite


def test_status_tells_states_and_places(merges: Command, emails: Command) -> None:
    """`status` has all queues of a store: batches per state, jobs per place and group."""
    said = merges("status", "--json").json
    assert [queue["queue"] for queue in said] == ["emails", "merges"]
    assert said[1]["batches"] == {"failed": 1, "queued": 3, "testing": 1}
    assert {name: said[0]["jobs"][name] for name in ("waiting", "active", "scheduled", "dead", "claims")} == {
        "waiting": 4,
        "active": 1,
        "scheduled": 1,
        "dead": 1,
        "claims": 1,
    }
    assert emails("queues").out.split() == ["emails", "merges"]


def test_list_filters_sorts_and_chooses_columns(merges: Command) -> None:
    """`list` shows the batches of the states asked for, in the order and the columns asked for."""
    assert [b["id"] for b in merges("list", "queued", *ON_MERGES, "--json").json] == ["batch-0", "batch-1", "batch-2"]
    said = merges("list", *ON_MERGES, "--columns", "id,state", "--sort", "id")
    assert said.out.index("batch-0") < said.out.index("batch-4")
    assert "version" not in said.out
    assert "5 batches" in said.out
    with open_queue("merges", merges.url, lifecycle=Lifecycle.parse(FLOW), clock=lambda: 1_600_000_000_000) as queue:
        queue.create("old", requests=["r"])
    recent = merges("list", "queued", *ON_MERGES, "--since", "1h", "--sort", "updated", "--json").json
    assert [b["id"] for b in recent] == ["batch-0", "batch-1", "batch-2"]
    assert merges("list", "queued", *ON_MERGES, "--sort", "created", "--json").json[0]["id"] == "old"
    said = merges("list", *ON_MERGES, "--columns", "colour")
    assert (said.code, "there is no column 'colour'" in said.err) == (1, True)


def test_show_tells_a_batchs_history_and_requests(merges: Command) -> None:
    """`show` of a batch has its row, its history with reasons, its requests and whether its record agrees."""
    said = merges("show", "batch-4", *ON_MERGES)
    assert all(part in said.out for part in ("in failed", "version 3", "red", "pr-4", "its record agrees with it"))
    row = merges("show", "batch-4", *ON_MERGES, "--json").json
    assert [move["to"] for move in row["history"]] == ["queued", "testing", "failed"]
    assert (row["attributes"], row["outcomes"], row["records_agree"]) == ({"n": 4}, {"pr-4": ""}, True)


def test_show_tells_where_a_job_is_and_of_its_attempts(emails: Command) -> None:
    """`show` of a job has its place and counters, and every attempt with its outcome."""
    said = emails("show", "email-0", "-q", "emails", "--json").json
    assert (said["job"]["place"], said["job"]["error"], said["job"]["attempts"]) == ("dead", "boom", 1)
    assert [attempt["outcome"] for attempt in said["attempts"]] == ["dead"]
    said = emails("show", "nobody", "-q", "emails")
    assert said.code == 1
    assert "knows no batch, job or request 'nobody'" in said.err
    assert "Traceback" not in said.err


def test_jobs_are_listed_by_place_group_and_error(emails: Command) -> None:
    """`jobs` and `dead` show what is in a place, of a group, with an error."""
    assert [job["id"] for job in emails("jobs", "waiting", "-g", "a", "--json").json] == ["email-3", "email-5"]
    assert [job["id"] for job in emails("jobs", "waiting", "-g", "-", "--json").json] == ["email-2", "email-4"]
    assert [job["id"] for job in emails("jobs", "scheduled", "--json").json] == ["later"]
    assert [job["id"] for job in emails("dead", "--error", "boom", "--json").json] == ["email-0"]
    assert emails("dead", "--error", "other", "--json").json == []
    assert emails("dead", "--older", "1h", "--json").json == []
    assert len(emails("dead", "--older", "1ms", "--json").json) == 1
    assert "more than 1, see --limit" in emails("jobs", "waiting", "--limit", "1").out


def test_the_lifecycle_is_drawn_with_live_counts(merges: Command) -> None:
    """`lifecycle` draws text, Mermaid, SVG and dot, with the number of batches in each state."""
    assert "queued (3)" in merges("lifecycle", *ON_MERGES).out
    assert merges("lifecycle", *ON_MERGES, "--format", "mermaid").out.startswith("stateDiagram-v2")
    assert '"queued (3)" -> "testing (1)";' in merges("lifecycle", *ON_MERGES, "--format", "dot").out
    assert merges("lifecycle", *ON_MERGES, "--format", "svg", "-o", "flow.svg").code == 0
    assert (merges.folder / "flow.svg").read_text(encoding="utf-8").startswith("<svg")


def test_advance_moves_and_tells_the_history_why(merges: Command) -> None:
    """`advance` moves a batch by the lifecycle alone, with who and why; a dry run changes nothing."""
    said = merges("advance", "batch-0", "testing", *ON_MERGES, "--dry-run")
    assert "would move batch-0 from queued to testing" in said.out
    assert merges("show", "batch-0", *ON_MERGES, "--json").json["state"] == "queued"
    assert merges("advance", "batch-0", "testing", *ON_MERGES, "--why", "by hand", "--by", "ada").code == 0
    last = merges("show", "batch-0", *ON_MERGES, "--json").json["history"][-1]
    assert (last["to"], last["by"], last["why"]) == ("testing", "ada", "by hand")
    said = merges("advance", "batch-0", "queued", *ON_MERGES)
    assert (said.code, "testing" in said.err, "Traceback" in said.err) == (1, True, False)


def test_retire_and_purge_take_batches_out(merges: Command) -> None:
    """`retire` takes ended batches out, `purge` deletes those retired long enough ago; both can be tried dry."""
    assert merges("retire", "batch-0", *ON_MERGES).code == 1
    assert merges("retire", "batch-4", *ON_MERGES).code == 0
    assert merges("list", "failed", *ON_MERGES, "--json").json == []
    assert merges("purge", *ON_MERGES, "--older-than", "0s", "--dry-run", "--json").json == {"would_delete": 1}
    assert merges("purge", *ON_MERGES, "--older-than", "0s", "--yes", "--json").json["deleted"] == 1
    assert merges("show", "batch-4", *ON_MERGES).code == 1


def test_what_changes_many_asks_first(merges: Command) -> None:
    """A command that changes more than one thing asks, and without an answer does nothing."""
    said = merges("purge", *ON_MERGES, "--older-than", "0s")
    assert said.code == 1
    assert "?" in said.err
    said = merges("purge", *ON_MERGES, "--older-than", "0s", "--json", text="y\n")
    assert (said.code, said.out[0]) == (0, "{")


def test_what_is_only_tried_changes_nothing(emails: Command) -> None:
    """A dry run of each command that serves jobs says what it would do, and does not do it."""
    before = emails("status", "--json").json[0]["jobs"]
    [held] = emails("jobs", "active", "--json").json
    for words, told in (
        (("pause", "--why", "down"), "would pause queue emails"),
        (("resume", "--group", "a"), "would resume group a of queue emails"),
        (("ceiling", "2"), "queue emails would have a ceiling of 2 jobs in flight"),
        (("sweep",), "would take back the jobs of 0 lapsed claims"),
        (("release", held["claim"]), "would release 1 job"),
        (("revive", "--all"), "would revive 1 job: email-0"),
        (("remove", "later", "email-0"), "would remove 2 jobs: later, email-0"),
    ):
        said = emails(*words, "--dry-run")
        assert (said.code, said.out) == (0, f"{told}\n"), said.err
    after = emails("status", "--json").json[0]["jobs"]
    assert {**before, "now": 0} == {**after, "now": 0}


def test_what_is_done_to_several_asks_first(merges: Command) -> None:
    """Filing several batches, and taking back several claims, ask; without an answer nothing is done."""
    said = merges("ensure", "batch-0", "batch-1")
    assert (said.code, said.err.startswith("File 2 batches?")) == (1, True)
    assert merges("ensure", "batch-0", "batch-1", text="y\n").code == 0
    with open_queue("lapsed", merges.url, clock=lambda: 1_700_000_000_000) as queue:
        for number in range(2):
            queue.add(f"j{number}")
            assert queue.claim(1) is not None
    said = merges("sweep", "-q", "lapsed")
    assert (said.code, said.err.startswith("Take back the jobs of 2 lapsed claims?")) == (1, True)
    assert merges("sweep", "-q", "lapsed", "--yes", "--json").json["returned"] == ["j0", "j1"]


def test_pauses_are_kept_with_their_reason(emails: Command) -> None:
    """`pause` and `resume` take a queue or a group out of service and back; `status` tells why."""
    assert emails("pause", "--why", "mail server down").code == 0
    assert emails("pause", "--group", "a", "--why", "too many").code == 0
    said = emails("status", "--json").json[0]["jobs"]
    assert (said["paused"], {g["group"]: g["paused"] for g in said["groups"]}["a"]) == ("mail server down", "too many")
    assert emails("resume").code == emails("resume", "--group", "a").code == 0
    assert emails("status", "--json").json[0]["jobs"]["paused"] is None


def test_ceilings_are_set_and_taken_away(emails: Command) -> None:
    """`ceiling` limits a group, or all; zero is refused."""
    assert emails("ceiling", "2", "--group", "a").code == 0
    assert {g["group"]: g["ceiling"] for g in emails("status", "--json").json[0]["jobs"]["groups"]}["a"] == 2
    assert emails("ceiling", "0").code == 2
    assert emails("ceiling", "none", "--group", "a").code == 0
    assert emails("ceiling", "many").code == 2


def test_held_jobs_are_released_and_removed_by_force(emails: Command) -> None:
    """`remove` refuses a held job without force, `release` gives a claim's jobs back."""
    [held] = emails("jobs", "active", "--json").json
    said = emails("remove", held["id"])
    assert (said.code, "held" in said.err) == (1, True)
    assert emails("release", held["claim"], "--yes", "--json").json == {"released": [held["id"]]}
    assert emails("remove", held["id"], "--json").json["removed"] == [held["id"]]
    assert emails("release", held["claim"], "--yes").code == 1
    assert emails("sweep", "--json").json["returned"] == []


def test_adding_names_bad_lines_and_is_safe_to_repeat(sqlite: Command) -> None:
    """`add` puts the good lines in, names the bad ones by number, and again adds nothing."""
    lines = [{"id": "a"}, {"id": "b", "payload": [1], "group": "g", "delay": "1h"}, {"no": 1}, {"id": ""}]
    text = "\n".join(json.dumps(line) for line in lines) + "\nnot json\n"
    said = sqlite("add", "-", "--queue", "q", "--json", text=text)
    assert said.code == 1
    assert (said.json["added"], said.json["duplicates"]) == (2, 0)
    assert [line.partition(":")[0] for line in said.json["refused"]] == ["line 3", "line 5", "line 4"]
    (sqlite.folder / "jobs.jsonl").write_text(text, encoding="utf-8")
    assert sqlite("add", "jobs.jsonl", "--queue", "q", "--json").json["duplicates"] == 2
    assert sqlite("jobs", "scheduled", "-q", "q", "--json").json[0]["payload"] == [1]


def test_working_calls_a_function_for_each_job(sqlite: Command) -> None:
    """`work` hands jobs to a function of the current folder, in several processes, and ends in a burst."""
    (sqlite.folder / "app.py").write_text(
        "def handle(job):\n    if job.payload == 3:\n        raise ValueError('three')\n", encoding="utf-8"
    )
    text = "\n".join(json.dumps({"id": f"j{n}", "payload": n, "max_attempts": 1}) for n in range(20))
    assert sqlite("add", "-", "-q", "q", text=text).code == 0
    said = sqlite("work", "app:handle", "-q", "q", "--burst", "--processes", "2", "--max-size", "5")
    assert said.code == 0, said.err
    [queue] = sqlite("status", "--json").json
    assert (queue["jobs"]["waiting"], queue["jobs"]["dead"]) == (0, 1)
    assert sqlite("dead", "--json").json[0]["error"] == "ValueError: three"


def test_working_finds_the_culprit_of_a_batch(sqlite: Command) -> None:
    """`work --bisect` hands a claim's jobs to the function at once, and charges the one that makes it raise alone."""
    (sqlite.folder / "app.py").write_text(
        "from batchstate import Done\n\ndef handle(part):\n    if any(job.payload == 3 for job in part):\n"
        "        raise ValueError('three')\n    return {job.id: Done() for job in part}\n",
        encoding="utf-8",
    )
    text = "\n".join(json.dumps({"id": f"j{n}", "payload": n, "max_attempts": 1}) for n in range(8))
    assert sqlite("add", "-", "-q", "q", text=text).code == 0
    said = sqlite("work", "app:handle", "-q", "q", "--burst", "--bisect", "--min-size", "8", "--max-size", "8")
    assert said.code == 0, said.err
    assert "a claim of 8 jobs; so far 7 completed, 1 dead" in said.err
    assert [job["id"] for job in sqlite("dead", "--json").json] == ["j3"]


def test_working_refuses_a_handler_that_is_none(sqlite: Command) -> None:
    """A handler that does not exist or cannot be imported is told in a line, before anything starts."""
    (sqlite.folder / "broken.py").write_text("import nosuchthing\n", encoding="utf-8")
    (sqlite.folder / "later.py").write_text("async def f(job): ...\n", encoding="utf-8")
    (sqlite.folder / "wrong.py").write_text("def f(job):\n    return ]\n", encoding="utf-8")
    for name, told in (
        ("broken:f", f"No module named 'nosuchthing' ({sqlite.folder / 'broken.py'}, line 1)"),
        ("wrong:f", "SyntaxError"),
        ("later:f", "asyncio.run"),
        ("app", "module:function"),
        ("nowhere:f", "no module 'nowhere'"),
        ("json:nothing", "no function"),
    ):
        said = sqlite("work", name, "-q", "q")
        assert said.code == 1
        assert told in said.err
        assert len(said.err.splitlines()) == 1
    assert not (sqlite.folder / "store.db").exists()


def test_a_broken_contract_ends_the_work(sqlite: Command) -> None:
    """A batch handler whose answer is no mapping ends `work` with exit code 1, and its jobs wait again."""
    (sqlite.folder / "app.py").write_text("def handle(part):\n    return 7\n", encoding="utf-8")
    assert sqlite("add", "-", "-q", "q", text='{"id": "a"}').code == 0
    said = sqlite("work", "app:handle", "-q", "q", "--batch", "--burst")
    assert (said.code, "mapping" in said.err) == (1, True)
    assert [job["id"] for job in sqlite("jobs", "waiting", "--json").json] == ["a"]


def test_settings_come_from_a_file_too(merges: Command) -> None:
    """`batchstate.toml` names store, queue and lifecycle; an option wins over it."""
    lines = [f"url = {json.dumps(merges.url)}", 'queue = "merges"', f"lifecycle = {json.dumps(FLOW)}"]
    (merges.folder / "batchstate.toml").write_text("\n".join(lines), encoding="utf-8")
    assert len(merges("list", "queued", "--json", BATCHSTATE_URL="").json) == 3
    said = merges("list", "--queue", "other", "--json")
    assert said.json == []
    for text, told in (
        ("url = [", "batchstate.toml cannot be read: "),
        ('urll = "x"', "batchstate.toml has 'urll', which is not known; there are url, queue and lifecycle"),
        ('url = ["redis://u:hunter2@h"]', "url: Input should be a valid string"),
    ):
        (merges.folder / "batchstate.toml").write_text(text, encoding="utf-8")
        said = merges("--debug", "queues", BATCHSTATE_URL="")
        assert (said.code, told in said.err, "hunter2" in said.err) == (1, True, False), said.err
        assert len(merges("queues", BATCHSTATE_URL="").err.splitlines()) == 1


def test_errors_are_told_without_a_traceback_and_without_secrets(sqlite: Command) -> None:
    """An error is one line that says what to do; `--debug` shows where it comes from; a password is never printed."""
    said = sqlite("status", BATCHSTATE_URL="")
    assert (said.code, "BATCHSTATE_URL" in said.err) == (1, True)
    said = sqlite("status", "--url", "redis://user:hunter2@127.0.0.1:1/0?patience=0.1")
    assert said.code == 3
    assert "hunter2" not in said.err + said.out
    assert "Traceback" not in said.err
    said = sqlite("--debug", "status", "--url", "redis://user:hunter2@127.0.0.1:1/0?patience=0.1&x=hunter2")
    assert ("Traceback" in said.err, "hunter2" in said.err) == (True, False)
    assert "Traceback" in sqlite("--debug", "status", "--url", "nonsense").err


@pytest.mark.parametrize("options", [[], ["--debug"]])
def test_what_should_not_happen_is_told_in_a_line(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fault of the program itself is a line that says how to find where it is; with `--debug` it is raised."""

    def broken(**_: object) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr("batchstate.cli.app.app", broken)
    monkeypatch.setattr("sys.argv", ["batchstate", *options])
    with pytest.raises(ZeroDivisionError if options else SystemExit):
        main()
    told = "batchstate: this should not happen: ZeroDivisionError: by nought; batchstate --debug … shows where\n"
    assert capsys.readouterr().err == ("" if options else told)


def test_colours_are_for_terminals(merges: Command) -> None:
    """What is piped has no colours."""
    assert "\x1b[" not in merges("status").out
    assert "\x1b[" not in merges("show", "batch-4", *ON_MERGES, NO_COLOR="1").out


def test_watch_survives_a_store_that_is_away(sqlite: Command) -> None:
    """`watch` shows what is wrong while the store cannot be reached, and goes on looking."""
    said = sqlite("watch", "--times", "2", "--every", "0.1", "--url", "redis://127.0.0.1:1/0?patience=0.1")
    assert said.code == 0
    assert "127.0.0.1:1" in said.out
    with open_queue("q", sqlite.url) as queue:
        queue.add("a")
    said = sqlite("watch", "--times", "1")
    assert "1 queue" in said.out


def test_every_command_has_help_with_an_example(sqlite: Command) -> None:
    """Each command's help says what it does, with an example that the command understands."""
    from batchstate.cli.app import app  # noqa: PLC0415 - as the command loads it

    root = get_command(app)
    assert isinstance(root, TyperGroup)
    examples = [*_examples(root)]
    assert len(examples) == 28
    for command, words in examples:
        command.make_context("batchstate", words).close()
    assert "Example: batchstate list testing merging" in sqlite("list", "--help").out


def _examples(group: TyperGroup) -> Iterator[tuple[Any, list[str]]]:
    """Answer each command with the words behind it in the example of its help."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _examples(command)
        else:
            example = (command.help or "").partition("Example: batchstate ")[2]
            words = shlex.split(example)
            yield command, words[words.index(name) + 1 :]


def test_storage_init_and_info(anywhere: Command) -> None:
    """`storage init` makes a store ready and is harmless again; `storage info` says what is there."""
    assert anywhere("storage", "init", anywhere.url).code == 0
    assert anywhere("storage", "init", anywhere.url).code == 0
    said = anywhere("storage", "info", "--json")
    assert said.code == 0, said.err
    assert [said.json["facts"][name] for name in ("queues", "batches", "jobs")] == ["0", "0 filed", "0"]
    with open_queue("q", anywhere.url, lifecycle=Lifecycle.parse(FLOW)) as queue:
        queue.create("batch-1", requests=["r"])
        queue.add("j")
    facts = anywhere("storage", "info", "--json").json["facts"]
    assert [facts[name] for name in ("queues", "batches", "jobs")] == ["1", "1 filed", "1"]


def test_check_fixes_what_is_safe(merges: Command) -> None:
    """`check --fix` files what is unfiled and removes what is stale, and reports nothing afterwards."""
    with open_queue("merges", merges.url, lifecycle=Lifecycle.parse(FLOW), clock=lambda: 1_600_000_000_000) as queue:
        batch = queue.create("old", requests=["r"])
        queue.store.delete_records([record_of(batch)])
    assert merges("check", *ON_MERGES).code == 1
    said = merges("check", *ON_MERGES, "--fix", "--json").json
    assert (said["mended"], said["faults"]) == (1, [])
    assert merges("check", *ON_MERGES).code == 0
