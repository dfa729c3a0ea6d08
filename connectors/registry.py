"""Registry of the kinds of source, by name: of each its settings, its credential and its connector."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from connectors.access import Access
from connectors.connector import (
    Capability,
    Connector,
    FindObjection,
    ServerAccess,
    allow_all,
    validate_source_name,
)
from connectors.errors import InvalidInputError
from connectors.retention import Retention
from connectors.settings_form import Entry, Form, Path, TextField, get_path, to_label

Kind = TypeVar("Kind")
S = TypeVar("S", bound=BaseModel)
C = TypeVar("C", bound=BaseModel)

_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "folder": "connectors.sources.folder.connector",
        "confluence": "connectors.sources.confluence.connector",
        "feed": "connectors.sources.feed.connector",
        "git": "connectors.sources.git.connector",
        "github": "connectors.sources.github.connector",
        "imap": "connectors.sources.imap.connector",
        "ingest": "connectors.sources.ingest.connector",
        "mbox": "connectors.sources.mbox.connector",
        "slack": "connectors.sources.slack.connector",
        "web": "connectors.sources.website.connector",
    }
)
"""Each module defines a `SOURCE_KIND`."""
INGEST = "ingest"
"""The kind whose documents are stored here: the container gives its connector the place."""


NOT_STORED = 0
"""Stands for the id of a source that is not stored, such as one that is entered just now."""


class NoCredential(BaseModel):
    """Credential of a source that needs none."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _find_nothing_missing(settings: BaseModel) -> None:
    del settings


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncIntervals:
    """The default times from the end of a run to the start of the next one: short where a run costs little."""

    content: timedelta = timedelta(minutes=15)
    access: timedelta = timedelta(minutes=15)
    deletions: timedelta = timedelta(hours=6)


REMOTE_INTERVALS = SyncIntervals(access=timedelta(hours=1), deletions=timedelta(days=1))
"""Of a service that is asked for all it has, page by page, whenever it is listed."""


def without_groups(
    connector: Callable[[str, S, C], Connector],
) -> Callable[[str, int, S, C], Connector]:
    """Adapt a connector that has no groups, and so needs no id of its source."""
    return lambda source, _, settings, credential: connector(source, settings, credential)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind(Generic[S, C]):
    connector: Callable[[str, int, S, C], Connector]
    """Makes a connector from the source's name, id, settings and credential, without connecting to it. The id is in
    the tokens of its groups."""
    settings: type[S]
    credential: type[C]
    server_access: Callable[[S], ServerAccess]
    """Returns what of the server and its networks a source with these settings reaches."""
    capabilities: frozenset[Capability] = frozenset(Capability)
    title: str = ""
    """Display name; by default the name in the registry, capitalized."""
    fixed_access: Callable[[S], Access] | None = None
    """Returns the readers of all documents where the settings say them. Then the source has no `Capability.ACCESS`,
    and is never asked for readers."""
    retention: Callable[[S], Retention] | None = None
    """Returns how long documents stay that the source no longer lists, where it only shows its latest. Without it,
    what is not listed was deleted."""
    intervals: SyncIntervals = SyncIntervals()
    find_missing: Callable[[S], str | None] = _find_nothing_missing
    """Returns what is missing that must exist before a source with these settings is added."""

    def create_connector(
        self,
        source: str,
        source_id: int,
        settings: Mapping[str, object],
        credential: Mapping[str, object],
    ) -> Connector:
        return self.connector(
            source,
            source_id,
            self.settings.model_validate(settings),
            self.credential.model_validate(credential),
        )


class LazyKinds(Mapping[str, Kind]):
    """Kinds by name, each an attribute of a module that is imported on first access: a folder needs no HTTP client."""

    def __init__(self, modules: Mapping[str, str], attribute: str) -> None:
        self._modules = modules
        self._attribute = attribute

    def __getitem__(self, name: str) -> Kind:
        kind: Kind = getattr(import_module(self._modules[name]), self._attribute)
        return kind

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


SOURCE_KINDS: Mapping[str, SourceKind[Any, Any]] = LazyKinds(_MODULES, "SOURCE_KIND")


@dataclass(frozen=True, slots=True)
class FieldError:
    path: Path
    """Starts with `name`, `settings` or `credential`."""
    message: str


