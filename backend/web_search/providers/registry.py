"""The kinds of provider, by name, and what is entered for one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

from backend.web_search.providers.provider import FetchRendered, ProviderKind, SearchProvider
from connectors.connector import validate_source_name
from connectors.errors import InvalidInputError
from connectors.registry import FieldError, InvalidSourceError, LazyKinds, find_field_errors

_MODULES: Mapping[str, str] = MappingProxyType(
    {
        kind: f"backend.web_search.providers.{module}"
        for kind, module in (
            ("tavily", "tavily"),
            ("brave", "brave"),
            ("serper", "serper"),
            ("searxng", "searxng"),
            ("ddgs", "ddgs_engines"),
            ("page", "result_page"),
        )
    }
)
"""Each module defines a `PROVIDER_KIND`."""


PROVIDER_KINDS: Mapping[str, ProviderKind[Any, Any]] = LazyKinds(_MODULES, "PROVIDER_KIND")


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedProvider:
    """Valid name, settings and credential of a provider, as they are stored."""

    name: str
    settings: Mapping[str, object]
    """JSON values."""
    credential: Mapping[str, object] = field(repr=False)


class InvalidProviderError(InvalidSourceError):
    """The name, settings or credential of a provider are not valid; the message lists all errors."""

    summary = "The settings of the provider are not valid."


def get_provider_kind(name: str) -> ProviderKind[Any, Any]:
    """Return the kind of this name. Raises InvalidInputError: there is no such kind."""
    if name not in PROVIDER_KINDS:
        raise InvalidInputError(
            f"There is no kind of provider named {name!r}. The kinds are: {', '.join(PROVIDER_KINDS)}."
        )
    return PROVIDER_KINDS[name]


def validate_provider(
    kind: str, name: str, settings: Mapping[str, object], credential: Mapping[str, object]
) -> ValidatedProvider:
    """Check what was entered. The network is not used.

    Raises:
        InvalidProviderError: the name, the settings or the credential are not valid; it names each fault.
        InvalidInputError: there is no such kind.
    """
    known = get_provider_kind(kind)
    errors = [*find_field_errors("settings", known.settings, settings)]
    errors += find_field_errors("credential", known.credential, credential)
    if errors:
        raise InvalidProviderError(errors)
    try:
        validate_source_name(name)
    except ValueError as error:
        message = str(error).replace("a source", "a provider")
        raise InvalidProviderError([FieldError(("name",), message)]) from None
    return ValidatedProvider(
        name=name,
        settings=known.settings.model_validate(settings).model_dump(
            mode="json", exclude_unset=True
        ),
        credential=_list_given(known.credential.model_validate(credential)),
    )


def _list_given(credential: BaseModel) -> dict[str, object]:
    """Return the values that are not empty, without their default."""
    given = {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value
        for name, value in credential.model_dump(exclude_unset=True).items()
    }
    return {name: value for name, value in given.items() if value}


def create_provider(
    kind: str,
    name: str,
    settings: Mapping[str, object],
    credential: Mapping[str, object],
    fetch_rendered: FetchRendered,
) -> SearchProvider:
    """Create the provider of stored settings.

    Raises:
        InvalidInputError: the kind, the settings or the credential are not valid any more.
    """
    known = get_provider_kind(kind)
    try:
        provider = known.provider(
            name,
            known.settings.model_validate(settings),
            known.credential.model_validate(credential),
            fetch_rendered,
        )
    except ValidationError:
        # Not chained: the error holds the values, credentials too.
        raise InvalidInputError(
            f"The settings of {name} are not valid any more. Enter them again: quarry web providers edit {name}"
        ) from None
    return provider


def describe_receiver(kind: str, settings: Mapping[str, object]) -> str:
    """Return whom queries are sent to; of a kind or settings that are not valid any more, nothing."""
    known = PROVIDER_KINDS.get(kind)
    if known is None:
        return ""
    try:
        return known.get_receiver(known.settings.model_validate(settings))
    except ValidationError:
        return ""
