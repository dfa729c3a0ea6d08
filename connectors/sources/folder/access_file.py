"""Load the access rules of a folder from its `access.yaml`."""

import os
import stat
from pathlib import Path

from connectors.errors import SourceError
from connectors.files.access_rules import OPEN_TO_ALL, AccessRules, parse_access_rules

ACCESS_FILE = "access.yaml"

_SIMILAR_NAMES = ("access.yml", "Access.yaml", "Access.yml", "ACCESS.YAML")


def load_access_rules(root: Path) -> AccessRules:
    """Load the rules; without an access file everybody may read the folder.

    Raises:
        SourceError: the access file cannot be read, is malformed, or has a similar but wrong name.
    """
    path = root / ACCESS_FILE
    if not os.path.lexists(path):
        _check_similar_names(root)
        return OPEN_TO_ALL
    try:
        # Reading a pipe or a device would block for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise SourceError(f"{path} must be a file")
        return parse_access_rules(path.read_bytes(), str(path))
    except OSError as error:
        raise SourceError(
            f"{path} cannot be read ({error.strerror}): without it Quarry does not know who may"
            " read the folder"
        ) from error


def _check_similar_names(root: Path) -> None:
    """Refuse a misspelt access file: without this check it would leave the folder open to everybody."""
    for name in _SIMILAR_NAMES:
        if os.path.lexists(root / name):
            raise SourceError(f"{root / name}: rename the file to {ACCESS_FILE}")
