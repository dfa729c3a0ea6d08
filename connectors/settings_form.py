"""What is asked of a person who connects a source: read off the JSON schema of its models, so that command
lines and pages ask alike, and a new source asks by itself."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import BaseModel

Path: TypeAlias = tuple[str, ...]
"""Where a value stands: the keys from the outermost object inwards."""
Schema: TypeAlias = Mapping[str, Any]

_SPOKEN = {"api": "API", "id": "ID", "ids": "IDs", "imap": "IMAP", "ssh": "SSH", "tls": "TLS"}
_SPOKEN |= {"oauth": "OAuth", "url": "URL", "urls": "URLs"}


@dataclass(frozen=True, slots=True)
class TextField:
    """A text."""

    form: str = ""
    """`path`, `date` … as JSON schema calls it; mostly empty."""


@dataclass(frozen=True, slots=True)
class SecretField:
    """A text that is shown to nobody."""


@dataclass(frozen=True, slots=True)
class NumberField:
    is_integer: bool


@dataclass(frozen=True, slots=True)
class BooleanField:
    """On or off."""


@dataclass(frozen=True, slots=True)
class ChoiceField:
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListField:
    """Any number of texts; only of the options, where there are some."""

    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonField:
    """Anything else: written as JSON."""


FormField: TypeAlias = (
    TextField | SecretField | NumberField | BooleanField | ChoiceField | ListField | JsonField
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One value."""

    path: Path
    label: str
    help: str
    is_required: bool
    default: object
    field: FormField


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    name: str
    label: str
    help: str
    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """One of several groups of values; which one it is stands in the value `tag`."""

    path: Path
    tag: Path
    label: str
    help: str
    is_required: bool
    default: str | None
    options: tuple[Variant, ...]


Part: TypeAlias = Entry | Variants


@dataclass(frozen=True, slots=True)
class Form:
    """Of one model."""

    parts: tuple[Part, ...]
    help: str = ""
    """The first sentence of the model."""
    _unions: Mapping[Path, Variants] = field(default_factory=dict)

    @classmethod
    def from_model(cls, model: type[BaseModel]) -> "Form":
        schema = model.model_json_schema()
        parts = tuple(_Reader(schema).parts(schema, ()))
        unions = {one.path: one for one in _unions(parts)}
        return cls(parts, first_sentence(schema.get("description", "")), unions)

    def entries(self) -> Iterator[Entry]:
        """All values, those of all variants too."""
        return _entries(self.parts)

    def locate_error(self, fault: Sequence[int | str]) -> Path:
        """The path of the value that a fault of pydantic is of; its `loc` names variants besides."""
        path: Path = ()
        chosen: set[Path] = set()
        for step in map(str, fault):
            union = self._unions.get(path)
            if union and path not in chosen and step in {each.name for each in union.options}:
                chosen.add(path)
            else:
                path = (*path, step)
        return path

    def merge_values(
        self, stored: Mapping[str, object], given: Mapping[str, object], path: Path = ()
    ) -> dict[str, object]:
        """What is stored, with what is given in its place; an empty text or list takes a value away."""
        union = self._unions.get(path)
        name = union.tag[-1] if union else ""
        result = dict(stored) if given.get(name, stored.get(name)) == stored.get(name) else {}
        for key, value in given.items():
            before = result.pop(key, None)
            if isinstance(before, Mapping) and isinstance(value, Mapping):
                result[key] = self.merge_values(before, value, (*path, key))
            elif value not in ("", []):
                result[key] = value
        return result


def nest_values(values: Mapping[Path, object]) -> dict[str, object]:
    """Values by their paths, as the objects that they stand in."""
    whole: dict[str, object] = {}
    for path, value in values.items():
        inner: Any = whole
        for step in path[:-1]:
            inner = inner.setdefault(step, {})
        inner[path[-1]] = value
    return whole


def get_path(values: Mapping[str, object], path: Path) -> object:
    """The value at the path; None where there is none."""
    found: object = values
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def to_label(name: str) -> str:
    """`largest_file` as people write it: `Largest file`."""
    words = [_SPOKEN.get(word, word) for word in re.split(r"[_\s-]+", name.lower())]
    said = " ".join(words)
    return said[:1].upper() + said[1:]


