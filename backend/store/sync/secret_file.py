"""A file that holds one secret, which only its owner may read."""

import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from connectors.errors import NotConfiguredError


def read_or_create(path: Path, make: Callable[[], str]) -> str:
    """Read a file of ASCII; create it with what `make` returns if it does not exist.

    Raises:
        NotConfiguredError: it cannot be created or read.
    """
    try:
        if not path.exists():
            _create(path, make())
        return path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise NotConfiguredError(
            f"{path} holds a secret and cannot be used: {error.strerror}. Allow Quarry to read it."
        ) from error


def _create(path: Path, secret: str) -> None:
    """Create the file atomically; of several processes that do so at once, the first wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(f"{secret}\n", encoding="ascii")
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
