"""The wheel, installed by pip in an environment of its own, answers a question from an empty home.

On every Python from 3.11 on that this machine has.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak("release")

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")
VERSIONS = ("3.11", "3.12", "3.13")
LARGEST_ENVIRONMENT = 1_200_000_000
"""Bytes on disk."""


def _run(*command: object, **variables: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd="/",
        env={**os.environ, **variables, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _pythons() -> Iterator[Path]:
    """The interpreter of this run, and one of each other version that is installed."""
    yield Path(sys.executable).resolve()
    for version in VERSIONS:
        for folder in _search_path():
            found = folder / f"python{version}"
            if found.is_file() and _is_other_python(found):
                yield found.resolve()


def _search_path() -> Sequence[Path]:
    versions = Path.home() / ".pyenv" / "versions"
    installed = sorted(versions.glob("*/bin")) if versions.is_dir() else []
    return [Path("/usr/bin"), *installed]


def _is_other_python(program: Path) -> bool:
    probe = [str(program), "-c", "import ensurepip, sys; print(sys.version)"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.strip() != sys.version


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _run(UV, "build", "--wheel", "--quiet", "--out-dir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.parametrize("python", sorted(set(_pythons())), ids=lambda path: path.name)
def test_it_answers_from_an_empty_home(python: Path, wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    _run(python, "-m", "venv", environment)
    program = environment / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    _run(UV, "pip", "install", "--quiet", "--python", program, "--constraint", constraints, wheel)
    home = {"HOME": str(tmp_path), "QUARRY_HOME": str(tmp_path / "home")}
    quarry = environment / "bin" / "quarry"
    assert _run(quarry, "--version", **home).startswith("quarry ")
    answers = _run(quarry, "demo", **home)
    assert answers.count("[1]") >= 3
    assert _size(environment) <= LARGEST_ENVIRONMENT
    shutil.rmtree(environment)


def _size(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if not path.is_symlink())