def first_sentence(text: str) -> str:
    line = " ".join(text.partition("\n\n")[0].split())
    found = re.match(r".*?[.!?](?=\s|$)", line)
    return found[0] if found else line


def _entries(parts: Sequence[Part]) -> Iterator[Entry]:
    for part in parts:
        match part:
            case Entry():
                yield part
            case Variants():
                for option in part.options:
                    yield from _entries(option.parts)


def _unions(parts: Sequence[Part]) -> Iterator[Variants]:
    for part in parts:
        if isinstance(part, Variants):
            yield part
            for option in part.options:
                yield from _unions(option.parts)


class _Reader:
    """Reads one schema, which names its parts in `$defs`."""

    def __init__(self, schema: Schema) -> None:
        self._named: Schema = schema.get("$defs", {})

    def parts(self, schema: Schema, path: Path, tag: str = "") -> Iterator[Part]:
        """Those of an object; its property `tag` only says which variant it is."""
        if "discriminator" in schema:
            yield self._variants(schema, path, is_required=True)
        required = schema.get("required", ())
        for name, inner in schema.get("properties", {}).items():
            if name != tag:
                yield from self._part(inner, (*path, name), is_required=name in required)

    def _part(self, schema: Schema, path: Path, *, is_required: bool) -> Iterator[Part]:
        meant = self._meant(schema)
        if "discriminator" in meant:
            yield self._variants(meant, path, is_required=is_required)
        elif meant.get("properties"):
            yield from self.parts(meant, path)
        elif "const" not in meant:
            yield Entry(
                path=path,
                label=_label(schema, path),
                help=meant.get("description", ""),
                is_required=is_required,
                default=schema.get("default"),
                field=self._shape(meant),
            )

    def _meant(self, schema: Schema) -> Schema:
        """Without its reference and its `null`; what stands beside these stays."""
        if "$ref" in schema:
            named = self._named[schema["$ref"].rpartition("/")[2]]
            return self._meant({**named, **{k: v for k, v in schema.items() if k != "$ref"}})
        others = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
        if len(others) == 1:
            return self._meant({**others[0], **{k: v for k, v in schema.items() if k != "anyOf"}})
        return schema

    def _shape(self, schema: Schema) -> FormField:
        match schema:
            case {"format": "password"} | {"writeOnly": True}:
                return SecretField()
            case {"enum": [*options]}:
                return ChoiceField(tuple(map(str, options)))
            case {"type": "boolean"}:
                return BooleanField()
            case {"type": "integer" | "number" as kind}:
                return NumberField(is_integer=kind == "integer")
            case {"type": "string"}:
                return TextField(schema.get("format", ""))
            case {"type": "array", "items": dict(items)}:
                return self._several(self._meant(items))
            case _:
                return JsonField()

    def _several(self, items: Schema) -> FormField:
        match self._shape(items):
            case TextField():
                return ListField()
            case ChoiceField(options=options):
                return ListField(options)
            case _:
                return JsonField()

    def _variants(self, schema: Schema, path: Path, *, is_required: bool) -> Variants:
        tag: str = schema["discriminator"]["propertyName"]
        named: Mapping[str, str] = schema["discriminator"]["mapping"]
        default = schema.get("default")
        # In the order of the union, which is the order that the source's author thought of.
        order = [one["$ref"] for one in schema["oneOf"]]
        return Variants(
            path=path,
            tag=(*path, tag),
            label=_label(schema, path),
            help=schema.get("description", ""),
            is_required=is_required,
            default=str(default[tag]) if isinstance(default, Mapping) else None,
            options=tuple(
                self._variant(name, reference, path, tag)
                for name, reference in sorted(named.items(), key=lambda one: order.index(one[1]))
            ),
        )

    def _variant(self, name: str, reference: str, path: Path, tag: str) -> Variant:
        schema = self._meant({"$ref": reference})
        return Variant(
            name=name,
            label=to_label(name),
            help=first_sentence(schema.get("description", "")),
            parts=tuple(self.parts(schema, path, tag)),
        )


def _label(schema: Schema, path: Path) -> str:
    """The title that the model gives; pydantic's own is not one."""
    if not path:
        return ""
    made = path[-1].replace("_", " ").title()
    title: str = schema.get("title", made)
    return title if title != made else to_label(path[-1])
