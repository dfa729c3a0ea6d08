"""robots.txt, as RFC 9309 reads it: the longest rule that matches decides."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

ME = "quarry"
"""The name that a robots.txt may call Quarry by; also how its User-Agent begins."""

_LARGEST = 500 * 1024
"""Bytes that are read of it (RFC 9309, 2.5)."""
_MOST_RULES = 10_000
_LONGEST_RULE = 2_000
_MOST_STARS = 10
_NAME = re.compile(r"[A-Za-z_-]+|\*")


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: str
    allows: bool

    def matches(self, path: str) -> bool:
        """`*` stands for anything, `$` at the end for the end of the path."""
        pattern, ends = self.pattern.removesuffix("$"), self.pattern.endswith("$")
        first, *others = pattern.split("*")
        if not path.startswith(first):
            return False
        at = len(first)
        last = others.pop() if others and ends else None
        for other in others:
            if (found := path.find(other, at)) < 0:
                return False
            at = found + len(other)
        if last is not None:
            return path.endswith(last) and len(path) - len(last) >= at
        return not ends or at == len(path)


@dataclass(frozen=True, slots=True)
class Robots:
    """What one host asks of robots, as far as it concerns Quarry."""

    rules: tuple[Rule, ...] = ()
    delay: float = 0.0
    """Seconds between two requests (Crawl-delay, which the RFC leaves to the hosts)."""

    @classmethod
    def of(cls, data: bytes) -> "Robots":
        """The groups that name Quarry, or else those for all."""
        groups = list(_groups(data[:_LARGEST].decode("utf-8", "replace")))
        named = [one for one in groups if ME in one.names]
        mine = named or [one for one in groups if "*" in one.names]
        rules = [rule for one in mine for rule in one.rules]
        delays = [one.delay for one in mine]
        return cls(tuple(rules[:_MOST_RULES]), max(delays, default=0.0))

    def allows(self, path: str) -> bool:
        """Whether the path, with its query, may be asked. Of two rules as long, the one that allows."""
        matching = [rule for rule in self.rules if rule.matches(path)]
        return max(((len(rule.pattern), rule.allows) for rule in matching), default=(0, True))[1]


@dataclass(frozen=True, slots=True)
class _Group:
    names: frozenset[str]
    rules: tuple[Rule, ...]
    delay: float


def _groups(text: str) -> Iterator[_Group]:
    """A group begins with the names it is for; what stands above the first is for nobody."""
    names: set[str] = set()
    rules: list[Rule] = []
    delay, is_open = 0.0, True
    for key, value in _lines(text):
        if key == "user-agent" and not is_open:
            yield _Group(frozenset(names), tuple(rules), delay)
            names, rules, delay, is_open = set(), [], 0.0, True
        match key:
            case "user-agent":
                names.add(_name(value))
            case "allow" | "disallow":
                is_open = False
                rules += _rule(key, value)
            case "crawl-delay":
                is_open = False
                delay = _seconds(value)
            case _:
                pass
    yield _Group(frozenset(names), tuple(rules), delay)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.removeprefix("\ufeff").splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().lower(), value.strip()


def _name(value: str) -> str:
    found = _NAME.match(value)
    return found[0].lower() if found else ""


def _rule(key: str, value: str) -> list[Rule]:
    """None for an empty line, and for one that takes too long to compare."""
    pattern = quote(re.sub(r"\*+", "*", value), safe="%/:@!$&'()*+,;=~?")
    if not value or len(pattern) > _LONGEST_RULE or pattern.count("*") > _MOST_STARS:
        return []
    pattern = re.sub(r"%[0-9a-fA-F]{2}", lambda found: found[0].upper(), pattern)
    return [Rule(pattern if pattern.startswith(("/", "*")) else f"/{pattern}", key == "allow")]


def _seconds(value: str) -> float:
    return float(value) if re.fullmatch(r"\d{1,6}(\.\d{1,3})?", value) else 0.0
