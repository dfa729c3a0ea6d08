"""The kinds of source that Quarry knows, by name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from connectors.connector import Connector, source_name
from connectors.errors import ActionRequiredError, InvalidInputError
from connectors.settings_form import Entry, Form, Line, Path, at, spoken
from connectors.source_kind import Kind

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
"""Each has a `KIND`."""


class _Kinds(Mapping[str, Kind[Any, Any]]):
    """A kind's libraries are imported when it is first looked at: a folder needs no HTTP client."""

    def __getitem__(self, name: str) -> Kind[Any, Any]:
        kind: Kind[Any, Any] = import_module(_MODULES[name]).KIND
        return kind

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


KINDS: Mapping[str, Kind[Any, Any]] = _Kinds()


@dataclass(frozen=True, slots=True)
class Fault:
    path: Path
    """Begins with `name`, `settings` or `credential`."""
    message: str


class NotValid(InvalidInputError):
    """What was entered for a source cannot stand; the message tells all of its faults."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(f"{'.'.join(one.path)}: {one.message}" for one in faults))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """What a person entered for a source: valid, and as it is stored."""

    name: str
    settings: Mapping[str, object]
    """JSON values."""
    credential: Mapping[str, object] = field(repr=False)


def kind_of(name: str) -> Kind[Any, Any]:
    """Raises InvalidInputError: there is no such kind."""
    if name not in KINDS:
        raise InvalidInputError(
            f"no kind of source is called {name!r}; there is: {', '.join(KINDS)}"
        )
    return KINDS[name]


def title_of(kind: str) -> str:
    """The kind as people write it; its name, where there is none of it any more."""
    known = KINDS.get(kind)
    return known.title if known and known.title else spoken(kind)


def entered(
    kind: str,
    settings: Mapping[str, object],
    credential: Mapping[str, object] = MappingProxyType({}),
    name: str | None = None,
) -> Entered:
    """A source of this kind as it can be stored. Without a name it is called after what it reads.

    Raises:
        NotValid: the name, the settings or the credential; nothing of the network is asked.
        ActionRequiredError: there is no such kind.
    """
    known = kind_of(kind)
    faults = [*_faults("settings", known.settings, settings)]
    faults += _faults("credential", known.credential, credential)
    if faults:
        raise NotValid(faults)
    chosen = known.settings.model_validate(settings)
    called = name or _suggested(kind, chosen)
    try:
        source_name(called)
    except ValueError as error:
        raise NotValid([Fault(("name",), str(error))]) from error
    if missing := known.missing(chosen):
        raise NotValid([Fault(("settings", _first(known.settings)), missing)])
    connect(kind, called, settings, credential)
    stored = chosen.model_dump(mode="json", exclude_unset=True)
    return Entered(name=called, settings=stored, credential=dict(credential))


def _faults(part: str, model: type[BaseModel], values: Mapping[str, object]) -> Iterator[Fault]:
    """The faults of the values; of a credential no value is told."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        form = Form.of(model)
        for fault in error.errors(include_url=False, include_context=False, include_input=False):
            missing = fault["type"] == "missing"
            message = "This is needed." if missing else fault["msg"].removeprefix("Value error, ")
            yield Fault((part, *form.place(fault["loc"])), message)


def where_of(model: type[BaseModel]) -> Entry | None:
    """The setting that says what is read: the first text that must be given, such as a path."""
    for part in Form.of(model).parts:
        if isinstance(part, Entry) and part.is_required and isinstance(part.shape, Line):
            return part
    return None


def _first(model: type[BaseModel]) -> str:
    where = where_of(model)
    return where.path[0] if where else ""


def _suggested(kind: str, settings: BaseModel) -> str:
    """The last part of what is read: of a path, an address, a host."""
    where = where_of(type(settings))
    value = str(at(settings.model_dump(mode="json"), where.path)) if where else ""
    last = value.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return re.sub(r"[\s:]+", "-", last.strip())[:100] or kind


def connect(
    kind: str,
    source: str,
    settings: Mapping[str, object],
    credential: Mapping[str, object] = MappingProxyType({}),
) -> Connector:
    """The connector of the source that is named `source`, from its stored settings and credential.

    Raises:
        ActionRequiredError: there is no such kind, or the name, the settings or the credential are not valid.
    """
    known = kind_of(kind)
    try:
        return known.connect(source_name(source), settings, credential)
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
