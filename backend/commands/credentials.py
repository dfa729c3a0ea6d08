"""Sealing the credentials of sources under the newest key."""

from backend.assembly import Quarry
from backend.store import sources
from backend.wire import Wire


class ResealedWire(Wire):
    resealed: int


def rotate(quarry: Quarry) -> ResealedWire:
    """Seal every credential anew; afterwards none needs an older key.

    Raises:
        AskTheOwner: no key opens one of them; then none is changed.
    """
    return ResealedWire(resealed=sources.reseal(quarry.database, quarry.vault.rotate))
