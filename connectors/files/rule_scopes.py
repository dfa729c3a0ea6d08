"""Access rules as scopes: a file names its rule, and a permission sync lists the readers of each rule.

The token of a rule says which files the rule decides, and nothing else. So it stays the same while readers come and go. And
whatever else changes in the rules, it never stands for other files: a file that carries it, however long ago it was
read, is one whose readers are those of the rule with this token, or nobody's if there is no such rule any more.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

from connectors.access import EVERYBODY, NOBODY, Access, make_external_token
from connectors.connector import ReaderGroup
from connectors.files.access_rules import ACCESS_FILE, AccessRules, Rule
from connectors.files.paths import GlobPattern, PathParts
from connectors.text_cleaning import shorten_title, to_one_line

_FORMAT = 1
"""To be raised when patterns match other files than before."""
_MOST_FOLDERS = 8
"""Folders by which patterns are distinguished."""

_Folders: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RulePlace:
    """What the rules of a source apply to."""

    source_id: int
    address: Sequence[str]
    """Of the files: after it changes, a path may be that of another file, and every rule has another token."""
    title: str = ""
    """What people call the readers of a rule that no access file contains."""


@dataclass(frozen=True, slots=True)
class _RuleScope:
    match: GlobPattern
    access: Access
    """Of the files that the rule decides."""
    group: ReaderGroup | None
    """None if everybody may read them."""


@dataclass(frozen=True, slots=True)
class RuleScopes:
    scopes: Sequence[_RuleScope]

    @classmethod
    def of(cls, rules: AccessRules, place: RulePlace) -> Self:
        # The second rule of a pattern decides nothing.
        deciding: dict[str, Rule] = {}
        for rule in rules.rules:
            deciding.setdefault(rule.match.pattern, rule)
        earlier = _sum_earlier([rule.match for rule in deciding.values()])
        scopes = zip(deciding.values(), earlier, strict=True)
        return cls(tuple(_make_scope(rule, before, place) for rule, before in scopes))

    def find_access(self, path: PathParts) -> Access:
        """Return the access of a file: that of the first rule that matches it, or nobody's."""
        found = (scope.access for scope in self.scopes if scope.match.matches(path))
        return next(found, NOBODY)

    def list_groups(self) -> Iterator[ReaderGroup]:
        """Yield the readers of each rule. Rules that everybody meets need none."""
        yield from (scope.group for scope in self.scopes if scope.group is not None)


def _make_scope(rule: Rule, earlier: int, place: RulePlace) -> _RuleScope:
    if rule.access == EVERYBODY:
        return _RuleScope(rule.match, EVERYBODY, group=None)
    token = make_external_token(place.source_id, f"rule/{_make_key(rule, earlier, place)}")
    # A source may not make groups of others members of its own: their tokens stay with the file.
    foreign = {each for each in rule.access.readers if _is_foreign(each, place.source_id)}
    name = shorten_title(to_one_line(place.title or f"{ACCESS_FILE}: {rule.match.pattern}"))
    group = ReaderGroup(token, rule.access.readers - foreign, name)
    return _RuleScope(rule.match, Access.to([token, *foreign]), group)


def _is_foreign(token: str, source_id: int) -> bool:
    return token.startswith("external:") and not token.startswith(f"external:{source_id}:")


def _make_key(rule: Rule, earlier: int, place: RulePlace) -> str:
    """Return a hash of all that decides which files are those of a rule: 128 bits, since who could make two alike writes the rules."""
    files = [_FORMAT, *place.address, rule.match.pattern, earlier]
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()[:32]


def _sum_earlier(patterns: Sequence[GlobPattern]) -> Iterator[int]:
    """Yield for each pattern the earlier ones that may match a file of it: those files are not its own.

    A sum of hashes stands for them in whatever order, and takes the same time however many they are. No two patterns are equal.
    """
    at = defaultdict[_Folders, int](int)
    below = defaultdict[_Folders, int](int)
    for pattern in patterns:
        folders = pattern.fixed_folders[:_MOST_FOLDERS]
        above = [folders[:end] for end in range(len(folders))]
        yield below[folders] + sum(at[each] for each in above)
        number = _hash_pattern(pattern.pattern)
        at[folders] += number
        for each in (*above, folders):
            below[each] += number


def _hash_pattern(pattern: str) -> int:
    return int.from_bytes(hashlib.sha256(pattern.encode(errors="surrogatepass")).digest())
