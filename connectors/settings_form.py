"""Forms for adding a source, derived from the JSON schema of its models.

The command line, the API and the pages show the same form, and a new source needs no form of its own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pydantic import BaseModel

Path: TypeAlias = tuple[str, ...]
"""Path of a value: the keys from the outermost object inwards."""
Schema: TypeAlias = Mapping[str, Any]

_ACRONYMS = {"api": "API", "id": "ID", "ids": "IDs", "imap": "IMAP", "ssh": "SSH", "tls": "TLS"}
_ACRONYMS |= {"oauth": "OAuth", "url": "URL", "urls": "URLs"}


@dataclass(frozen=True, slots=True)
class TextField:
    format: str = ""
    """Such as `path` or `date`, as in JSON schema; mostly empty."""


@dataclass(frozen=True, slots=True)
class SecretField:
    """A text that is never shown."""


@dataclass(frozen=True, slots=True)
class NumberField:
    is_integer: bool


@dataclass(frozen=True, slots=True)
class BooleanField:
    pass


@dataclass(frozen=True, slots=True)
class ChoiceField:
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListField:
    """Any number of texts, from the options if there are any."""

    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonField:
    """Any other value, entered as JSON."""


FormField: TypeAlias = (
    TextField | SecretField | NumberField | BooleanField | ChoiceField | ListField | JsonField
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One value of a form."""

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
    """A choice between groups of values; the value at `tag` names the chosen group."""

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
    """The form of one model."""

    parts: tuple[Part, ...]
    help: str = ""
    """First sentence of the model's docstring."""
    _unions: Mapping[Path, Variants] = field(default_factory=dict)

    @classmethod
    def from_model(cls, model: type[BaseModel]) -> "Form":
        schema = model.model_json_schema()
        parts = tuple(_SchemaReader(schema).parts(schema, ()))
        unions = {one.path: one for one in _unions(parts)}
        return cls(parts, first_sentence(schema.get("description", "")), unions)

    def entries(self) -> Iterator[Entry]:
        """Yield all values, including those of all variants."""
        return _entries(self.parts)

    def locate_error(self, location: Sequence[int | str]) -> Path:
        """Return the path of the value that has an error; pydantic's `loc` contains names of variants too."""
        path: Path = ()
        chosen: set[Path] = set()
        for step in map(str, location):
            union = self._unions.get(path)
            if union and path not in chosen and step in {each.name for each in union.options}:
                chosen.add(path)
            else:
                path = (*path, step)
        return path

    def merge_values(
        self, stored: Mapping[str, object], changes: Mapping[str, object], path: Path = ()
    ) -> dict[str, object]:
        """Apply changes to stored values; an empty text or list removes a value."""
        union = self._unions.get(path)
        name = union.tag[-1] if union else ""
        result = dict(stored) if changes.get(name, stored.get(name)) == stored.get(name) else {}
        for key, value in changes.items():
            before = result.pop(key, None)
            if isinstance(before, Mapping) and isinstance(value, Mapping):
                result[key] = self.merge_values(before, value, (*path, key))
            elif value not in ("", []):
                result[key] = value
        return result


def nest_values(values: Mapping[Path, object]) -> dict[str, object]:
    """Turn values by path into nested objects."""
    whole: dict[str, object] = {}
    for path, value in values.items():
        inner: Any = whole
        for step in path[:-1]:
            inner = inner.setdefault(step, {})
        inner[path[-1]] = value
    return whole


def get_path(values: Mapping[str, object], path: Path) -> object:
    """Return the value at a path, or None if there is none."""
    found: object = values
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def to_label(name: str) -> str:
    """Turn a name into a label: `largest_file` becomes `Largest file`."""
    words = [_ACRONYMS.get(word, word) for word in re.split(r"[_\s-]+", name.lower())]
    label = " ".join(words)
    return label[:1].upper() + label[1:]


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


class _SchemaReader:
    """Reads the parts of a form from a JSON schema and its `$defs`."""

    def __init__(self, schema: Schema) -> None:
        self._definitions: Schema = schema.get("$defs", {})

    def parts(self, schema: Schema, path: Path, tag: str = "") -> Iterator[Part]:
        """Yield the parts of an object, without the property `tag`, which names its variant."""
        if "discriminator" in schema:
            yield self._make_variants(schema, path, is_required=True)
        required = schema.get("required", ())
        for name, inner in schema.get("properties", {}).items():
            if name != tag:
                yield from self._part(inner, (*path, name), is_required=name in required)

    def _part(self, schema: Schema, path: Path, *, is_required: bool) -> Iterator[Part]:
        resolved = self._resolve(schema)
        if "discriminator" in resolved:
            yield self._make_variants(resolved, path, is_required=is_required)
        elif resolved.get("properties"):
            yield from self.parts(resolved, path)
        elif "const" not in resolved:
            yield Entry(
                path=path,
                label=_make_label(schema, path),
                help=resolved.get("description", ""),
                is_required=is_required,
                default=schema.get("default"),
                field=self._make_field(resolved),
            )

    def _resolve(self, schema: Schema) -> Schema:
        """Resolve a reference and drop `null`; the other keys are kept."""
        if "$ref" in schema:
            named = self._definitions[schema["$ref"].rpartition("/")[2]]
            return self._resolve({**named, **{k: v for k, v in schema.items() if k != "$ref"}})
        others = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
        if len(others) == 1:
            return self._resolve({**others[0], **{k: v for k, v in schema.items() if k != "anyOf"}})
        return schema

    def _make_field(self, schema: Schema) -> FormField:
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
                return self._make_list_field(self._resolve(items))
            case _:
                return JsonField()

    def _make_list_field(self, items: Schema) -> FormField:
        match self._make_field(items):
            case TextField():
                return ListField()
            case ChoiceField(options=options):
                return ListField(options)
            case _:
                return JsonField()

    def _make_variants(self, schema: Schema, path: Path, *, is_required: bool) -> Variants:
        tag: str = schema["discriminator"]["propertyName"]
        named: Mapping[str, str] = schema["discriminator"]["mapping"]
        default = schema.get("default")
        # In the order of the union, which its author chose.
        order = [one["$ref"] for one in schema["oneOf"]]
        return Variants(
            path=path,
            tag=(*path, tag),
            label=_make_label(schema, path),
            help=schema.get("description", ""),
            is_required=is_required,
            default=str(default[tag]) if isinstance(default, Mapping) else None,
            options=tuple(
                self._make_variant(name, reference, path, tag)
                for name, reference in sorted(named.items(), key=lambda one: order.index(one[1]))
            ),
        )

    def _make_variant(self, name: str, reference: str, path: Path, tag: str) -> Variant:
        schema = self._resolve({"$ref": reference})
        return Variant(
            name=name,
            label=to_label(name),
            help=first_sentence(schema.get("description", "")),
            parts=tuple(self.parts(schema, path, tag)),
        )


def _make_label(schema: Schema, path: Path) -> str:
    """Return the title given in the model; the one that pydantic generates does not count."""
    if not path:
        return ""
    generated = path[-1].replace("_", " ").title()
    title: str = schema.get("title", generated)
    return title if title != generated else to_label(path[-1])
