"""What is shipped, what it needs, and what importing it brings in."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from email.message import Message

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = sorted(path.name for path in (ROOT / "adapters").glob("batchstate_*") if path.is_dir())
PACKAGES = ["batchstate", *ADAPTERS]

# Whoever installs the base distribution has none of these, and whoever imports it wants none.
NOT_IN_THE_BASE = [
    "boto3",
    "botocore",
    "greenlet",
    "hypothesis",
    "pydantic_settings",
    "pytest",
    "redis",
    "rich",
    "stamina",
    "typer",
]


def _build(kind: str, folder: Path) -> Path:
    """Build the wheel or the source archive of this checkout into the folder."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    (archive,) = folder.iterdir()
    return archive


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this checkout."""
    return zipfile.ZipFile(_build("wheel", tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    """What the wheel says of itself."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def _sources(folder: Path) -> set[str]:
    """The files of one package, named as an import finds them."""
    return {
        path.relative_to(folder.parent).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_holds_the_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    """The wheel holds every file of the core and the adapters, the demo's changes, and no other package."""
    expected = _sources(ROOT / "batchstate")
    for adapter in ADAPTERS:
        expected |= _sources(ROOT / "adapters" / adapter)

    expected.add("batchstate/cli/demo/changes.jsonl")

    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert shipped == expected


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_marked_as_typed(wheel: zipfile.ZipFile, package: str) -> None:
    """Type checkers read the annotations of every package that is shipped."""
    assert {f"{package}/py.typed", f"{package}/__init__.py"} <= set(wheel.namelist())


def test_source_archive_holds_what_a_build_needs_and_nothing_else(tmp_path: Path) -> None:
    """The source archive holds the packages and the project's own files, no tests."""
    with tarfile.open(_build("sdist", tmp_path)) as archive:
        names = {PurePosixPath(member.name) for member in archive if member.isfile()}

    assert {path.parts[1] for path in names} == {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "adapters",
        "batchstate",
        "examples",
        "pyproject.toml",
    }


def _names(requirements: list[str]) -> set[str]:
    """The distributions that requirement lines name, without versions."""
    return {line.split(";")[0].rstrip().split(">")[0].split("[")[0] for line in requirements}


def test_base_install_needs_three_distributions(metadata: Message) -> None:
    """Without an extra, attrs, pydantic and uuid6 are all that is installed besides."""
    base = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]

    assert _names(base) == {"attrs", "pydantic", "uuid6"}


def test_extras_are_the_documented_ones(metadata: Message) -> None:
    """Each backend, the command and the test tools are extras, and `all` is what users run."""
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "all",
        "cli",
        "dynamodb",
        "redis",
        "testing",
    }


# What a part of the house may import besides the standard library and what stands below it.
_BASE = {"attrs", "batchstate", "pydantic", "pydantic_core", "uuid6"}
_MAY_IMPORT = {
    "batchstate": _BASE,
    "batchstate/cli": _BASE | {"pydantic_settings", "rich", "typer"},
    "batchstate/testing": _BASE | {"greenlet", "hypothesis", "pytest"},
    "adapters/batchstate_memory": _BASE | {"batchstate_memory"},
    "adapters/batchstate_sqlite": _BASE | {"batchstate_sqlite"},
    "adapters/batchstate_redis": _BASE | {"batchstate_redis", "redis", "stamina"},
    "adapters/batchstate_dynamodb": _BASE | {"batchstate_dynamodb", "boto3", "botocore", "stamina"},
}


class _Imports(ast.NodeVisitor):
    """Gathers the packages that a file imports when it runs, also lazily."""

    def __init__(self, file: Path) -> None:
        self.names: set[str] = set()
        self.visit(ast.parse(file.read_bytes()))

    def visit_If(self, node: ast.If) -> None:
        """Leave out what only type checkers import."""
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        """Note `import a.b` as `a`."""
        self.names |= {alias.name.partition(".")[0] for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Note `from a.b import c` as `a`."""
        if node.level == 0 and node.module:
            self.names.add(node.module.partition(".")[0])


@pytest.mark.parametrize("part", _MAY_IMPORT)
def test_every_import_is_of_something_that_is_declared(part: str) -> None:
    """A part imports what its extra brings, never what only happens to be installed beside it."""
    inner = [other for other in _MAY_IMPORT if other.startswith(f"{part}/")]
    undeclared = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in (ROOT / part).rglob("*.py")
        if not any(file.is_relative_to(ROOT / other) for other in inner)
        for name in _Imports(file).names - _MAY_IMPORT[part] - sys.stdlib_module_names
    }

    assert undeclared == set()


def _run_python(program: str, *arguments: str) -> str:
    """Run a program in a fresh interpreter that sees this checkout's packages; its output."""
    # Measuring the coverage of a child loads modules into it that are none of its own.
    environment = {key: value for key, value in os.environ.items() if "COVERAGE" not in key}
    preamble = f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'adapters')]!r}\n"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", preamble + program, *arguments],
        check=True,
        capture_output=True,
        env=environment,
        text=True,
    ).stdout


_IMPORT_THE_CORE = """
import importlib, pkgutil
import batchstate

def names(package, prefix):
    for module in pkgutil.iter_modules(package.__path__, prefix):
        if module.name.split(".")[1] in ("cli", "testing"):
            continue
        yield module.name
        if module.ispkg:
            yield from names(importlib.import_module(module.name), module.name + ".")

for name in names(batchstate, "batchstate."):
    importlib.import_module(name)
"""


def test_importing_the_core_loads_no_backend_and_no_tool() -> None:
    """Importing every module of the core loads no client library, no test tool, no sqlite3."""
    unwanted = {*NOT_IN_THE_BASE, "sqlite3", *ADAPTERS}

    loaded = set(_run_python(_IMPORT_THE_CORE + "print(*sys.modules)").split())

    assert not loaded & unwanted


def test_core_works_where_only_the_base_is_installed() -> None:
    """Every module of the core can be imported where no extra is installed."""
    hide = f"sys.modules.update(dict.fromkeys({NOT_IN_THE_BASE!r}))\n"

    assert _run_python(hide + _IMPORT_THE_CORE + "print('ok')") == "ok\n"


_MOVE_A_BATCH = """
from batchstate import Lifecycle, open_queue
flow = Lifecycle.parse("queued > testing > merged")
with open_queue("merges", sys.argv[1], lifecycle=flow) as queue:
    queue.create("batch-17", requests=["pr-1"])
    queue.advance("batch-17", "testing", source="queued")
    print([batch.id for batch in queue.list_by_states(["testing"])])
"""


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{folder}/merges.db"])
def test_embedded_backends_need_the_base_only(url: str, tmp_path: Path) -> None:
    """The backends that need no client run where no extra is installed."""
    hide = f"sys.modules.update(dict.fromkeys({NOT_IN_THE_BASE!r}))\n"

    output = _run_python(hide + _MOVE_A_BATCH, url.format(folder=tmp_path))

    assert output == "['batch-17']\n"
