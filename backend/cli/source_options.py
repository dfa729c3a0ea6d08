"""The options of a kind of source on the command line, made from the forms of its models."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from typer.core import TyperCommand

from backend.cli.source_input import ASKED, Given, flat, inferred, object_in, value_of
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
Runs: TypeAlias = Callable[[Given], None]


@dataclass(frozen=True, slots=True)
class Named:
    """A value of a form, and its option without the dashes; none where it is the argument."""

    part: PartName
    place: Place
    option: str
    entry: Entry | Variants
    variant: str = ""
    """That it is of alone, if it is."""

    @property
    def is_secret(self) -> bool:
        return isinstance(self.entry, Entry) and isinstance(self.entry.field, SecretField)


class KindOptions:
    """Of one kind: `add` has its argument, `edit` has options alone."""

    def __init__(self, kind: str, verb: Literal["add", "edit"]) -> None:
        known = get_source_kind(kind)
        self.kind = kind
        self._verb = verb
        self.forms: dict[PartName, Form] = {
            "settings": Form.from_model(known.settings),
            "credential": Form.from_model(known.credential),
        }
        self._where = primary_setting(known.settings) if verb == "add" else None
        self._named = tuple(self._names())

    def command(self, name: str, run: Runs) -> TyperCommand:
        """`add KIND` or `edit NAME`, which hands what it is given to `run`."""
        if self._verb == "add":
            what = self.forms["settings"].help or f"A source of the kind {display_name(self.kind)}."
            return self._command(name, f"{what}\n\n`quarry sync` reads it.", run)
        help_ = (
            f"Change {name}. What is not named stays; an empty value takes a setting back to its"
            " default. A credential is replaced as a whole."
        )
        return self._command(name, help_, run)

    def said(self, fault: FieldError) -> str:
        """A fault, by the option that it is of."""
        part, place = fault.path[0], fault.path[1:]
        for length in range(len(place), 0, -1):
            for one in self._named:
                if (one.part, one.place) == (part, place[:length]):
                    return f"{self._spelt(one)}: {fault.message}"
        if part == "credential":
            return f"{self._secrets() or 'the credential'}: {fault.message}"
        return f"--name: {fault.message}" if part == "name" else fault.message

    def _spelt(self, one: Named) -> str:
        if one.is_secret:
            return f"--{one.option}-file or --{one.option}-env"
        return one.option.upper() if self._is_where(one) else f"--{one.option}"

    def _is_where(self, one: Named) -> bool:
        return one.part == "settings" and one.entry == self._where

    def _secrets(self) -> str:
        return ", ".join(
            self._spelt(one) for one in self._named if one.is_secret and one.part == "credential"
        )

    def _names(self) -> Iterator[Named]:
        """Options are called by the last word of their place; by all of it where that is taken."""
        taken = set(_RESERVED)
        seen: set[tuple[str, Place]] = set()
        for part, form in self.forms.items():
            for place, entry, variant in flat(form.parts):
                if (part, place) in seen:  # variants that have it in common
                    continue
                seen.add((part, place))
                short, long = _dashed(place[-1:]), _dashed(place)
                option = next(o for o in (short, long, f"{part}-{long}") if o not in taken)
                taken.add(option)
                yield Named(part, place, option, entry, variant)

    def _command(self, name: str, help_: str, run: Runs) -> TyperCommand:
        asked = dict(self._asked())

        def called(**values: Any) -> None:
            run(self._given(asked, values))

        parameters = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for key, (_, kind, default) in asked.items()
        ]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, help=help_)(called)
        made = typer.main.get_command(app)
        if not isinstance(made, TyperCommand):
            raise ValueError("one command is expected of one function")
        return made

    def _asked(self) -> Iterator[tuple[str, tuple[Named | None, Any, Any]]]:
        """The parameters of the command: each with the value that it is of, its type, its default."""
        for number, one in enumerate(self._named):
            for suffix, kind in _annotations(one, is_argument=self._is_where(one)):
                yield f"value_{number}{suffix}", (one, kind, None)
        if self._verb == "add":
            called = typer.Option(help=_NAME, metavar="NAME")
            yield "name", (None, Annotated[str | None, called], None)
        yield "settings", (None, Annotated[Path | None, _file("Settings as a JSON object.")], None)
        if self.forms["credential"].parts:
            told = "The credential as a JSON object."
            yield "credential", (None, Annotated[Path | None, _file(told)], None)
        yield "json", (None, Annotated[bool, typer.Option("--json", help=_JSON)], False)

    def _given(
        self, asked: Mapping[str, tuple[Named | None, Any, Any]], values: Mapping[str, Any]
    ) -> Given:
        found: dict[PartName, dict[Place, object]] = {"settings": {}, "credential": {}}
        for key, (one, _, _) in asked.items():
            value = values[key]
            if one is not None and value is not None and value != []:
                found[one.part][_target(one)] = value_of(one.entry, _option(one, key), value)
        for part, form in self.forms.items():
            found[part] |= inferred(form.parts, found[part])
        return Given(
            name=values.get("name"),
            settings=object_in(values["settings"]) | nest_values(found["settings"]),
            credential=object_in(values.get("credential")) | nest_values(found["credential"]),
            as_json=values["json"],
        )


_NAME = "What to call the source; by default after what it reads."
_JSON = "Print one JSON document and nothing else."


def _file(help_: str) -> Any:
    return typer.Option(help=help_, exists=True, dir_okay=False, metavar="FILE")


def _dashed(place: Sequence[str]) -> str:
    return "-".join(place).replace("_", "-")


def _option(one: Named, key: str) -> str:
    ending = key[key.rindex("_") :].replace("_", "-") if one.is_secret else ""
    return f"--{one.option}{ending}"


def _target(one: Named) -> Place:
    return one.entry.tag if isinstance(one.entry, Variants) else one.place


def _annotations(one: Named, *, is_argument: bool) -> Iterator[tuple[str, Any]]:
    """The types of its parameters, as typer reads them; a secret has two."""
    option, help_ = f"--{one.option}", _help(one)
    if is_argument:
        yield "", Annotated[str | None, typer.Argument(help=help_, metavar=one.option.upper())]
        return
    match one.entry:
        case Variants(options=options):
            names = tuple(each.name for each in options)
            chosen = typer.Option(option, help=_variants(one.entry, help_), metavar="|".join(names))
            yield "", Annotated[_one_of(names), chosen]
        case Entry(field=SecretField()):
            file = f"{help_} From this file; {ASKED} asks for it, or reads it from a pipe."
            from_file = typer.Option(f"{option}-file", metavar="FILE", help=file)
            yield "_file", Annotated[str | None, from_file]
            told = "The same, from this environment variable."
            variable = typer.Option(f"{option}-env", metavar="VARIABLE", help=told)
            yield "_env", Annotated[str | None, variable]
        case Entry(field=shape):
            spelt = typer.Option(*_spellings(option, shape), help=help_, metavar=_metavar(shape))
            yield "", Annotated[_type(shape), spelt]


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


def _type(shape: object) -> Any:
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
            return _one_of(options)
        case _:
            return str | None


def _one_of(options: tuple[str, ...]) -> Any:
    return Literal[options] | None


def _help(one: Named) -> str:
    entry = one.entry
    told = [entry.help or f"{entry.label}."]
    if isinstance(entry, Entry):
        match entry.field:
            case ListField(options=options):
                told += [f"Of: {', '.join(options)}."] if options else []
                told.append("May be repeated.")
            case TextField() | NumberField() | ChoiceField() if entry.default not in (None, ""):
                told.append(f"[default: {entry.default}]")
            case _:
                pass
    if one.variant:
        told.append(f"[for {one.variant}]")
    elif entry.is_required:
        told.append("[required]")
    return " ".join(told)


def _variants(entry: Variants, help_: str) -> str:
    which = "; ".join(f"{each.name}: {each.help.rstrip('.')}" for each in entry.options)
    return f"{help_} {which}. Told by the other options, where it is left out."
