"""The vault: credentials are encrypted before they are stored, and decrypted only to connect to a source.

The keys are kept outside of the database, so that a copy of it reveals nothing. Encryption is Fernet of the
library `cryptography` (AES-128-CBC with HMAC-SHA-256), which refuses values that were altered or that an
unknown key encrypted.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from pydantic import SecretStr

from backend.store.sync.secret_file import read_or_create
from connectors.errors import NotConfiguredError

_PLACE = "QUARRY_CREDENTIAL_KEYS (or credentials.key)"


def new_key() -> str:
    """Return 32 random bytes as 44 characters."""
    return Fernet.generate_key().decode()


def keys_in(text: str) -> tuple[str, ...]:
    """Split keys at commas and blanks; the newest comes first."""
    return tuple(text.replace(",", " ").split())


def keys_in_file(path: Path) -> tuple[str, ...]:
    """Read the keys of a file, newest first; create it with a new key if it does not exist.

    Raises:
        NotConfiguredError: it cannot be created or read.
    """
    try:
        return keys_in(read_or_create(path, new_key))
    except NotConfiguredError as error:
        raise NotConfiguredError(f"{error} Or set the keys in QUARRY_CREDENTIAL_KEYS.") from error


class Vault:
    """Encrypts with the first key; decrypts with any of them."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Take the keys of the vault. Raises NotConfiguredError: there is no key, or one is invalid."""
        if not keys:
            raise NotConfiguredError(f"There is no key in {_PLACE}.")
        self._fernet = MultiFernet([_fernet(key) for key in keys])

    def seal(self, values: Mapping[str, object]) -> str:
        """Encrypt JSON values and pydantic's secrets; the text reveals their length alone.

        Raises:
            ValueError: a value that is neither.
        """
        try:
            plain = json.dumps(dict(values), default=_reveal, allow_nan=False)
        except TypeError as error:
            raise ValueError(str(error)) from None
        return self._fernet.encrypt(plain.encode()).decode()

    def open(self, sealed: str) -> dict[str, object]:
        """Decrypt what was sealed. Raises NotConfiguredError: no key fits."""
        try:
            plain = self._fernet.decrypt(sealed)
        except InvalidToken:
            raise _unknown_key() from None
        values: dict[str, object] = json.loads(plain)
        return values

    def rotate(self, sealed: str) -> str:
        """Encrypt a sealed value again, with the first key.

        Raises:
            NotConfiguredError: no key fits.
        """
        try:
            return self._fernet.rotate(sealed).decode()
        except InvalidToken:
            raise _unknown_key() from None


def _fernet(key: str) -> Fernet:
    try:
        return Fernet(key)
    except ValueError:  # its message could repeat the key
        raise NotConfiguredError(
            f"A key in {_PLACE} is invalid. To create a new one: quarry credentials key"
        ) from None


def _reveal(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    raise TypeError(f"a {type(value).__name__} cannot be part of a credential")


def _unknown_key() -> NotConfiguredError:
    return NotConfiguredError(
        f"A credential cannot be decrypted: its key is not in {_PLACE}."
        " Add that key after the newest one, or enter the credential again."
    )
