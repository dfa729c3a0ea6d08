"""The vault: credentials are sealed before they are stored, and opened only to connect to a source.

The keys lie outside of the database, so that a copy of it gives nothing away. Sealing is Fernet of the
library `cryptography` (AES-128-CBC with HMAC-SHA-256): what was altered, or sealed by an unknown key,
is refused.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from pydantic import SecretStr

from connectors.errors import ActionRequiredError

_PLACE = "QUARRY_CREDENTIAL_KEYS, or credentials.key in the home where that is not set"


def new_key() -> str:
    """44 characters that name 32 random bytes."""
    return Fernet.generate_key().decode()


def keys_in(text: str) -> tuple[str, ...]:
    """Keys with commas or blanks between them, newest first."""
    return tuple(text.replace(",", " ").split())


def keys_in_file(path: Path) -> tuple[str, ...]:
    """The keys of a file, newest first; a file with a new key is made where there is none.

    Raises:
        ActionRequiredError: it cannot be made or read.
    """
    try:
        if not path.exists():
            _make(path)
        return keys_in(path.read_text(encoding="ascii", errors="replace"))
    except OSError as error:
        raise ActionRequiredError(
            f"{path}, which holds the keys of the credentials, cannot be used: {error.strerror}."
            " Let Quarry read it, or give the keys in QUARRY_CREDENTIAL_KEYS."
        ) from error


class Vault:
    """Opens what any of its keys has sealed; seals with the first."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raises ActionRequiredError: there is no key, or one is none."""
        if not keys:
            raise ActionRequiredError(f"There is no key for credentials in {_PLACE}.")
        self._fernet = MultiFernet([_fernet(key) for key in keys])

    def seal(self, values: Mapping[str, object]) -> str:
        """JSON values and pydantic's secrets, as text that says nothing about them but their length.

        Raises:
            ValueError: a value that is neither.
        """
        try:
            plain = json.dumps(dict(values), default=_revealed, allow_nan=False)
        except TypeError as error:
            raise ValueError(str(error)) from None
        return self._fernet.encrypt(plain.encode()).decode()

    def open(self, sealed: str) -> dict[str, object]:
        """Raises ActionRequiredError: no key fits."""
        try:
            plain = self._fernet.decrypt(sealed)
        except InvalidToken:
            raise _unopened() from None
        values: dict[str, object] = json.loads(plain)
        return values

    def rotate(self, sealed: str) -> str:
        """The same under the first key.

        Raises:
            ActionRequiredError: no key fits.
        """
        try:
            return self._fernet.rotate(sealed).decode()
        except InvalidToken:
            raise _unopened() from None


def _fernet(key: str) -> Fernet:
    try:
        return Fernet(key)
    except ValueError:  # of the key itself nothing may be told
        raise ActionRequiredError(
            f"One of the keys in {_PLACE} is none. A new one is made by: quarry credentials key"
        ) from None


def _revealed(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    raise TypeError(f"a {type(value).__name__} cannot be part of a credential")


def _unopened() -> ActionRequiredError:
    return ActionRequiredError(
        "A credential cannot be opened: the key that sealed it is not among those in"
        f" {_PLACE}. Put that key back after the newest one, or enter the credential anew."
    )


def _make(path: Path) -> None:
    """Whole or not at all, and once, whoever else makes it at this moment."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        draft.touch(mode=0o600, exist_ok=False)
        draft.write_text(f"{new_key()}\n", encoding="ascii")
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
