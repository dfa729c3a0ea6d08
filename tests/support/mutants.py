"""Run the tests of some modules on their mutants, and print how many of those the tests notice.

    .venv/bin/python -m tests.support.mutants                        # all groups
    .venv/bin/python -m tests.support.mutants leases
    .venv/bin/python -m tests.support.mutants leases --only '*[37]'  # a fifth of the mutants, by their numbers

A mutant is a module with one operator, constant or argument changed. Each group of modules has the tests that
concern it, and is run in a copy of the tree in `.cache/mutants`. A mutant that no test notices is listed;
`mutmut show NAME`, in the copy, prints its difference. Exits with 1 if a module is below the bar.
"""

import json
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

BAR = 0.9
"""Killed share of all mutants of a module."""
ROOT = Path(__file__).parents[2]
COPIES = ROOT / ".cache" / "mutants"
COPIED = ("backend", "connectors", "indexing", "tests", "deploy")
ARGUMENTS = ("-p", "no:cacheprovider", "--hypothesis-profile", "mutants")
"""For pytest."""
SURVIVED = {0, 33}
"""Exit codes of pytest's runs as mutmut keeps them: all tests passed; no test calls the function."""
TIMES = 6.0
"""A mutant that does not end is stopped after this multiple of the usual time of its tests."""

START_SECONDS = 5.0
"""Added to that usual time: on a busy machine a process takes seconds to start, and would count as one without end."""


@dataclass(frozen=True, slots=True)
class Group:
    modules: Sequence[str]
    """Files, or folders for all files in them."""
    tests: Sequence[str]
    selected: str = ""
    """An expression of pytest's `-k`: of two databases one."""


GROUPS: Mapping[str, Group] = {
    # The last condition of access, in indexing/local/sql.py, is a constant of a module, which mutmut leaves as it is:
    # tests/unit/indexing/local/test_sql.py takes its parts away.
    "access": Group(
        modules=(
            "connectors/access.py",
            "indexing/index/person_keys.py",
            "indexing/local/access_filter.py",
        ),
        tests=(
            "tests/unit/connectors/test_access.py",
            "tests/unit/indexing/index/test_person_keys.py",
            "tests/unit/indexing/local/test_access_filter.py",
            "tests/unit/indexing/local/test_search_scope.py",
        ),
    ),
    "cluster": Group(
        modules=(
            "indexing/opensearch/access_filter.py",
            "indexing/opensearch/chunk_lookup.py",
            "indexing/opensearch/query_bodies.py",
        ),
        tests=(
            "tests/unit/indexing/opensearch/test_access_filter.py",
            "tests/unit/indexing/opensearch/test_chunk_lookup.py",
            "tests/unit/indexing/opensearch/test_query_bodies.py",
        ),
    ),
    "leases": Group(
        modules=(
            "backend/store/sync/listings.py",
            "backend/store/sync/runs.py",
            "backend/store/sync/run_transitions.py",
            "backend/store/documents/batches.py",
            "backend/sync/run_lease.py",
        ),
        tests=(
            "tests/unit/backend/store/test_listings.py",
            "tests/unit/backend/store/test_runs.py",
            "tests/unit/backend/store/test_run_transitions.py",
            "tests/unit/backend/store/test_batches.py",
            "tests/unit/backend/sync/test_run_lease.py",
        ),
        selected="not postgresql",
    ),
    "answers": Group(
        modules=("backend/search/retrieval.py", "backend/chat/citations/"),
        tests=(
            "tests/unit/backend/search/test_fusion.py",
            "tests/unit/backend/search/test_merging.py",
            "tests/unit/backend/search/test_retrieval.py",
            "tests/unit/backend/chat/citations",
        ),
    ),
}


def main() -> int:
    parser = ArgumentParser(description="Count the mutants that the tests notice.")
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="by default all")
    parser.add_argument("--only", default="*", help="glob of the names of mutants")
    chosen = parser.parse_args()
    groups = chosen.groups or GROUPS
    below = [name for name in groups if not _run(GROUPS[name], COPIES / name, chosen.only)]
    return int(bool(below))


def _run(group: Group, copy: Path, only: str) -> bool:
    """Return whether every module of the group reaches the bar."""
    _copy_tree(group, copy)
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", only]
    with (copy / "mutmut.log").open("w") as log:
        failed = subprocess.run(command, cwd=copy, stdout=log, stderr=log, check=False).returncode
    if failed:
        raise SystemExit(f"mutmut did not run: see {copy / 'mutmut.log'}")
    scores = [_print_score(copy, module) for module in _files(group)]
    return all(scores)


def _copy_tree(group: Group, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    settings = ConfigParser(interpolation=None)
    settings["mutmut"] = {
        "source_paths": "\n".join(group.modules),
        "pytest_add_cli_args_test_selection": "\n".join(group.tests),
        "pytest_add_cli_args": "\n".join(
            [*ARGUMENTS, *(["-k", group.selected] if group.selected else [])]
        ),
        "timeout_multiplier": str(TIMES),
        "timeout_constant": str(START_SECONDS),
        "also_copy": "\n".join(COPIED),
    }
    with (copy / "setup.cfg").open("w") as file:
        settings.write(file)


def _files(group: Group) -> list[Path]:
    found: list[Path] = []
    for name in group.modules:
        path = ROOT / name
        if not path.exists():
            raise SystemExit(f"{name} is gone: name what it became")
        found += sorted(path.glob("*.py")) if path.is_dir() else [path]
    return [path.relative_to(ROOT) for path in found]


def _print_score(copy: Path, module: Path) -> bool:
    """Print the killed share and the survivors of a module; return whether it reaches the bar."""
    codes = _exit_codes(copy / "mutants" / f"{module}.meta")
    if not codes:
        return True
    surviving = [name for name, code in codes.items() if code in SURVIVED]
    killed = len(codes) - len(surviving)
    stopped = sum(code < 0 for code in codes.values())
    print(f"{killed / len(codes):6.1%} of {len(codes):4} killed, {stopped} by time  {module}")
    print("".join(f"        {name}\n" for name in surviving), end="", flush=True)
    return killed >= BAR * len(codes)


def _exit_codes(record: Path) -> dict[str, int]:
    """Exit codes of pytest by mutant; empty for a module without functions."""
    if not record.exists():
        return {}
    codes = json.loads(record.read_text(encoding="utf-8"))["exit_code_by_key"]
    return {name: code for name, code in codes.items() if code is not None}


if __name__ == "__main__":
    sys.exit(main())
