"""Find public names of the product that no product code uses, from the source alone.

A name counts as used where it occurs as an identifier outside its own definition, whatever object it
belongs to: without types, `found.index(...)` may be any method called `index`. So what shares its name
with something in use is missed.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

_DESCRIPTORS = {"property", "cached_property", "classmethod", "staticmethod", "contextmanager"}
_PLAIN_BASES = {"Protocol", "Generic", "Exception", "ValueError", "StrEnum", "Enum", "NamedTuple"}
_LONGEST_CODE = 500
"""Characters of a string that is looked at as code: an annotation, a module path, a short program."""

_Place: TypeAlias = tuple[Path, str, str]
"""Module, statement at its top level, and the method where that is a class."""


@dataclass(frozen=True, slots=True)
class _Definition:
    name: str
    place: _Place

    def holds(self, place: _Place) -> bool:
        """Whether a use there lies inside of this definition."""
        module, statement, method = self.place
        return (module, statement) == place[:2] and method in {"", place[2]}


def unused_names(modules: Mapping[Path, ast.Module], other_text: str) -> Iterator[str]:
    """Yield each unused name as `module.Class.method`.

    Args:
        modules: all modules of the product by their path from its root.
        other_text: templates and settings, whose words count as uses.
    """
    uses: defaultdict[str, set[_Place]] = defaultdict(set)
    for path, tree in modules.items():
        for place, node in _parts(path, tree):
            for name in _used_names(node):
                uses[name].add(place)
    foreign = set(re.findall(r"\w+", other_text))
    for definition in _definitions(modules):
        if definition.name.startswith("__") or definition.name in foreign:
            continue
        if all(map(definition.holds, uses[definition.name])):
            module, *rest = definition.place
            dotted = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
            yield ".".join(part for part in (dotted, *rest) if part)


def _parts(path: Path, tree: ast.Module) -> Iterator[tuple[_Place, ast.AST]]:
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        own = _name_of(statement)
        if isinstance(statement, ast.ClassDef):
            for node in (*statement.bases, *statement.decorator_list):
                yield (path, own, ""), node
            for member in statement.body:
                yield (path, own, _name_of(member)), member
        else:
            yield (path, own, ""), statement


def _name_of(statement: ast.stmt) -> str:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return f"<line {statement.lineno}>"


def _used_names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
            case ast.MatchClass(kwd_attrs=names):
                yield from names
            case ast.Constant(value=str(text)) if len(text) < _LONGEST_CODE:
                yield from _names_in_code(text)
            case _:
                pass


def _names_in_code(text: str) -> Iterator[str]:
    """Yield the names in a string that is code; a docstring or a message does not parse as such."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for part in ast.walk(tree):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case _:
                pass


def _definitions(modules: Mapping[Path, ast.Module]) -> Iterator[_Definition]:
    classes = {
        statement.name: statement
        for tree in modules.values()
        for statement in tree.body
        if isinstance(statement, ast.ClassDef)
    }
    for path, tree in modules.items():
        for statement in tree.body:
            name = _name_of(statement)
            if name.isidentifier() and not _is_registered(statement):
                yield _Definition(name, (path, name, ""))
            if isinstance(statement, ast.ClassDef) and not _has_foreign_base(statement, classes):
                yield from (_Definition(m, (path, name, m)) for m in _methods(statement))


def _methods(statement: ast.ClassDef) -> Iterator[str]:
    for member in statement.body:
        if isinstance(member, ast.FunctionDef) and not _is_registered(member):
            yield member.name


def _is_registered(statement: ast.stmt) -> bool:
    """Whether a decorator hands the function to something that calls it."""
    decorators = (
        _decorators(statement)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        else []
    )
    return any(name not in _DESCRIPTORS for name in decorators)


def _decorators(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterable[str]:
    return [ast.unparse(each).partition("(")[0].split(".")[-1] for each in function.decorator_list]


def _has_foreign_base(statement: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Whether a library's class may call the methods that this one overrides."""
    for base in statement.bases:
        name = ast.unparse(base).partition("[")[0].split(".")[-1]
        if name in classes:
            if _has_foreign_base(classes[name], classes):
                return True
        elif name not in _PLAIN_BASES:
            return True
    return False
