"""Parse `access.yaml`, in which the owner of a folder or repository defines who may read what.

    rules:
      - match: hr/**
        readers: [group:hr]
      - match: "**"
        readers: [public]

The first rule that matches a file decides; a file without a matching rule is readable by nobody. See `rule_scopes`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from connectors.access import EVERYBODY, Access
from connectors.errors import SourceError
from connectors.files.paths import GlobPattern

ACCESS_FILE = "access.yaml"
MISSPELLED_NAMES = tuple(
    f"{name}.{ending}"
    for name in ("access", "Access", "ACCESS")
    for ending in ("yaml", "yml", "Yaml", "Yml", "YAML", "YML")
    if f"{name}.{ending}" != ACCESS_FILE
)
"""If a file of such a name were ignored, everybody might read what its rules are to protect."""

_LARGEST = 1_000_000
_TEXT_TAG = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class Rule:
    match: GlobPattern
    access: Access


@dataclass(frozen=True, slots=True)
class AccessRules:
    rules: tuple[Rule, ...]


OPEN_TO_ALL = AccessRules((Rule(GlobPattern.parse("**"), EVERYBODY),))


class _RuleError(Exception):
    def __init__(self, node: yaml.Node, message: str) -> None:
        super().__init__(message)
        self.line = node.start_mark.line + 1


def parse_access_rules(data: bytes, name: str) -> AccessRules:
    """Parse an access file; messages call it `name`.

    Raises:
        SourceError: the file is malformed; the message names it, the line, and what is wrong.
    """
    try:
        return AccessRules(tuple(_parse_rules(_compose(_decode(data, name), name))))
    except _RuleError as error:
        raise SourceError(f"{name}, line {error.line}: {error}") from error


def _decode(data: bytes, name: str) -> str:
    if len(data) > _LARGEST:
        raise SourceError(f"{name}, line 1: the file is larger than {_LARGEST:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{name}, line {line}: not UTF-8; save the file as UTF-8") from error


def _compose(text: str, name: str) -> yaml.Node:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise SourceError(f"{name}, line {line}: not YAML: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SourceError(f"{name}, line {line}: a character that YAML does not allow") from error
    except RecursionError as error:
        raise SourceError(f"{name}, line 1: nested too deeply") from error
    if root is None:
        raise SourceError(f"{name}, line 1: no rules; write 'rules:' and a list below it")
    return root


def _parse_rules(root: yaml.Node) -> Iterator[Rule]:
    fields = _parse_fields(root, {"rules"}, "the file")
    for node in _parse_items(fields["rules"], "rules"):
        rule = _parse_fields(node, {"match", "readers"}, "a rule")
        yield Rule(_parse_pattern(rule["match"]), _parse_access(rule["readers"]))


def _parse_fields(node: yaml.Node, names: set[str], what: str) -> Mapping[str, yaml.Node]:
    expected = " and ".join(sorted(names))
    if not isinstance(node, yaml.MappingNode):
        raise _RuleError(node, f"{what} must have the keys {expected}")
    fields: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else None
        if name not in names:
            raise _RuleError(key, f"unknown key {name!r}; {what} has {expected}")
        if name in fields:
            raise _RuleError(key, f"{name!r} is given twice")
        fields[name] = value
    if missing := names - fields.keys():
        raise _RuleError(node, f"{what} has no {' and no '.join(sorted(missing))}")
    return fields


def _parse_items(node: yaml.Node, name: str) -> list[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        raise _RuleError(node, f"{name!r} must be a list")
    return list(node.value)


def _parse_text(node: yaml.Node, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag != _TEXT_TAG:
        raise _RuleError(node, f"{what} must be text; put numbers and dates in quotes")
    return str(node.value)


def _parse_pattern(node: yaml.Node) -> GlobPattern:
    text = _parse_text(node, "'match'")
    try:
        return GlobPattern.parse(text)
    except ValueError as error:
        raise _RuleError(node, f"not a pattern: {error}") from error


def _parse_access(node: yaml.Node) -> Access:
    return Access.to(
        token for item in _parse_items(node, "readers") for token in _parse_readers(item)
    )


def _parse_readers(node: yaml.Node) -> frozenset[str]:
    text = _parse_text(node, "a reader")
    try:
        return Access.to([text]).readers
    except ValueError as error:
        raise _RuleError(node, str(error)) from error
