"""The process that builds the component out of its program, with CPython and its library, and compiles it."""

import sys
from pathlib import Path

from componentize_py import script
from wasmtime.component import Component

from backend.research.calculations.sandbox_process import make_engine


def write_compiled() -> None:
    """Build the program of the first argument, a folder, and write it compiled to the second."""
    guest, target = map(Path, sys.argv[1:])
    component = target.with_suffix(".wasm")
    build_component(guest, component)
    target.write_bytes(bytes(Component.from_file(make_engine(), str(component)).serialize()))


def build_component(guest: Path, component: Path) -> None:
    """Build a component in which every import of WASI is replaced by a trap."""
    where = ["--wit-path", str(guest / "calculation.wit"), "--world", "calculation"]
    what = ["--stub-wasi", "--python-path", str(guest), "--output", str(component), "program"]
    sys.argv = ["componentize-py", *where, "componentize", *what]
    script()
