"""A token of a rule stands for the same files whatever else is edited, and its members are listed apart."""

import hashlib
import json
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.access import EVERYBODY, NOBODY, PUBLIC, Access
from connectors.connector import ReaderGroup
from connectors.files import rule_scopes
from connectors.files.access_rules import OPEN_TO_ALL, parse_access_rules
from connectors.files.paths import GlobPattern
from connectors.files.rule_scopes import RulePlace, RuleScopes
from tests.contract.connector_worlds.held import resolve
from tests.support.rights import may_read

PLACE = RulePlace(7, ["/srv/handbook"])
HR, ANN, BO = "group:hr", "user:ann@example.com", "user:bo@example.com"
PATHS = [
    tuple(path.split("/"))
    for path in ("a.md", "a.txt", "hr/a.md", "hr/b.md", "hr/pay/a.md", "it/a.md", "it/hr/a.md")
]
PATTERNS = ["**", "*.md", "**/*.md", "hr", "hr/**", "hr/*", "hr/a.md", "hr/pay/**", "it/**", "i[t]/**", "*/hr/**"]  # fmt: skip
_Rules: TypeAlias = Sequence[tuple[str, Collection[str]]]


def scopes(rules: _Rules, place: RulePlace = PLACE) -> RuleScopes:
    written = {"rules": [{"match": match, "readers": list(readers)} for match, readers in rules]}
    return RuleScopes.of(parse_access_rules(json.dumps(written).encode(), "access.yaml"), place)


def tokens(rules: _Rules, place: RulePlace = PLACE) -> list[str]:
    return [group.token for group in scopes(rules, place).list_groups()]


def access(rules: _Rules, path: str) -> Access:
    return scopes(rules).find_access(tuple(path.split("/")))


def readers(rules: _Rules, path: Sequence[str]) -> frozenset[str]:
    """Whom the rules admit by themselves."""
    named = (of for match, of in rules if GlobPattern.parse(match).matches(path))
    return frozenset(next(named, ()))


def test_a_file_names_its_rule_and_not_its_readers() -> None:
    rules = [("hr/**", [HR, ANN]), ("board/**", []), ("*.md", [PUBLIC, BO])]
    hr, board = scopes(rules).list_groups()
    assert hr == ReaderGroup(hr.token, frozenset({HR, ANN}), "access.yaml: hr/**")
    assert board == ReaderGroup(board.token, frozenset(), "access.yaml: board/**")
    assert hr.token.startswith("external:7:rule/")
    assert access(rules, "hr/pay.md") == Access.to([hr.token])
    assert access(rules, "board/a.md") == Access.to([board.token])
    assert access(rules, "a.md") == EVERYBODY
    assert access(rules, "b.txt") == NOBODY


def test_without_an_access_file_everybody_reads_and_there_is_no_group() -> None:
    open_scopes = RuleScopes.of(OPEN_TO_ALL, PLACE)
    assert open_scopes.find_access(("hr", "a.md")) == EVERYBODY
    assert list(open_scopes.list_groups()) == []


def test_readers_come_and_go_without_another_token() -> None:
    before = tokens([("hr/**", [HR]), ("**", [BO])])
    assert tokens([("hr/**", []), ("**", [HR, ANN, BO])]) == before
    assert tokens([("hr/**", [PUBLIC]), ("**", [HR])]) == before[1:]


def test_rules_of_other_folders_change_no_token() -> None:
    hr, it = tokens([("hr/**", [HR]), ("it/**", [ANN])])
    assert tokens([("it/**", [ANN]), ("hr/**", [HR])]) == [it, hr]
    assert tokens([("law/a/*", [BO]), ("law", []), ("hr/**", [HR])])[2:] == [hr]
    (last,) = tokens([("**", [HR])])
    assert tokens([("hr/**", [HR]), ("**", [HR])])[1] != last
    # In whatever order, they leave the same files to the last one.
    assert (
        tokens([("hr/**", [HR]), ("it/**", [ANN]), ("**", [BO])])[2]
        == tokens([("it/**", [ANN]), ("hr/**", [HR]), ("**", [BO])])[2]
    )


