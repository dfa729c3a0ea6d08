"""How often somebody may try to sign in.

Tries are counted by account and by address. A device from which somebody has signed in to the account before is
counted by itself, so that a stranger who tries many passwords does not lock the owner of the account out.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from backend.access.networks import find_network
from backend.access.random_secrets import digest
from backend.store.accounts import sign_in_failures
from backend.store.database import Database

PERIOD = timedelta(minutes=15)
MOST_BY_ACCOUNT = 10
MOST_BY_DEVICE = 10
MOST_BY_ADDRESS = 100
"""More than one person signs in from one address: an office has one."""


class TooManyFailuresError(Exception):
    """Neither the password nor whether there is such an account has been looked at."""


def limits_of_stranger(email: str, address: str | None) -> dict[str, int]:
    """Return how many failures are too many, by what they are counted under."""
    by_account = {digest(f"account:{email}"): MOST_BY_ACCOUNT}
    network = find_network(address)
    return by_account | ({digest(f"address:{network}"): MOST_BY_ADDRESS} if network else {})


def limits_of_device(email: str, device: str) -> dict[str, int]:
    """Return the same for a device from which somebody has signed in to the account before."""
    return {digest(f"device:{device}:{email}"): MOST_BY_DEVICE}


def count_failure(database: Database, limits: Mapping[str, int], now: datetime) -> Sequence[int]:
    """Count a failure before it has happened, so that tries at the same time see each other.

    Returns:
        What `forget_failure` takes if the sign-in does not fail.

    Raises:
        TooManyFailuresError: so many failed before that this one is not tried.
    """
    sign_in_failures.remove_before(database, now - PERIOD)
    counted = sign_in_failures.add(database, limits, now)
    counts = sign_in_failures.count(database, limits, now - PERIOD)
    if any(counts.get(key, 0) > most for key, most in limits.items()):
        forget_failure(database, counted)
        raise TooManyFailuresError
    return counted


def forget_failure(database: Database, counted: Sequence[int]) -> None:
    sign_in_failures.remove(database, counted)
