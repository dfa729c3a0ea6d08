"""What a source reaches besides the public internet: files of the server, and addresses in its networks.

Every kind of source states it, so that a source of somebody who may not read the server is checked by that alone,
whatever its kind.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


def find_no_links() -> Iterator[Path]:
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    paths: tuple[Path, ...] = ()
    """Files and folders of the server that are read or written."""
    private_hosts: tuple[str, ...] = ()
    """Hosts, addresses and networks that may be contacted although they are not public."""
    find_links: Callable[[], Iterator[Path]] = find_no_links
    """Yields what files at the paths lead to besides. Called only where the paths themselves are allowed."""


FindObjection: TypeAlias = Callable[[ServerAccess], str | None]
"""Returns why a source may not reach this, as a sentence; None if it may."""


def allow_all(access: ServerAccess) -> None:
    """Object to nothing, for a source of people who may read the server."""
    del access
