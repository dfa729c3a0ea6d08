"""A command as it prints on a terminal."""

import io
import sys
from pathlib import Path

import pytest

from backend.cli import app


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_on_terminal(monkeypatch: pytest.MonkeyPatch, home: Path, *arguments: str) -> str:
    """Return what a command that succeeds prints on a terminal; `home` is that of Quarry."""
    terminal = _Terminal()
    with monkeypatch.context() as patched:
        patched.setenv("QUARRY_HOME", str(home))
        patched.setattr(sys, "stdout", terminal)
        app([*arguments], standalone_mode=False)
    return terminal.getvalue()