class InvalidSourceError(InvalidInputError):
    """The name, settings or credential of a source are invalid; the message lists all errors."""

    summary = "The settings of the source are not valid."

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(f"{'.'.join(one.path)}: {one.message}" for one in errors))
        self.errors = tuple(errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedSource:
    """Valid name, settings and credential of a source, as they are stored."""

    name: str
    settings: Mapping[str, object]
    """JSON values."""
    credential: Mapping[str, object] = field(repr=False)


def get_source_kind(name: str) -> SourceKind[Any, Any]:
    """Return the kind of this name. Raises InvalidInputError: there is no such kind."""
    if name not in SOURCE_KINDS:
        raise InvalidInputError(
            f"unknown kind of source: {name!r}; known are: {', '.join(SOURCE_KINDS)}"
        )
    return SOURCE_KINDS[name]


def display_name(kind: str) -> str:
    """Return the title of a kind; of a kind that no longer exists, one made from its name."""
    known = SOURCE_KINDS.get(kind)
    return known.title if known and known.title else to_label(kind)


def has_fixed_access(kind: str) -> bool:
    """Return whether the settings of sources of this kind say who may read their documents."""
    known = SOURCE_KINDS.get(kind)
    return known is not None and known.fixed_access is not None


def get_fixed_access(kind: str, settings: Mapping[str, object]) -> Access | None:
    """Return the readers of all documents of a source; None if the source itself knows them.

    Raises:
        InvalidInputError: the settings are not valid.
    """
    known = get_source_kind(kind)
    if known.fixed_access is None:
        return None
    return known.fixed_access(_validate_settings(known, settings))


def get_retention(kind: str, settings: Mapping[str, object]) -> Retention | None:
    """Return how long documents of a source stay that it no longer lists; None if they were deleted at the source.

    Raises:
        InvalidInputError: the settings are not valid.
    """
    known = get_source_kind(kind)
    if known.retention is None:
        return None
    return known.retention(_validate_settings(known, settings))


def _validate_settings(known: SourceKind[S, Any], settings: Mapping[str, object]) -> S:
    try:
        return known.settings.model_validate(settings)
    except ValidationError as error:
        raise InvalidInputError(f"the settings are not valid: {_format_errors(error)}") from None


def get_intervals(kind: str) -> SyncIntervals:
    """Return the default intervals of sources of this kind; also of a kind that no longer exists."""
    known = SOURCE_KINDS.get(kind)
    return known.intervals if known else SyncIntervals()


def validate_source(
    kind: str,
    settings: Mapping[str, object],
    credential: Mapping[str, object] = MappingProxyType({}),
    name: str | None = None,
    find_objection: FindObjection = allow_all,
) -> ValidatedSource:
    """Validate what was entered for a source. Without a name, it is named after what it reads.

    What the source may not reach is not looked at, so that no message tells whether it exists.

    Raises:
        InvalidSourceError: the name, the settings or the credential are invalid. The network is not used.
        InvalidInputError: there is no such kind.
    """
    known = get_source_kind(kind)
    errors = [*find_field_errors("settings", known.settings, settings)]
    errors += find_field_errors("credential", known.credential, credential)
    if errors:
        raise InvalidSourceError(errors)
    validated = known.settings.model_validate(settings)
    chosen_name = name or _suggest_name(kind, validated)
    try:
        validate_source_name(chosen_name)
    except ValueError as error:
        raise InvalidSourceError([FieldError(("name",), str(error))]) from error
    if fault := find_objection(known.server_access(validated)) or known.find_missing(validated):
        raise InvalidSourceError(
            [FieldError(("settings", _get_primary_key(known.settings)), fault)]
        )
    create_connector(kind, chosen_name, settings, credential)
    stored = validated.model_dump(mode="json", exclude_unset=True)
    return ValidatedSource(name=chosen_name, settings=stored, credential=dict(credential))


def find_field_errors(
    part: str, model: type[BaseModel], values: Mapping[str, object]
) -> Iterator[FieldError]:
    """Yield the errors of the values, without the values: they may be credentials."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        form = Form.from_model(model)
        for one in error.errors(include_url=False, include_context=False, include_input=False):
            is_missing = one["type"] == "missing"
            message = "Required." if is_missing else one["msg"].removeprefix("Value error, ")
            yield FieldError((part, *form.locate_error(one["loc"])), message)


def primary_setting(model: type[BaseModel]) -> Entry | None:
    """Return the setting that identifies what is read: the first required text, such as a path."""
    for part in Form.from_model(model).parts:
        if isinstance(part, Entry) and part.is_required and isinstance(part.field, TextField):
            return part
    return None


def _get_primary_key(model: type[BaseModel]) -> str:
    setting = primary_setting(model)
    return setting.path[0] if setting else ""


def _suggest_name(kind: str, settings: BaseModel) -> str:
    """Suggest the last part of what is read: of a path, a URL or a host name."""
    setting = primary_setting(type(settings))
    value = str(get_path(settings.model_dump(mode="json"), setting.path)) if setting else ""
    last = value.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return re.sub(r"[\s:]+", "-", last.strip())[:100] or kind


def find_source_objection(
    kind: str, settings: Mapping[str, object], find_objection: FindObjection
) -> str | None:
    """Return what is objected to in what a source with these settings reaches of the server.

    Raises:
        ValueError: the settings are not valid.
        InvalidInputError: there is no such kind.
    """
    known = get_source_kind(kind)
    return find_objection(known.server_access(known.settings.model_validate(settings)))


def create_connector(
    kind: str,
    source: str,
    settings: Mapping[str, object],
    credential: Mapping[str, object] = MappingProxyType({}),
    source_id: int = NOT_STORED,
    find_objection: FindObjection = allow_all,
) -> Connector:
    """Create the connector of a source from its name, its stored settings and credential, and its id.

    Raises:
        InvalidInputError: the kind, the name, the settings or the credential are invalid, or there is an objection to
            what the source reaches.
    """
    known = get_source_kind(kind)
    try:
        if objection := find_source_objection(kind, settings, find_objection):
            raise InvalidInputError(objection)
        return known.create_connector(validate_source_name(source), source_id, settings, credential)
    except ValidationError as error:
        # Not chained: the error holds the values, credentials too.
        raise InvalidInputError(
            f"the settings of {source} are not valid: {_format_errors(error)}"
        ) from None
    except ValueError as error:
        raise InvalidInputError(str(error)) from error


def _format_errors(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, one['loc'])) or 'settings'}: {one['msg']}"
        for one in error.errors(include_url=False, include_context=False)
    )
