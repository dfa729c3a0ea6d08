"""Writes files that other processes read."""

import os
import threading
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that no reader ever sees half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
