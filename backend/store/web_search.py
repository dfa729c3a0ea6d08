"""The providers of web search that admins set, in the order in which they are asked, and the rules of the web."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from sqlalchemy import Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from backend.store.database import Database
from backend.store.schema.web_search_tables import web_providers, web_rules
from connectors.errors import ConflictError, NotFoundError
from indexing.text.normalization import is_storable


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderValues:
    """What an admin says of a provider, its place aside."""

    name: str
    kind: str
    settings: Mapping[str, object]
    """JSON values."""
    sealed_credential: str | None = field(repr=False)
    is_enabled: bool
    per_minute: int | None
    """The most searches a minute; None: as its kind says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A time during which a provider is not asked."""

    until: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProvider:
    id: int
    values: ProviderValues
    wait: Wait | None
    """May have passed."""

    @property
    def name(self) -> str:
        return self.values.name


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRules:
    is_on: bool
    allowed_domains: tuple[str, ...]
    """Empty: all."""
    blocked_domains: tuple[str, ...]
    keeps_internal_names: bool
    """Whether names and codes of internal documents are kept out of queries."""


_SELECT_PROVIDERS = select(web_providers).order_by(web_providers.c.position, web_providers.c.id)


def list_providers(database: Database) -> list[StoredProvider]:
    """Return all providers in their order."""
    with database.reading() as connection:
        return [_to_provider(row) for row in connection.execute(_SELECT_PROVIDERS)]


def find(database: Database, name: str) -> StoredProvider:
    """Return the provider of a name. Raises NotFoundError: there is none of this name."""
    named = _SELECT_PROVIDERS.where(web_providers.c.name == name)
    if is_storable(name):
        with database.reading() as connection:
            row = connection.execute(named).first()
        if row is not None:
            return _to_provider(row)
    raise NotFoundError(
        f"There is no provider of web search named {name!r}. To list them: quarry web providers list"
    )


def add(database: Database, values: ProviderValues) -> None:
    """Add a provider behind all others. Raises ConflictError: there is one of this name."""
    last = select(func.coalesce(func.max(web_providers.c.position), 0) + 1).scalar_subquery()
    try:
        with database.writing() as connection:
            connection.execute(insert(web_providers).values(**_to_row(values), position=last))
    except IntegrityError as error:
        raise ConflictError(
            f"There is a provider of web search named {values.name!r} already. Choose another name."
        ) from error


def change(database: Database, provider_id: int, values: ProviderValues) -> None:
    """Replace what is set of a provider; it may be asked at once."""
    changed = update(web_providers).where(web_providers.c.id == provider_id)
    row = {**_to_row(values), "waits_until": None, "wait_reason": None}
    with database.writing() as connection:
        connection.execute(changed.values(row))


def remove(database: Database, provider_id: int) -> None:
    with database.writing() as connection:
        connection.execute(delete(web_providers).where(web_providers.c.id == provider_id))


def set_order(database: Database, provider_ids: Sequence[int]) -> None:
    """Have the providers asked in this order."""
    with database.writing() as connection:
        for position, provider_id in enumerate(provider_ids, 1):
            moved = update(web_providers).where(web_providers.c.id == provider_id)
            connection.execute(moved.values(position=position))


def set_wait(database: Database, provider_id: int, wait: Wait | None) -> None:
    """Note until when a provider is not asked; None: it may be asked at once."""
    changed = update(web_providers).where(web_providers.c.id == provider_id)
    until, reason = (wait.until, wait.reason) if wait else (None, None)
    with database.writing() as connection:
        connection.execute(changed.values(waits_until=until, wait_reason=reason))


def read_rules(database: Database) -> WebRules:
    with database.reading() as connection:
        row = connection.execute(select(web_rules)).one()
    return WebRules(
        is_on=row.is_on,
        allowed_domains=tuple(row.allowed_domains),
        blocked_domains=tuple(row.blocked_domains),
        keeps_internal_names=row.keeps_internal_names,
    )


def save_rules(database: Database, rules: WebRules) -> None:
    lists = {
        "allowed_domains": list(rules.allowed_domains),
        "blocked_domains": list(rules.blocked_domains),
    }
    with database.writing() as connection:
        connection.execute(update(web_rules).values(**{**asdict(rules), **lists}))


def reencrypt_credentials(database: Database, rotate: Callable[[str], str]) -> int:
    """Replace each sealed credential by its rotation, and return their number.

    Raises:
        NotConfiguredError: one of them cannot be decrypted.
    """
    sealed = select(web_providers.c.id, web_providers.c.credential)
    with database.writing() as connection:
        held = connection.execute(sealed.where(web_providers.c.credential.is_not(None))).all()
        for provider_id, credential in held:
            again = update(web_providers).where(web_providers.c.id == provider_id)
            connection.execute(again.values(credential=rotate(credential)))
    return len(held)


def _to_row(values: ProviderValues) -> dict[str, object]:
    return {
        "name": values.name,
        "kind": values.kind,
        "settings": dict(values.settings),
        "credential": values.sealed_credential,
        "is_enabled": values.is_enabled,
        "per_minute": values.per_minute,
    }


def _to_provider(row: Row[tuple[object, ...]]) -> StoredProvider:
    found = row._mapping  # noqa: SLF001 (the public name of a row's mapping)
    until = found["waits_until"]
    return StoredProvider(
        id=found["id"],
        values=ProviderValues(
            name=found["name"],
            kind=found["kind"],
            settings=found["settings"],
            sealed_credential=found["credential"],
            is_enabled=found["is_enabled"],
            per_minute=found["per_minute"],
        ),
        wait=None if until is None else Wait(until=until, reason=found["wait_reason"] or ""),
    )
