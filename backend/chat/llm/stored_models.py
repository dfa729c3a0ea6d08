"""The language models that admins set. Each action is one transaction that includes its audit entry; no entry holds a key."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from backend.chat.llm.model_settings import ModelSettings, SettingNames
from backend.store import audit
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.llm import language_models
from backend.store.llm.language_models import ModelRole, ModelValues, StoredModel
from backend.store.sync.credential_vault import Vault
from connectors.errors import InvalidInputError
from connectors.http_client.address_guard import (
    AddressNotAllowedError,
    find_forbidden,
    validate_url,
)
from indexing.text.normalization import is_storable

SMALLEST_WINDOW, LARGEST_WINDOW = 4_000, 100_000_000
LONGEST_TEXT = 500
"""Of an address, and of the id of a model."""
LONGEST_KEY = 10_000
HIGHEST_PRICE = 1_000_000.0
_NAME = re.compile(r"[\w@][\w.@-]{0,99}")
"""At the command line, what begins with a hyphen is an option."""
_KEY = "key"
"""Of the sealed value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """What is to be changed of a model; what is None stays as it is."""

    values: Mapping[str, Any]
    """By the names of `ModelValues`."""
    key: str | None = None
    """An empty one removes the key."""
    roles: frozenset[ModelRole] | None = None


@dataclass(frozen=True, slots=True)
class ModelService:
    """All that can be done to the language models of a database."""

    database: Database
    open_vault: Callable[[], Vault]
    actor: Actor = audit.OWNER

    def add(self, values: ModelValues, key: str | None, roles: frozenset[ModelRole]) -> None:
        """Add a model. Raises InvalidInputError: a value is not valid; ConflictError: there is a model of this name."""
        values = _validate(values)
        sealed = self._seal(key)
        with self.database.transaction() as database:
            language_models.add(database, values, sealed)
            added = language_models.find(database, values.name)
            self._give_roles(database, added, roles)
            details = {**asdict(values), "has_key": bool(sealed), "roles": sorted(roles)}
            self._record(database, "add_model", values.name, details)

    def change(self, name: str, change: ModelChange) -> StoredModel:
        """Change a model, and return it. The next question that is asked uses it so.

        Raises:
            NotFoundError: there is none of this name.
            InvalidInputError: a value is not valid, or the key would be sent to another server.
            ConflictError: another model has the new name.
        """
        with self.database.transaction() as database:
            before = language_models.find(database, name)
            values = _validate(replace(before.values, **change.values))
            _check_key_stays(before, values, change.key)
            sealed = before.sealed_key if change.key is None else self._seal(change.key)
            language_models.change(database, before.id, values, sealed)
            if change.roles is not None:
                self._give_roles(database, before, change.roles)
            after = language_models.find(database, values.name)
            self._record(database, "change_model", name, _describe_change(before, after, change))
            return after

    def use(self, name: str, role: ModelRole) -> None:
        """Let a model have a role besides those that it has.

        Raises:
            NotFoundError: there is none of this name.
        """
        with self.database.transaction() as database:
            model = language_models.find(database, name)
            before, after = model.roles, model.roles | {role}
            self._give_roles(database, model, after)
            details = {"role": role, "before": sorted(before), "after": sorted(after)}
            self._record(database, "use_model", name, details)

    def remove(self, name: str) -> None:
        """Remove a model. Raises NotFoundError: there is none of this name."""
        with self.database.transaction() as database:
            model = language_models.find(database, name)
            language_models.remove(database, model.id)
            self._record(database, "remove_model", name, {"roles": sorted(model.roles)})

    def _give_roles(
        self, database: Database, model: StoredModel, roles: frozenset[ModelRole]
    ) -> None:
        """Let a model have these roles and no others. A model that loses one of them by that has an entry of its own."""
        for other in language_models.list_models(database):
            for role in sorted(other.roles & roles if other.id != model.id else ()):
                self._record(
                    database, "take_model_role", other.name, {"role": role, "to": model.name}
                )
        language_models.set_roles(database, model.id, roles)

    def _seal(self, key: str | None) -> str | None:
        if not key:
            return None
        if len(key) > LONGEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
            raise InvalidInputError("The key contains an invalid character. Enter it again.")
        return self.open_vault().seal({_KEY: key})

    def _record(
        self, database: Database, action: str, name: str, details: Mapping[str, object]
    ) -> None:
        audit.record(database, action, f"model:{name}", details, self.actor)


