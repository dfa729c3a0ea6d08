"""The kinds of source that Quarry knows, by name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from connectors.connector import Connector, validate_source_name
from connectors.errors import ActionRequiredError, InvalidInputError
from connectors.settings_form import Entry, Form, Path, TextField, get_path, to_label
from connectors.source_kind import SourceKind

_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "folder": "connectors.sources.folder.connector",
        "confluence": "connectors.sources.confluence.connector",
        "git": "connectors.sources.git.connector",
        "github": "connectors.sources.github.connector",
        "imap": "connectors.sources.imap.connector",
        "mbox": "connectors.sources.mbox.connector",
        "slack": "connectors.sources.slack.connector",
        "web": "connectors.sources.website.connector",
    }
)
"""Each has a `SOURCE_KIND`."""


class _Kinds(Mapping[str, SourceKind[Any, Any]]):
    """A kind's libraries are imported when it is first looked at: a folder needs no HTTP client."""

    def __getitem__(self, name: str) -> SourceKind[Any, Any]:
        kind: SourceKind[Any, Any] = import_module(_MODULES[name]).SOURCE_KIND
        return kind

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


SOURCE_KINDS: Mapping[str, SourceKind[Any, Any]] = _Kinds()


@dataclass(frozen=True, slots=True)
class FieldError:
    path: Path
    """Begins with `name`, `settings` or `credential`."""
    message: str


class InvalidSourceError(InvalidInputError):
    """What was entered for a source cannot stand; the message tells all of its errors."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(f"{'.'.join(one.path)}: {one.message}" for one in errors))
        self.errors = tuple(errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedSource:
    """What a person entered for a source: valid, and as it is stored."""

    name: str
    settings: Mapping[str, object]
    """JSON values."""
    credential: Mapping[str, object] = field(repr=False)


def get_source_kind(name: str) -> SourceKind[Any, Any]:
    """Raises InvalidInputError: there is no such kind."""
    if name not in SOURCE_KINDS:
        raise InvalidInputError(
            f"no kind of source is called {name!r}; there is: {', '.join(SOURCE_KINDS)}"
        )
    return SOURCE_KINDS[name]


def display_name(kind: str) -> str:
    """The kind as people write it; its name, where there is none of it any more."""
    known = SOURCE_KINDS.get(kind)
    return known.title if known and known.title else to_label(kind)


def validate_source(
    kind: str,
    settings: Mapping[str, object],
    credential: Mapping[str, object] = MappingProxyType({}),
    name: str | None = None,
) -> ValidatedSource:
    """A source of this kind as it can be stored. Without a name it is called after what it reads.

    Raises:
        InvalidSourceError: the name, the settings or the credential; nothing of the network is asked.
        ActionRequiredError: there is no such kind.
    """
    known = get_source_kind(kind)
    errors = [*_faults("settings", known.settings, settings)]
    errors += _faults("credential", known.credential, credential)
    if errors:
        raise InvalidSourceError(errors)
    chosen = known.settings.model_validate(settings)
    called = name or _suggested(kind, chosen)
    try:
        validate_source_name(called)
    except ValueError as error:
        raise InvalidSourceError([FieldError(("name",), str(error))]) from error
    if missing := known.missing(chosen):
        raise InvalidSourceError([FieldError(("settings", _first(known.settings)), missing)])
    create_connector(kind, called, settings, credential)
    stored = chosen.model_dump(mode="json", exclude_unset=True)
    return ValidatedSource(name=called, settings=stored, credential=dict(credential))


def _faults(
    part: str, model: type[BaseModel], values: Mapping[str, object]
) -> Iterator[FieldError]:
    """The errors of the values; of a credential no value is told."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        form = Form.from_model(model)
        for fault in error.errors(include_url=False, include_context=False, include_input=False):
            missing = fault["type"] == "missing"
            message = "This is needed." if missing else fault["msg"].removeprefix("Value error, ")
            yield FieldError((part, *form.locate_error(fault["loc"])), message)


def primary_setting(model: type[BaseModel]) -> Entry | None:
    """The setting that says what is read: the first text that must be given, such as a path."""
    for part in Form.from_model(model).parts:
        if isinstance(part, Entry) and part.is_required and isinstance(part.field, TextField):
            return part
    return None


def _first(model: type[BaseModel]) -> str:
    where = primary_setting(model)
    return where.path[0] if where else ""


def _suggested(kind: str, settings: BaseModel) -> str:
    """The last part of what is read: of a path, an address, a host."""
    where = primary_setting(type(settings))
    value = str(get_path(settings.model_dump(mode="json"), where.path)) if where else ""
    last = value.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return re.sub(r"[\s:]+", "-", last.strip())[:100] or kind


def create_connector(
    kind: str,
    source: str,
    settings: Mapping[str, object],
    credential: Mapping[str, object] = MappingProxyType({}),
) -> Connector:
    """The connector of the source that is named `source`, from its stored settings and credential.

    Raises:
        ActionRequiredError: there is no such kind, or the name, the settings or the credential are not valid.
    """
    known = get_source_kind(kind)
    try:
        return known.connect(validate_source_name(source), settings, credential)
    except ValidationError as error:  # holds what was given, credentials too: it goes no further
        raise ActionRequiredError(
            f"the settings of {source} are not valid: {_said(error)}"
        ) from None
    except ValueError as error:
        raise ActionRequiredError(str(error)) from error


def _said(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, fault['loc'])) or 'settings'}: {fault['msg']}"
        for fault in error.errors(include_url=False, include_context=False)
    )
