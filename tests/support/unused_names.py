"""Find public names of the product that no product code uses, from the source alone.

A name at the top level of a module counts as used where its own module names it outside its definition, or another
one imports it or names it as a part of the imported module. A method counts as used where its name occurs as an
identifier outside its definition, whatever object it belongs to: without types, `found.index(...)` may be any method
called `index`. So a method that shares its name with something in use is missed.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

_DESCRIPTORS = {"property", "cached_property", "classmethod", "staticmethod", "contextmanager"}
_PLAIN_BASES = {"Protocol", "Generic", "Exception", "ValueError", "StrEnum", "Enum", "NamedTuple"}
_IMPORTS = (ast.Import, ast.ImportFrom)
_LONGEST_CODE = 500
"""Characters of a string that is looked at as code: an annotation, a module path, a short program."""

_Place: TypeAlias = tuple[Path, str, str]
"""Module, statement at its top level, and the method where that is a class."""


@dataclass(frozen=True, slots=True)
class _Definition:
    name: str
    place: _Place

    @property
    def module(self) -> str:
        return _dotted(self.place[0])

    @property
    def is_method(self) -> bool:
        return self.place[2] != ""

    def holds(self, place: _Place) -> bool:
        """Whether a use there lies inside of this definition."""
        module, statement, method = self.place
        return (module, statement) == place[:2] and method in {"", place[2]}


@dataclass(frozen=True, slots=True)
class _Uses:
    anywhere: defaultdict[str, set[_Place]] = field(default_factory=lambda: defaultdict(set))
    """Where each name occurs, also as a part of something."""
    at_home: defaultdict[tuple[Path, str], set[_Place]] = field(
        default_factory=lambda: defaultdict(set)
    )
    """Where each occurs in a module by itself."""
    imported: set[tuple[str, str]] = field(default_factory=set)
    """Module and name."""
    looked_up: set[tuple[str, str]] = field(default_factory=set)
    """The end of a module's path, or nothing, and a name in it."""


def unused_names(modules: Mapping[Path, ast.Module], other_text: str) -> Iterator[str]:
    """Yield each unused name as `module.Class.method`.

    Args:
        modules: all modules of the product by their path from its root.
        other_text: templates and settings, whose words count as uses of methods.
    """
    uses = _find_uses(modules)
    words = set(re.findall(r"\w+", other_text))
    looked_up = uses.looked_up | set(re.findall(r"(\w+):(\w+)", other_text))
    for definition in _definitions(modules):
        name, module = definition.name, definition.module
        if definition.is_method:
            is_taken, found = name in words, uses.anywhere[name]
        else:
            ends = {(module.rpartition(".")[2], name), ("", name)}
            is_taken = (module, name) in uses.imported or not looked_up.isdisjoint(ends)
            found = uses.at_home[definition.place[0], name]
        if not (name.startswith("__") or is_taken) and all(map(definition.holds, found)):
            yield ".".join(part for part in (module, *definition.place[1:]) if part)


def _find_uses(modules: Mapping[Path, ast.Module]) -> _Uses:
    uses = _Uses()
    for path, tree in modules.items():
        nodes: list[ast.AST] = [one for one in tree.body if isinstance(one, _IMPORTS)]
        for place, node in _parts(path, tree):
            parts = list(ast.walk(node))
            for name in set(_bare_names(parts)):
                uses.anywhere[name].add(place)
                uses.at_home[path, name].add(place)
            for name in set(_part_names(parts)):
                uses.anywhere[name].add(place)
            nodes += parts
        uses.imported.update(_imported_names(nodes))
        uses.looked_up.update(_names_in_strings(nodes))
    return uses


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _imported_names(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield module and name of what a module takes from others; the linter knows that an imported name is used there."""
    called: dict[str, str] = {}
    for node in nodes:
        match node:
            case ast.Import(names=names):
                called |= {alias.asname or alias.name: alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                called |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in names}
                yield from ((module, alias.name) for alias in names)
            case _:
                pass
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=value), attr=name) if value in called:
                yield called[value], name
            case ast.Attribute(value=ast.Attribute() as value, attr=name):
                yield ast.unparse(value), name
            case _:
                pass


def _names_in_strings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield the end of a module's path, and a name in it, of what is looked up by `module:name` or `module.name`, or is
    imported by a program; without a module what may be a constant that is looked up by its name."""
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if len(text) < _LONGEST_CODE:
                yield from re.findall(r"\b([a-z_]\w*)[:.]([A-Za-z_]\w*)", text)
                yield from re.findall(r"\bfrom (?:\w+\.)*(\w+) import (\w+)", text)
                if text.isupper() and text.isidentifier():
                    yield "", text
            case _:
                pass


def _parts(path: Path, tree: ast.Module) -> Iterator[tuple[_Place, ast.AST]]:
    for statement in tree.body:
        if isinstance(statement, _IMPORTS):
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


def _bare_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for part in nodes:
        match part:
            case ast.Name(id=name, ctx=ast.Load()):
                yield name
            case ast.Constant(value=str(text)) if len(text) < _LONGEST_CODE:
                yield from _names_in_code(text)
            case _:
                pass


def _part_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for part in nodes:
        match part:
            case ast.Attribute(attr=name):
                yield name
            case ast.MatchClass(kwd_attrs=names):
                yield from names
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
