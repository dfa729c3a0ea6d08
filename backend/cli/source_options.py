"""The command-line options of a kind of source or provider, generated from its settings and credential models."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import typer
from pydantic import BaseModel
from typer.core import TyperCommand

from backend.cli.source_input import (
    PROMPT,
    SourceInput,
    flatten_parts,
    infer_variants,
    parse_value,
    read_object,
)
from connectors.registry import FieldError, display_name, get_source_kind, primary_setting
from connectors.settings_form import (
    BooleanField,
    ChoiceField,
    Entry,
    Form,
    JsonField,
    ListField,
    NumberField,
    SecretField,
    TextField,
    Variants,
    nest_values,
)
from connectors.settings_form import Path as Place

_RESERVED = {"name", "settings", "credential", "json", "help"}

PartName: TypeAlias = Literal["settings", "credential"]
Action: TypeAlias = Callable[[SourceInput], None]


@dataclass(frozen=True, slots=True)
class NamedOption:
    """A value of a form and the name of its option, without dashes."""

    part: PartName
    place: Place
    option: str
    entry: Entry | Variants
    variant: str = ""
    """The first variant that has it; empty outside variants."""

    @property
    def is_secret(self) -> bool:
        return isinstance(self.entry, Entry) and isinstance(self.entry.field, SecretField)


class FormModels(Protocol):
    """The part of a kind that its options are made of."""

    @property
    def settings(self) -> type[BaseModel]: ...

    @property
    def credential(self) -> type[BaseModel]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFamily:
    """The kinds that commands are made of, and what these say of them."""

    get_kind: Callable[[str], FormModels]
    """Raises InvalidInputError: there is no such kind."""
    describe: Callable[[str], str]
    """Describes a kind whose settings do not."""
    describe_next: Callable[[str], str]
    """Says what comes after one of this kind is added."""
    name_help: str


SOURCE_FAMILY = KindFamily(
    get_kind=get_source_kind,
    describe=lambda kind: f"A source of the kind {display_name(kind)}.",
    describe_next=lambda _: "`quarry sync` fetches its documents.",
    name_help="The name of the source; by default derived from what it reads.",
)


class KindOptions:
    """The options of one kind; only `add` has an argument, the primary setting."""

    def __init__(
        self, kind: str, verb: Literal["add", "edit"], family: KindFamily = SOURCE_FAMILY
    ) -> None:
        self.models = known = family.get_kind(kind)
        self.kind = kind
        self._family = family
        self._verb = verb
        self.forms: dict[PartName, Form] = {
            "settings": Form.from_model(known.settings),
            "credential": Form.from_model(known.credential),
        }
        self._argument = primary_setting(known.settings) if verb == "add" else None
        self._options = tuple(self._name_options())

    def build_command(self, name: str, run: Action) -> TyperCommand:
        """Build the command `add KIND` or `edit NAME`, which passes its input to `run`."""
        if self._verb == "add":
            what = self.forms["settings"].help or self._family.describe(self.kind)
            return self._build(name, f"{what}\n\n{self._family.describe_next(self.kind)}", run)
        help_ = (
            f"Change {name}. Settings without an option keep their values; an empty value restores the"
            " default. A credential is replaced as a whole."
        )
        return self._build(name, help_, run)

    def describe_error(self, error: FieldError) -> str:
        """Describe an invalid value by its option."""
        part, place = error.path[0], error.path[1:]
        for length in range(len(place), 0, -1):
            for one in self._options:
                if (one.part, one.place) == (part, place[:length]):
                    return f"{self._spelling(one)}: {error.message}"
        if part == "credential":
            return f"{self._secret_options() or 'the credential'}: {error.message}"
        return f"--name: {error.message}" if part == "name" else error.message

    def _spelling(self, one: NamedOption) -> str:
        if one.is_secret:
            return f"--{one.option}-file or --{one.option}-env"
        return one.option.upper() if self._is_argument(one) else f"--{one.option}"

    def _is_argument(self, one: NamedOption) -> bool:
        return one.part == "settings" and one.entry == self._argument

    def _secret_options(self) -> str:
        return ", ".join(
            self._spelling(one)
            for one in self._options
            if one.is_secret and one.part == "credential"
        )

    def _name_options(self) -> Iterator[NamedOption]:
        """Yield each value with its option: the last name of its path, or the whole path if that is taken."""
        taken = set(_RESERVED)
        seen: set[tuple[str, Place]] = set()
        for part, form in self.forms.items():
            for place, entry, variant in flatten_parts(form.parts):
                if (part, place) in seen:  # shared by several variants
                    continue
                seen.add((part, place))
                short, long = _to_option_name(place[-1:]), _to_option_name(place)
                option = next(o for o in (short, long, f"{part}-{long}") if o not in taken)
                taken.add(option)
                yield NamedOption(part, place, option, entry, variant)

    def _build(self, name: str, help_: str, run: Action) -> TyperCommand:
        parameters = dict(self._parameters())

        def callback(**values: Any) -> None:
            run(self._collect_input(parameters, values))

        signature = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for key, (_, kind, default) in parameters.items()
        ]
        callback.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
        callback.__annotations__ = {each.name: each.annotation for each in signature}
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, help=help_)(callback)
        command = typer.main.get_command(app)
        if not isinstance(command, TyperCommand):
            raise ValueError("an app with one function must make one command")
        return command

    def _parameters(self) -> Iterator[tuple[str, tuple[NamedOption | None, Any, Any]]]:
        """Yield the parameters of the command: each with its value of the form, type and default."""
        for number, one in enumerate(self._options):
            for suffix, kind in _annotations(one, is_argument=self._is_argument(one)):
                yield f"value_{number}{suffix}", (one, kind, None)
        if self._verb == "add":
            option = typer.Option(help=self._family.name_help, metavar="NAME")
            yield "name", (None, Annotated[str | None, option], None)
        yield (
            "settings",
            (None, Annotated[Path | None, _file_option("Settings as a JSON object.")], None),
        )
        if self.forms["credential"].parts:
            help_ = "The credential as a JSON object."
            yield "credential", (None, Annotated[Path | None, _file_option(help_)], None)
        yield "json", (None, Annotated[bool, typer.Option("--json", help=_JSON_HELP)], False)

    def _collect_input(
        self,
        parameters: Mapping[str, tuple[NamedOption | None, Any, Any]],
        values: Mapping[str, Any],
    ) -> SourceInput:
        found: dict[PartName, dict[Place, object]] = {"settings": {}, "credential": {}}
        for key, (one, _, _) in parameters.items():
            value = values[key]
            if one is not None and value is not None and value != []:
                found[one.part][_target_path(one)] = parse_value(
                    one.entry, _full_option(one, key), value
                )
        for part, form in self.forms.items():
            found[part] |= infer_variants(form.parts, found[part])
        return SourceInput(
            name=values.get("name"),
            settings=read_object(values["settings"]) | nest_values(found["settings"]),
            credential=read_object(values.get("credential")) | nest_values(found["credential"]),
            as_json=values["json"],
        )


_JSON_HELP = "Print only one JSON document."


def _file_option(help_: str) -> Any:
    return typer.Option(help=help_, exists=True, dir_okay=False, metavar="FILE")


def _to_option_name(place: Sequence[str]) -> str:
    return "-".join(place).replace("_", "-")


def _full_option(one: NamedOption, key: str) -> str:
    ending = key[key.rindex("_") :].replace("_", "-") if one.is_secret else ""
    return f"--{one.option}{ending}"


def _target_path(one: NamedOption) -> Place:
    return one.entry.tag if isinstance(one.entry, Variants) else one.place


def _annotations(one: NamedOption, *, is_argument: bool) -> Iterator[tuple[str, Any]]:
    """Yield the suffix and type of each parameter of a value; a secret has two parameters."""
    option, help_ = f"--{one.option}", _help_text(one)
    if is_argument:
        yield "", Annotated[str | None, typer.Argument(help=help_, metavar=one.option.upper())]
        return
    match one.entry:
        case Variants(options=options):
            names = tuple(each.name for each in options)
            chosen = typer.Option(
                option, help=_variants_help(one.entry, help_), metavar="|".join(names)
            )
            yield "", Annotated[_optional_literal(names), chosen]
        case Entry(field=SecretField()):
            file = f"{help_} Read from this file; {PROMPT} prompts for it, or reads it from a pipe."
            from_file = typer.Option(f"{option}-file", metavar="FILE", help=file)
            yield "_file", Annotated[str | None, from_file]
            same = "The same, read from this environment variable."
            variable = typer.Option(f"{option}-env", metavar="VARIABLE", help=same)
            yield "_env", Annotated[str | None, variable]
        case Entry(field=shape):
            spelled = typer.Option(*_spellings(option, shape), help=help_, metavar=_metavar(shape))
            yield "", Annotated[_option_type(shape), spelled]


def _metavar(shape: object) -> str | None:
    match shape:
        case ChoiceField(options=options):
            return "|".join(options)
        case NumberField():
            return "NUMBER"
        case BooleanField():
            return None
        case JsonField():
            return "JSON"
        case _:
            return "TEXT"


def _spellings(option: str, shape: object) -> tuple[str, ...]:
    return (f"{option}/--no-{option[2:]}",) if isinstance(shape, BooleanField) else (option,)


def _option_type(shape: object) -> Any:
    match shape:
        case ListField():
            return list[str] | None
        case NumberField(is_integer=True):
            return int | None
        case NumberField():
            return float | None
        case BooleanField():
            return bool | None
        case ChoiceField(options=options):
            return _optional_literal(options)
        case _:
            return str | None


def _optional_literal(options: tuple[str, ...]) -> Any:
    return Literal[options] | None


def _help_text(one: NamedOption) -> str:
    entry = one.entry
    texts = [entry.help or f"{entry.label}."]
    if isinstance(entry, Entry):
        match entry.field:
            case ListField(options=options):
                texts += [f"One of: {', '.join(options)}."] if options else []
                texts.append("May be repeated.")
            case TextField() | NumberField() | ChoiceField() if entry.default not in (None, ""):
                texts.append(f"[default: {entry.default}]")
            case _:
                pass
    if one.variant:
        texts.append(f"[for {one.variant}]")
    elif entry.is_required:
        texts.append("[required]")
    return " ".join(texts)


def _variants_help(entry: Variants, help_: str) -> str:
    which = "; ".join(f"{each.name}: {each.help.rstrip('.')}" for each in entry.options)
    return f"{help_} {which}. By default inferred from the other options."
