"""The forms of sources and of providers, generated from the models of their kinds, with the stored settings as values.

The value of a secret is never part of a form.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from pydantic import BaseModel

from connectors.registry import SOURCE_KINDS, display_name, get_source_kind
from connectors.settings_form import (
    BooleanField,
    ChoiceField,
    Entry,
    Form,
    JsonField,
    ListField,
    NumberField,
    Part,
    Path,
    SecretField,
    TextField,
    Variants,
    first_sentence,
    get_path,
    to_label,
)

Control: TypeAlias = Literal[
    "line", "date", "number", "secret", "switch", "choice", "lines", "checks", "json", "variants"
]
NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    label: str
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The fields of one variant."""

    option: Option
    help: str
    fields: tuple["Field", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    path: str
    """Such as `settings.path`; errors name it by this path."""
    control: Control
    label: str
    help: str
    is_required: bool
    value: str = ""
    default: str = ""
    """Used if the field is left empty."""
    options: tuple[Option, ...] = ()
    groups: tuple[Group, ...] = ()

    @property
    def id(self) -> str:
        return f"field-{self.path.replace('.', '-')}"

    @property
    def is_on(self) -> bool:
        return self.value == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceForm:
    """The form of a new or an existing source, or of a provider."""

    kind: str
    title: str
    help: str
    needed: tuple[Field, ...]
    more: tuple[Field, ...]
    """Optional settings."""
    credential: tuple[Field, ...]
    credential_help: str


@dataclass(frozen=True, slots=True)
class KindChoice:
    kind: str
    title: str
    help: str


def list_kinds() -> tuple[KindChoice, ...]:
    return tuple(
        KindChoice(name, display_name(name), first_sentence(kind.settings.__doc__ or ""))
        for name, kind in SOURCE_KINDS.items()
    )


def build_form(kind: str, settings: Mapping[str, object] = NOTHING) -> SourceForm:
    """Build the form of a source of this kind, with its stored settings.

    Raises:
        ActionRequiredError: there is no such kind.
    """
    known = get_source_kind(kind)
    return build_model_form(kind, display_name(kind), known.settings, known.credential, settings)


def build_model_form(
    kind: str,
    title: str,
    settings_model: type[BaseModel],
    credential_model: type[BaseModel],
    settings: Mapping[str, object] = NOTHING,
) -> SourceForm:
    """Build the form of these models, with stored settings."""
    settings_form, secret = Form.from_model(settings_model), Form.from_model(credential_model)
    fields = tuple(_to_field("settings", part, settings) for part in settings_form.parts)
    return SourceForm(
        kind=kind,
        title=title,
        help=settings_form.help,
        needed=tuple(field for field in fields if field.is_required),
        more=tuple(field for field in fields if not field.is_required),
        credential=tuple(_to_field("credential", part, NOTHING) for part in secret.parts),
        credential_help=secret.help,
    )


def _to_field(within: str, part: Part, values: Mapping[str, object]) -> Field:
    match part:
        case Variants():
            return _to_variants_field(within, part, values)
        case Entry():
            return _to_entry_field(within, part, get_path(values, part.path))


def _to_entry_field(within: str, entry: Entry, value: object) -> Field:
    control, options = _choose_control(entry)
    chosen = _to_texts(entry.default if value is None else value)
    return Field(
        path=_to_name(within, entry.path),
        control=control,
        label=entry.label,
        help=entry.help,
        is_required=entry.is_required,
        value=""
        if value is None and control != "switch"
        else _to_text(control, value, entry.default),
        default=_to_text(control, entry.default, None),
        options=tuple(Option(name, to_label(name), name in chosen) for name in options),
    )


def _choose_control(entry: Entry) -> tuple[Control, tuple[str, ...]]:
    match entry.field:
        case SecretField():
            return "secret", ()
        case NumberField():
            return "number", ()
        case BooleanField():
            return "switch", ()
        case ChoiceField(options=options):
            return "choice", options
        case ListField(options=()):
            return "lines", ()
        case ListField(options=options):
            return "checks", options
        case JsonField():
            return "json", ()
        case TextField(format=style):
            return ("date" if style == "date" else "line"), ()


def _to_text(control: Control, value: object, default: object) -> str:
    shown = default if value is None else value
    match control, shown:
        case _, None:
            return ""
        case "switch", _:
            return "true" if shown else "false"
        case "lines", [*lines]:
            return "\n".join(map(str, lines))
        case "json", _:
            return json.dumps(shown, ensure_ascii=False)
        case _:
            return str(shown)


def _to_texts(value: object) -> frozenset[str]:
    if isinstance(value, list | tuple):
        return frozenset(map(str, value))
    return frozenset() if value is None else frozenset({str(value)})


def _to_variants_field(within: str, part: Variants, values: Mapping[str, object]) -> Field:
    first = part.options[0].name if part.is_required else None
    chosen = get_path(values, part.tag) or part.default or first
    groups = tuple(
        Group(
            option=Option(each.name, each.label, each.name == chosen),
            help=each.help,
            fields=tuple(_to_field(within, inner, values) for inner in each.parts),
        )
        for each in part.options
    )
    return Field(
        path=_to_name(within, part.tag),
        control="variants",
        label=part.label,
        help=part.help,
        is_required=part.is_required,
        options=tuple(group.option for group in groups),
        groups=groups,
    )


def _to_name(within: str, path: Path) -> str:
    return ".".join((within, *path))
