"""The secret of a Quarry without accounts, and what is derived from it: links that let a browser in, and sessions.

Every local user can reach a port of this machine; only the person who runs Quarry can read the file of the secret.
Nothing else is stored: a link and a session hold the moment of their issue and a random part, signed with the secret,
so that every process of a server knows them, also after a restart.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias

from backend.store.sync.secret_file import read_or_create
from connectors.errors import NotConfiguredError

LINK_LIFETIME = timedelta(hours=1)
SESSION_LIFETIME = timedelta(days=30)

_BYTES = 32
_SHORTEST = 32
"""Characters; a generated secret has 43."""

Purpose: TypeAlias = Literal["link", "session", "csrf", "cookie"]
"""What is signed for one purpose is invalid for every other."""


@dataclass(frozen=True, slots=True)
class MachineSecret:
    value: str = field(repr=False)

    def is_equal(self, given: str) -> bool:
        """Compare in a time that reveals nothing of the secret, not even its length."""
        return hmac.compare_digest(_digest(given), _digest(self.value))

    def make_link_code(self, now: datetime | None = None) -> str:
        """Return a code for the address of a link, valid for `LINK_LIFETIME`."""
        return self._issue("link", now)

    def is_link_code(self, code: str, now: datetime | None = None) -> bool:
        return self._is_valid("link", code, LINK_LIFETIME, now)

    def make_session(self, now: datetime | None = None) -> str:
        """Return the value of a session cookie, valid for `SESSION_LIFETIME`."""
        return self._issue("session", now)

    def is_session(self, session: str, now: datetime | None = None) -> bool:
        return self._is_valid("session", session, SESSION_LIFETIME, now)

    def csrf_token(self, session: str) -> str:
        """Return what changing requests of a session carry, which a page of another origin cannot know."""
        return self._sign("csrf", session)

    @property
    def cookie_name(self) -> str:
        """A name of its own: cookies of an address are shared by all its ports, and with them by other Quarrys."""
        return self.name_cookie("session")

    def name_cookie(self, purpose: str) -> str:
        return f"quarry-{purpose}-{self._sign('cookie', '')[:8]}"

    def _issue(self, purpose: Purpose, now: datetime | None) -> str:
        issued = int((now or datetime.now(UTC)).timestamp())
        claim = f"{issued}.{secrets.token_hex(16)}"
        return f"{claim}.{self._sign(purpose, claim)}"

    def _is_valid(
        self, purpose: Purpose, signed: str, lifetime: timedelta, now: datetime | None
    ) -> bool:
        claim, _, signature = signed.rpartition(".")
        if not hmac.compare_digest(
            signature.encode(errors="replace"), self._sign(purpose, claim).encode()
        ):
            return False
        end = datetime.fromtimestamp(int(claim.partition(".")[0]), UTC) + lifetime
        return (now or datetime.now(UTC)) < end

    def _sign(self, purpose: Purpose, text: str) -> str:
        message = f"{purpose}:{text}".encode(errors="replace")
        return hmac.new(self.value.encode(), message, hashlib.sha256).hexdigest()


def read_machine_secret(path: Path) -> MachineSecret:
    """Read the secret; create its file where there is none.

    Raises:
        NotConfiguredError: the file cannot be used, others may read it, or it holds no secret.
    """
    value = read_or_create(path, lambda: secrets.token_urlsafe(_BYTES)).strip()
    if path.stat().st_mode & 0o077:
        raise NotConfiguredError(
            f"{path} holds the secret of this Quarry, and other users of this machine may use the file."
            " Delete it: the next start makes a new secret, and all sessions end."
        )
    if len(value) < _SHORTEST:
        raise NotConfiguredError(
            f"{path} should hold the secret of this Quarry, but what it holds is too short."
            " Delete it: the next start makes a new secret."
        )
    return MachineSecret(value)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
