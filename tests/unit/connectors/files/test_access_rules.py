import pytest

from connectors.access import EVERYBODY, NOBODY, Access
from connectors.errors import ActionRequiredError
from connectors.files.access_rules import OPEN_TO_ALL, AccessRules, parse_access_rules


def find_readers(rules: AccessRules, path: str) -> Access:
    """Return the readers of the rule that decides a file."""
    parts = path.split("/")
    return next((rule.access for rule in rules.rules if rule.match.matches(parts)), NOBODY)


RULES = b"""\
# who may read the handbook
rules:
  - match: hr/public.md
    readers: [public]
  - match: hr/**
    readers:
      - group:hr
      - user:Ann@Example.com
  - match: "board/*"
    readers: []
  - match: "**/*.md"
    readers: [public]
"""


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("hr/public.md", EVERYBODY),  # the first match wins
        ("hr/pay/2026.md", Access.to(["group:hr", "user:ann@example.com"])),
        ("board/minutes.md", NOBODY),
        ("board/old/minutes.md", EVERYBODY),  # board/* means the folder itself only
        ("a/b.md", EVERYBODY),
        ("a/b.pdf", NOBODY),  # no rule matches
    ],
)
def test_the_first_rule_that_matches_decides(path: str, access: Access) -> None:
    assert find_readers(parse_access_rules(RULES, "access.yaml"), path) == access


def test_without_rules_in_the_list_nobody_reads_anything() -> None:
    assert find_readers(parse_access_rules(b"rules: []\n", "access.yaml"), "a.md") == NOBODY


def test_without_a_file_everybody_reads_everything() -> None:
    assert find_readers(OPEN_TO_ALL, "hr/a.md") == EVERYBODY


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "no rules"),
        ("# only a comment\n", 1, "no rules"),
        ("- a\n", 1, "the file must have the keys rules"),
        ("rules: x\n", 1, "must be a list"),
        ("rules:\n", 1, "must be a list"),
        ("rules: []\nrule: []\n", 2, "unknown key 'rule'"),
        ("rules: []\nrules: []\n", 2, "twice"),
        ("rules:\n  - hr\n", 2, "a rule must have"),
        ("rules:\n  - match: a\n", 2, "no readers"),
        ("rules:\n  - match: a\n    reader: [public]\n", 3, "unknown key 'reader'"),
        ("rules:\n  - match: a\n    readers: public\n", 3, "must be a list"),
        ("rules:\n  - match: a\n    readers: [ann@example.com]\n", 3, "not a reader"),
        ("rules:\n  - match: a\n    readers: [all:00ff]\n", 3, "not a reader"),
        ("rules:\n  - match: a\n    readers:\n      - public\n      - group\n", 5, "not a reader"),
        ("rules:\n  - match: a\n    readers: [[public]]\n", 3, "must be text"),
        ("rules:\n  - match: 2024\n    readers: []\n", 2, "must be text"),
        ("rules:\n  - match:\n    readers: []\n", 2, "must be text"),
        ("rules:\n\n  - match: a**\n    readers: []\n", 3, "not a pattern"),
        ("rules:\n  - match: [a\n", 3, "not YAML"),
        ("rules:\n\t- match: a\n", 2, "not YAML"),
        ("rules: []\n---\nrules: []\n", 2, "not YAML"),
        ("rules: []\n# \x01\n", 2, "does not allow"),
        ("? [a, b]\n: c\n", 1, "unknown key"),
        ("[" * 2000, 1, "too deeply"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(ActionRequiredError, match=rf"^/kb/access\.yaml, line {line}: .*{says}"):
        parse_access_rules(text.encode(), "/kb/access.yaml")


def test_a_file_that_is_not_utf8_is_refused_with_its_line() -> None:
    with pytest.raises(ActionRequiredError, match="line 2: not UTF-8"):
        parse_access_rules("rules: []\n# für\n".encode("latin-1"), "access.yaml")


def test_a_file_of_any_size_is_not_parsed() -> None:
    with pytest.raises(ActionRequiredError, match="larger than"):
        parse_access_rules(b"#" * 2_000_000, "access.yaml")


def test_a_byte_order_mark_is_no_mistake() -> None:
    rules = parse_access_rules(b"\xef\xbb\xbf" + RULES, "access.yaml")
    assert find_readers(rules, "a.md") == EVERYBODY
