"""The programs of the servers: where they are, and Debian's packages where they are not."""

import os
import shutil
import subprocess
from pathlib import Path

from deploy.opensearch.releases import SetupError
from deploy.opensearch.software import exclusive_lock

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "services"
PACKAGES = {"postgres": "postgresql", "redis-server": "redis-server"}
"""The package of each program."""


def program(name: str) -> Path:
    """Raises SetupError: it is not installed."""
    if found := _found(name):
        return found
    raise SetupError(f"There is no {name} here. {_how_to_install([PACKAGES.get(name, name)])}")


def install() -> None:
    """Have every program; where one is missing, Debian's package, as root.

    Raises:
        SetupError: that cannot be done here.
    """
    with exclusive_lock(CACHE / "install.lock"):
        missing = [package for name, package in PACKAGES.items() if not _found(name)]
        if not missing:
            return
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            raise SetupError(
                f"The servers need {' and '.join(missing)}. {_how_to_install(missing)}"
            )
        print(f"Installing {' and '.join(missing)}...", flush=True)
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
            _apt_get(command)


def _apt_get(arguments: list[str]) -> None:
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-qq", *arguments]
    done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _found(name: str) -> Path | None:
    """Of the versions of PostgreSQL that Debian keeps side by side, none on the path, the newest."""
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    newest = sorted(versions, key=lambda path: float(path.parents[1].name))
    if newest:
        return newest[-1]
    found = shutil.which(name)
    return Path(found) if found else None


def _how_to_install(packages: list[str]) -> str:
    return f"On Debian: sudo apt-get install {' '.join(packages)}"
