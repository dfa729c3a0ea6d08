"""What can a newcomer try Quarry on? The handbook of Karsthal, a company that does not exist."""

from importlib.resources import files
from pathlib import Path


def handbook() -> Path:
    """Return the folder of the sample handbook: some forty documents and an `access.yaml`.

    Raises:
        FileNotFoundError: Quarry runs from where its files do not lie in a folder (a zip archive).
    """
    folder = files("backend.sample") / "handbook"
    if not isinstance(folder, Path):
        raise FileNotFoundError(
            "the sample handbook needs Quarry installed in a folder; install it with pip or uv"
        )
    return folder
