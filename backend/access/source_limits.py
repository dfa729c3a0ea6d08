"""What sources of source managers may reach besides the public internet: what an admin allows, by default nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from connectors.connector import ServerAccess
from connectors.http_client.address_guard import (
    PUBLIC_ONLY,
    AllowedNetworks,
    find_uncovered,
    parse_allowed_networks,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLimits:
    roots: tuple[Path, ...] = ()
    """Folders of the server that may be read, with all below them."""
    networks: AllowedNetworks = PUBLIC_ONLY
    home: Path | None = None
    """Quarry's own folder, which no root opens: its secrets are in it."""

    @classmethod
    def parse(cls, roots: str, addresses: str, home: Path) -> Self:
        """Parse lists that are separated by commas.

        Raises:
            ValueError: a root is not an absolute path, or an address is none.
        """
        folders = tuple(map(Path, _split(roots)))
        if wrong := next((str(each) for each in folders if not each.is_absolute()), None):
            raise ValueError(f"{wrong!r} is not an absolute path")
        networks = parse_allowed_networks(_split(addresses))
        return cls(roots=folders, networks=networks, home=home)

    def find_objection(self, access: ServerAccess) -> str | None:
        """Say why a source may not reach this. Links are followed as they are now.

        A path is not repeated: a part of it may be Quarry's own, such as its home folder for ~.
        """
        if self._find_outside(access.paths) or self._find_outside(access.find_links()):
            return (
                "The source would read what is not in a folder of the server that source managers may read, or leads"
                " out of it. Admins allow folders by QUARRY_SOURCE_ROOTS."
            )
        if uncovered := find_uncovered(access.private_hosts, self.networks):
            return (
                f"private_hosts must not contain {uncovered}: source managers may contact only addresses of private"
                " networks that admins allow by QUARRY_SOURCE_ADDRESSES."
            )
        return None

    def _find_outside(self, paths: Iterable[Path]) -> Path | None:
        return next((path for path in paths if not self._may_read(path)), None)

    def _may_read(self, path: Path) -> bool:
        try:
            target = path.resolve()
            return not self._meets_home(target) and any(
                target.is_relative_to(root.resolve()) for root in self.roots
            )
        except (OSError, RuntimeError, ValueError):
            # Its links form a circle, or no path can be like this.
            return False

    def _meets_home(self, target: Path) -> bool:
        home = self.home.resolve() if self.home else None
        return home is not None and (target.is_relative_to(home) or home.is_relative_to(target))


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