def open_key(model: StoredModel, open_vault: Callable[[], Vault]) -> str | None:
    """Return the key of a model, None where it has none. Raises NotConfiguredError: it cannot be decrypted."""
    if model.sealed_key is None:
        return None
    return str(open_vault().open(model.sealed_key)[_KEY])


def make_settings(model: StoredModel, key: str | None) -> ModelSettings:
    values = model.values
    return ModelSettings(
        base_url=values.base_url,
        model=values.model,
        api_key=key,
        context_window=values.context_window,
        name=values.name,
        calls_tools=values.calls_tools,
        sees_pictures=values.sees_pictures,
        reasons=values.reasons,
        names=SettingNames.of_stored(values.name),
    )


def _validate(values: ModelValues) -> ModelValues:
    """Return the values with their address as it is used.

    Raises:
        InvalidInputError: one is not valid.
    """
    if not _NAME.fullmatch(values.name):
        raise InvalidInputError(
            "The name of a model has up to 100 letters, digits and the signs . _ @ - and does not begin with a dot or a hyphen."
        )
    model = values.model.strip()
    if not model or len(model) > LONGEST_TEXT or not model.isprintable() or not is_storable(model):
        raise InvalidInputError("Give the id that the model has at its endpoint, on one line.")
    if not SMALLEST_WINDOW <= values.context_window <= LARGEST_WINDOW:
        raise InvalidInputError(f"The context window has at least {SMALLEST_WINDOW:,} tokens.")
    for price in (values.input_price, values.output_price):
        if price is not None and not (math.isfinite(price) and 0 <= price <= HIGHEST_PRICE):
            raise InvalidInputError("A price is a number that is not negative.")
    return replace(values, model=model, base_url=_validate_address(values.base_url))


def _validate_address(text: str) -> str:
    """Validate a base URL: an admin may name private addresses, but none at which a machine gets its credentials."""
    try:
        url = validate_url(text.strip()[: LONGEST_TEXT + 1])
    except AddressNotAllowedError as error:
        raise InvalidInputError(f"The base URL is not valid: {error}.") from error
    if len(str(url)) > LONGEST_TEXT or url.query:
        raise InvalidInputError(
            "The base URL is too long, or has a question mark in it. It usually ends in /v1."
        )
    if reason := find_forbidden(url.host):
        raise InvalidInputError(f"The base URL is not valid: {url.host} {reason}.")
    return str(url).rstrip("/")


def _check_key_stays(before: StoredModel, values: ModelValues, key: str | None) -> None:
    """Refuse to send a key that nobody can read any more to another server than it was entered for."""
    old, new = validate_url(before.values.base_url), validate_url(values.base_url)
    is_moved = (old.scheme, old.host, old.port) != (new.scheme, new.host, new.port)
    if is_moved and before.sealed_key and key is None:
        raise InvalidInputError(
            "The base URL leads to another server. Enter the key again, so that none is sent there by mistake."
        )


def _describe_change(
    before: StoredModel, after: StoredModel, change: ModelChange
) -> dict[str, object]:
    old, new = asdict(before.values), asdict(after.values)
    names = [name for name in new if old[name] != new[name]]
    details: dict[str, object] = {
        "before": {name: old[name] for name in names},
        "after": {name: new[name] for name in names},
    }
    if change.key is not None:
        details["key"] = "replaced" if change.key else "removed"
    if before.roles != after.roles:
        details["roles"] = {"before": sorted(before.roles), "after": sorted(after.roles)}
    return details
