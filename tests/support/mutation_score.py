"""Print how many mutants of each module the tests kill, after `mutmut run`; exit with 1 below the bar.

    .venv/bin/python -m tests.support.mutation_score

A mutant is a module with one operator, constant or argument changed. One that no test notices is
listed; `mutmut show NAME` prints its difference.
"""

import json
import sys
import tomllib
from pathlib import Path

BAR = 0.9
"""Killed share of all mutants of a module."""
ROOT = Path(__file__).parents[2]
SURVIVED = {0, 33}
"""Exit codes of pytest's runs as mutmut keeps them: all tests passed; no test calls the function."""


def main() -> int:
    below = False
    for module in _modules():
        codes = _exit_codes(module)
        surviving = [name for name, code in codes.items() if code in SURVIVED]
        if codes:
            killed = len(codes) - len(surviving)
            below |= killed < BAR * len(codes)
            print(f"{killed / len(codes):6.1%} of {len(codes):4} killed  {module}")
            print("".join(f"        {name}\n" for name in surviving), end="")
    return int(below)


def _modules() -> list[Path]:
    """The modules that `[tool.mutmut]` names, by itself or by their folder."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = []
    for source in settings["tool"]["mutmut"]["source_paths"]:
        path = ROOT / source
        if not path.exists():
            raise SystemExit(f"pyproject.toml names {source}, which is gone: name what it became")
        found += sorted(path.glob("*.py")) if path.is_dir() else [path]
    return [path.relative_to(ROOT) for path in found]


def _exit_codes(module: Path) -> dict[str, int]:
    """Exit codes of pytest by mutant; empty for a module that was not run."""
    record = ROOT / "mutants" / f"{module}.meta"
    if not record.exists():
        return {}
    codes = json.loads(record.read_text(encoding="utf-8"))["exit_code_by_key"]
    return {name: code for name, code in codes.items() if code is not None}


if __name__ == "__main__":
    sys.exit(main())