@pytest.mark.parametrize(
    "place", [RulePlace(8, ["/srv/handbook"]), RulePlace(7, ["/srv/other"])], ids=["id", "address"]
)
def test_the_same_rules_elsewhere_have_other_tokens(place: RulePlace) -> None:
    rules = [("hr/**", [HR]), ("**", [BO])]
    assert not set(tokens(rules)) & set(tokens(rules, place))


def test_a_pattern_that_is_given_twice_is_one_rule() -> None:
    rules = [("hr/**", [HR]), ("hr/**", [BO]), ("hr/**", [ANN])]
    (group,) = scopes(rules).list_groups()
    assert group.members == {HR}
    assert access(rules, "hr/a.md") == Access.to([group.token])


def test_groups_of_other_sources_stay_with_the_file() -> None:
    rules = [("hr/**", [HR, "external:2:C1", "external:7:x"])]
    (group,) = scopes(rules).list_groups()
    assert group.members == {HR, "external:7:x"}
    assert access(rules, "hr/a.md") == Access.to([group.token, "external:2:C1"])


def test_a_name_of_a_rule_is_one_line_of_bounded_length() -> None:
    (group,) = scopes([("a\nb/" + "c" * 1000, [HR])]).list_groups()
    assert group.name.startswith("access.yaml: a b/cc")
    assert len(group.name) < 400


def test_many_rules_and_deep_patterns_are_told_apart() -> None:
    homes = [(f"home/p{n}/**", [f"user:p{n}@example.com"]) for n in range(300)]
    assert len(set(tokens([*homes, ("**", [HR])]))) == 301
    assert len(set(tokens([("a/" * 500 + f"{n}", [HR]) for n in range(10)]))) == 10


def test_what_is_hashed_for_a_rule_does_not_grow_with_the_rules_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of these may match a file of every other: an access file has space for twenty thousand such."""
    hashed: list[int] = []

    def hash_counted(data: bytes) -> object:
        hashed.append(len(data))
        return hashlib.sha256(data)

    monkeypatch.setattr(rule_scopes, "hashlib", SimpleNamespace(sha256=hash_counted))
    rules = [(f"**/{n}.md", [HR]) for n in range(1_000)]
    assert len(set(tokens(rules))) == len(rules)
    assert sum(hashed) < 1_000 * len(rules)


reader_sets = st.frozensets(st.sampled_from([HR, ANN, BO, PUBLIC]), max_size=2)
rule_lists = st.lists(st.tuples(st.sampled_from(PATTERNS), reader_sets), max_size=5)


@st.composite
def edits(draw: st.DrawFn) -> tuple[_Rules, _Rules]:
    """Return rules before and after they were moved, removed, added and given to others."""
    before = draw(rule_lists.filter(lambda rules: len(rules) > 0))
    moved = draw(st.permutations(before))[draw(st.integers(0, 1)) :]
    kept = [(match, draw(st.one_of(st.just(of), reader_sets))) for match, of in moved]
    return before, [*draw(rule_lists.filter(lambda rules: len(rules) < 2)), *kept]


@given(edits())
def test_a_file_that_was_read_by_other_rules_is_shown_to_nobody_by_mistake(
    edited: tuple[_Rules, _Rules],
) -> None:
    """Its access is of former rules, the members of groups are of the present ones, and nothing is in between."""
    before, after = edited
    old, groups = scopes(before), list(scopes(after).list_groups())
    for path in PATHS:
        granted = old.find_access(path)
        for asker in (HR, ANN, BO):
            if granted != EVERYBODY and may_read(resolve(groups, asker), granted):
                assert readers(after, path) & {asker, PUBLIC}


@given(rule_lists)
def test_exactly_the_readers_of_a_rule_read_its_files(
    rules: list[tuple[str, frozenset[str]]],
) -> None:
    made = scopes(rules)
    groups = list(made.list_groups())
    assert len({group.token for group in groups}) == len(groups)
    for path in PATHS:
        for asker in (HR, ANN, BO):
            is_admitted = not readers(rules, path).isdisjoint({asker, PUBLIC})
            assert may_read(resolve(groups, asker), made.find_access(path)) == is_admitted
