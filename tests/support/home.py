"""The command, run as a process of its own in a home of its own."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.models import MODEL_CACHE

QUARRY = Path(sys.executable).parent / "quarry"
CHECKOUT = Path(__file__).parents[2]
"""What the command imports: the environment may belong to another copy of the repository."""


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Home:
    path: Path

    def environment(self, **settings: str) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.path),
            "PYTHONPATH": str(CHECKOUT),
            "QUARRY_HOME": str(self.path / "state"),
            "QUARRY_MODELS": str(MODEL_CACHE),
            "HF_HUB_OFFLINE": "1",
            # Sources are synced when a test says so.
            "QUARRY_WORKERS": "false",
            **settings,
        }

    def quarry(self, *arguments: str, **settings: str) -> Run:
        done = subprocess.run(
            [str(QUARRY), *arguments],
            env=self.environment(**settings),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)
