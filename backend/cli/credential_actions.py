"""Sealing the credentials of sources under the newest key."""

from backend.container import Quarry
from backend.schemas.models import Wire
from backend.store import sources


class ResealedWire(Wire):
    resealed: int


def rotate(quarry: Quarry) -> ResealedWire:
    """Seal every credential anew; afterwards none needs an older key.

    Raises:
        ActionRequiredError: no key opens one of them; then none is changed.
    """
    return ResealedWire(resealed=sources.reseal(quarry.database, quarry.vault.rotate))
