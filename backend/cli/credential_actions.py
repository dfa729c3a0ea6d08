"""Sealing the credentials of sources under the newest key."""

from backend.container import Container
from backend.schemas.models import Wire
from backend.store import sources


class ResealedWire(Wire):
    resealed: int


def rotate(container: Container) -> ResealedWire:
    """Seal every credential anew; afterwards none needs an older key.

    Raises:
        ActionRequiredError: no key opens one of them; then none is changed.
    """
    return ResealedWire(resealed=sources.reseal(container.database, container.vault.rotate))
