"""What admins do to web search, behind the command line, the API and the pages.

Each change is one transaction that includes its audit entry; no entry holds a credential.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from types import MappingProxyType

from backend.store import audit, web_search
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.sync.credential_vault import Vault
from backend.store.web_search import ProviderValues, StoredProvider, WebRules
from backend.web_search.domains import parse_domain
from backend.web_search.providers.registry import (
    InvalidProviderError,
    get_provider_kind,
    validate_provider,
)
from backend.web_search.search import WebSearch
from backend.web_search.search_outcome import WebOutcome
from connectors.errors import InvalidInputError
from connectors.registry import FieldError
from indexing.runtime.deadline import Deadline

MOST_DOMAINS = 1_000
MOST_PER_MINUTE = 10_000
TEST_QUERY = "weather"
TEST_SECONDS = 20.0
TEST_RESULTS = 3
_SENT_TO = ("api_url", "proxy")
"""Settings that say where a credential is sent."""
_SETTINGS = "web:settings"
_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderChange:
    """What is to be changed of a provider; what is None stays as it is.

    Attributes:
        settings: Replaces all settings.
        credential: Replaces the whole credential; an empty one removes it.
        per_minute: 0 restores what its kind says.
    """

    settings: Mapping[str, object] | None = None
    credential: Mapping[str, object] | None = field(default=None, repr=False)
    is_enabled: bool | None = None
    per_minute: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesChange:
    """What is to be changed of the rules of the web; what is None stays as it is."""

    is_on: bool | None = None
    allowed_domains: Sequence[str] | None = None
    blocked_domains: Sequence[str] | None = None
    keeps_internal_names: bool | None = None


@dataclass(frozen=True, slots=True)
class WebSearchService:
    """All methods that take the name of a provider raise NotFoundError where there is none of this name."""

    database: Database
    open_vault: Callable[[], Vault]
    web: WebSearch
    actor: Actor = audit.OWNER

    def list_providers(self) -> list[StoredProvider]:
        """Return all providers in the order in which they are asked."""
        return web_search.list_providers(self.database)

    def find(self, name: str) -> StoredProvider:
        return web_search.find(self.database, name)

    def read_rules(self) -> WebRules:
        return web_search.read_rules(self.database)

    def add(
        self,
        kind: str,
        settings: Mapping[str, object],
        credential: Mapping[str, object] = _NOTHING,
        name: str | None = None,
    ) -> StoredProvider:
        """Add a provider, which is asked after all others. Without a name, it is named after its kind.

        Raises:
            InvalidProviderError: the name, the settings or the credential are not valid; it names each fault.
            InvalidInputError: there is no such kind.
            ConflictError: there is a provider of this name.
        """
        get_provider_kind(kind)
        with self.database.transaction() as database:
            chosen = name or _choose_name(kind, web_search.list_providers(database))
            checked = validate_provider(kind, chosen, settings, credential)
            values = ProviderValues(
                name=checked.name,
                kind=kind,
                settings=checked.settings,
                sealed_credential=self._seal(checked.credential),
                is_enabled=True,
                per_minute=None,
            )
            web_search.add(database, values)
            details = {"kind": kind, "has_credential": bool(checked.credential)}
            self._record(database, "add_web_provider", chosen, details)
            return web_search.find(database, chosen)

    def edit(self, name: str, change: ProviderChange) -> StoredProvider:
        """Change a provider, and return it. The next search asks it so, also where it had to wait.

        Raises:
            InvalidProviderError: the settings or the credential are not valid, or would be sent to another server.
            NotConfiguredError: no key opens the stored credential.
        """
        with self.database.transaction() as database:
            before = web_search.find(database, name)
            after = self._apply(before, change)
            web_search.change(database, before.id, after)
            self._record(
                database,
                "change_web_provider",
                name,
                _describe_change(change, before.values, after),
            )
            return web_search.find(database, name)

    def _apply(self, before: StoredProvider, change: ProviderChange) -> ProviderValues:
        values = before.values
        if change.settings is not None or change.credential is not None:
            settings = values.settings if change.settings is None else change.settings
            credential = change.credential
            if credential is None:
                credential = open_credential(values, self.open_vault)
            checked = validate_provider(values.kind, before.name, settings, credential)
            if change.credential is None:
                _check_credential_stays(values, checked.settings)
            else:
                values = replace(values, sealed_credential=self._seal(checked.credential))
            values = replace(values, settings=checked.settings)
        if change.is_enabled is not None:
            values = replace(values, is_enabled=change.is_enabled)
        if change.per_minute is not None:
            values = replace(values, per_minute=_check_limit(change.per_minute))
        return values

    def remove(self, name: str) -> None:
        with self.database.transaction() as database:
            before = web_search.find(database, name)
            web_search.remove(database, before.id)
            self._record(
                database, "remove_web_provider", name, {"before": _describe(before.values)}
            )

    def move(self, name: str, position: int) -> None:
        """Have a provider asked at this place, of which 1 is the first; one behind the last is the last."""
        with self.database.transaction() as database:
            moved = web_search.find(database, name)
            order = [one.id for one in web_search.list_providers(database)]
            before = order.index(moved.id) + 1
            order.remove(moved.id)
            order.insert(max(position, 1) - 1, moved.id)
            web_search.set_order(database, order)
            place = order.index(moved.id) + 1
            self._record(database, "move_web_provider", name, {"before": before, "after": place})

    def test(self, name: str, query: str, deadline: Deadline) -> WebOutcome:
        """Ask one provider, whether the web is on or not."""
        provider = self.find(name)
        outcome = self.web.test(provider, query, TEST_RESULTS, deadline)
        (attempt,) = outcome.attempts
        failure = attempt.failure
        details = {"outcome": failure.kind if failure else f"{attempt.found} results"}
        self._record(self.database, "test_web_provider", name, details)
        return outcome

    def change_rules(self, change: RulesChange) -> WebRules:
        """Switch the web on or off, or change which domains and names may be in it; return the rules.

        Raises:
            InvalidInputError: one of the domains is none, or there are too many.
        """
        with self.database.transaction() as database:
            before = web_search.read_rules(database)
            after = _apply_rules(before, change)
            web_search.save_rules(database, after)
            old, new = asdict(before), asdict(after)
            changed = [one for one in new if new[one] != old[one]]
            details = {
                "before": {one: _to_json(old[one]) for one in changed},
                "after": {one: _to_json(new[one]) for one in changed},
            }
            audit.record(database, "change_web_search", _SETTINGS, details, self.actor)
            return after

    def _seal(self, credential: Mapping[str, object]) -> str | None:
        return self.open_vault().seal(credential) if credential else None

    def _record(
        self, database: Database, action: str, name: str, details: Mapping[str, object]
    ) -> None:
        audit.record(database, action, f"web:{name}", details, self.actor)


def open_credential(values: ProviderValues, open_vault: Callable[[], Vault]) -> dict[str, object]:
    """Decrypt the credential of a provider, empty where it has none. Raises NotConfiguredError: no key opens it."""
    if values.sealed_credential is None:
        return {}
    return open_vault().open(values.sealed_credential)


def _choose_name(kind: str, providers: Sequence[StoredProvider]) -> str:
    taken = {one.name for one in providers}
    names = (kind if number == 1 else f"{kind}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def _check_credential_stays(before: ProviderValues, settings: Mapping[str, object]) -> None:
    """Refuse to send a credential that nobody can read any more to another server than it was entered for."""
    is_moved = any(before.settings.get(one) != settings.get(one) for one in _SENT_TO)
    if is_moved and before.sealed_credential:
        message = "The address leads to another server. Enter the credential again, so that none is sent there by mistake."
        raise InvalidProviderError([FieldError(("credential",), message)])


def _check_limit(per_minute: int) -> int | None:
    """Return a limit of searches, None for the usual one. Raises InvalidInputError: it is out of range."""
    if not 0 <= per_minute <= MOST_PER_MINUTE:
        raise InvalidInputError(
            f"The limit of searches a minute is a number up to {MOST_PER_MINUTE:,}; 0 restores the usual one."
        )
    return per_minute or None


def _apply_rules(before: WebRules, change: RulesChange) -> WebRules:
    rules = before
    if change.is_on is not None:
        rules = replace(rules, is_on=change.is_on)
    if change.keeps_internal_names is not None:
        rules = replace(rules, keeps_internal_names=change.keeps_internal_names)
    if change.allowed_domains is not None:
        rules = replace(rules, allowed_domains=_parse_domains(change.allowed_domains))
    if change.blocked_domains is not None:
        rules = replace(rules, blocked_domains=_parse_domains(change.blocked_domains))
    return rules


def _parse_domains(domains: Sequence[str]) -> tuple[str, ...]:
    """Return them sorted, each once. Raises InvalidInputError: one is none, or there are too many."""
    parsed = sorted({parse_domain(one) for one in domains if one.strip()})
    if len(parsed) > MOST_DOMAINS:
        raise InvalidInputError(f"There may be {MOST_DOMAINS:,} domains in a list at most.")
    return tuple(parsed)


def _describe_change(
    change: ProviderChange, before: ProviderValues, after: ProviderValues
) -> dict[str, object]:
    """Return what differs, before and after; of a credential only that it was replaced or removed."""
    old, new = _describe(before), _describe(after)
    changed = [one for one in new if new[one] != old[one]]
    details: dict[str, object] = {
        "before": {one: old[one] for one in changed},
        "after": {one: new[one] for one in changed},
    }
    if change.credential is not None:
        details["credential"] = "replaced" if after.sealed_credential else "removed"
    return details


def _describe(values: ProviderValues) -> dict[str, object]:
    return {
        "kind": values.kind,
        "settings": dict(values.settings),
        "has_credential": values.sealed_credential is not None,
        "enabled": values.is_enabled,
        "per_minute": values.per_minute,
    }


def _to_json(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
