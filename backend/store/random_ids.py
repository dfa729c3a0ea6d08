"""Ids of what an address names, where the address must tell nothing and nobody can guess it."""

import secrets

_BYTES = 16


def make_random_id() -> str:
    """Return 128 random bits, less a few, as 22 characters that an address may contain.

    The first is no hyphen: commands are given ids, and what begins with one is an option.
    """
    while True:
        made = secrets.token_urlsafe(_BYTES)
        if not made.startswith("-"):
            return made
