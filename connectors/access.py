"""Reader tokens: who may read a document, and what an asker may read."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import quote, unquote

PUBLIC = "public"
CONJUNCTION_PREFIX = "all:"
"""Begins the token derived from a conjunction; nobody may claim one, see `parse_reader_token`."""

Clause: TypeAlias = frozenset[str]
"""Reader tokens, any of which suffices."""

_TOKEN = re.compile(r"public|user:[^\s:@]+@[^\s:@]+|group:\S+|external:[^\s:]+:\S+")
_ACCOUNT = "account/"
_SAFE = "!$&'()*+,/:;=@~"
_PUBLIC_CLAUSE: Clause = frozenset({PUBLIC})


@lru_cache(maxsize=16_384)
def parse_reader_token(text: str) -> str:
    """Validate a reader token and normalize it: e-mail addresses are compared in lower case.

    Raises:
        ValueError: not `public`, `user:<email>`, `group:<id>` or `external:<source>:<id>`.
    """
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise ValueError(
            f"not a reader: {text!r}; write public, user:<email>, group:<id> or"
            " external:<source>:<id>"
        )
    return _fold_address(token) if token.startswith("user:") else token


def _fold_address(token: str) -> str:
    """Fold the case of an address.

    Letters of other scripts whose lower case is a letter of ASCII would make it somebody else's.
    """
    lowered = token.lower()
    if lowered.isascii() and not token.isascii():
        raise ValueError(
            f"not an address: {token!r} is written with letters that only look like it"
        )
    return lowered


def make_external_token(source_id: int, local_id: str) -> str:
    """Return the token of a group, a scope or an account of a source, by its id there."""
    return f"external:{source_id}:{quote(local_id, safe=_SAFE)}"


def make_account_token(source_id: int, local_id: str) -> str:
    """Return the token of somebody's account at a source: a group whose member is the person."""
    return make_external_token(source_id, f"{_ACCOUNT}{local_id}")


def is_account_token(token: str) -> bool:
    return token.startswith("external:") and token.split(":", 2)[2].startswith(_ACCOUNT)


def parse_account_token(token: str) -> str:
    """Return the id that an account has at its source, by its token: the reverse of `make_account_token`."""
    return unquote(token.split(":", 2)[2].removeprefix(_ACCOUNT))


@dataclass(frozen=True, slots=True)
class Access:
    """The clauses of a document, all of which an asker must meet, each by holding one of its tokens.

    Without a clause nobody may read it. Equal rights are equal values as far as clauses alone can show:
    `Access.to` and `Access.all_of` normalize, and the constructor refuses what is not normalized.
    """

    clauses: frozenset[Clause]

    def __post_init__(self) -> None:
        for clause in self.clauses:
            if any(parse_reader_token(token) != token for token in clause):
                raise ValueError(f"reader tokens are not normalized: {sorted(clause)}")
        if _normalize(self.clauses) != self.clauses:
            raise ValueError(f"clauses are not normalized: {sorted(map(sorted, self.clauses))}")

    @classmethod
    def to(cls, tokens: Iterable[str]) -> "Access":
        """Return the access of those who hold one of the tokens."""
        return cls.all_of([tokens])

    @classmethod
    def all_of(cls, clauses: Iterable[Iterable[str]]) -> "Access":
        """Return the access of those who hold a token of each clause."""
        parsed = (frozenset(map(parse_reader_token, clause)) for clause in clauses)
        return cls(_normalize(frozenset(parsed)))

    @property
    def is_conjunction(self) -> bool:
        return len(self.clauses) > 1

    @property
    def readers(self) -> frozenset[str]:
        """The tokens of which one suffices: of the one clause, or the token derived from several.

        An index compares nothing else. Only those who meet every clause are given a derived token.
        """
        if self.is_conjunction:
            return frozenset({_derive_token(self.clauses)})
        return next(iter(self.clauses), frozenset())

    def to_json(self) -> Sequence[str] | Sequence[Sequence[str]]:
        """Return a JSON value: the tokens of one clause, or a list of clauses. See `parse_access`."""
        if self.is_conjunction:
            return sorted(map(sorted, self.clauses))
        return sorted(self.readers)


def describe_readers(access: Access) -> list[str]:
    """Return what admits to a document, each enough by itself: tokens, or what is to be held together."""
    if not access.is_conjunction:
        return sorted(access.readers)
    clauses = sorted(map(sorted, access.clauses), key=len)
    return [" and ".join(f"({' or '.join(each)})" if each[1:] else each[0] for each in clauses)]


def parse_access(value: Sequence[str] | Sequence[Sequence[str]]) -> Access:
    """Reverse `Access.to_json`.

    Raises:
        ValueError: it contains what is not a reader token.
    """
    tokens = [each for each in value if isinstance(each, str)]
    clauses = [each for each in value if not isinstance(each, str)]
    return Access.all_of([tokens, *clauses] if tokens or not clauses else clauses)


def _normalize(clauses: frozenset[Clause]) -> frozenset[Clause]:
    """Return the fewest clauses that the same askers meet; none if one of them admits nobody.

    Everybody meets a clause with `public`. One that contains another is met by whoever meets the other.
    """
    if not all(clauses):
        return frozenset()
    restricting = [clause for clause in clauses if PUBLIC not in clause]
    if not restricting:
        return frozenset({_PUBLIC_CLAUSE}) if clauses else frozenset()
    return frozenset(
        clause for clause in restricting if not any(other < clause for other in restricting)
    )


@lru_cache(maxsize=16_384)
def _derive_token(clauses: frozenset[Clause]) -> str:
    canonical = json.dumps(sorted(map(sorted, clauses)), separators=(",", ":"))
    return CONJUNCTION_PREFIX + hashlib.sha256(canonical.encode()).hexdigest()


EVERYBODY = Access(frozenset({_PUBLIC_CLAUSE}))
NOBODY = Access(frozenset())


@dataclass(frozen=True, slots=True)
class Readers:
    """The reader tokens that an asker holds. No value may read everything."""

    tokens: frozenset[str]
    audience: frozenset[frozenset[str]] = frozenset()
    """What each person holds who is shown what the asker finds, such as the members of a channel: only what all of
    them may read as well is found. One whose tokens include those of another adds nothing, and is left out."""

    @classmethod
    def of(cls, *tokens: str) -> "Readers":
        """Return an asker who holds these tokens and, as everybody does, `public`."""
        return cls(frozenset({PUBLIC, *map(parse_reader_token, tokens)}))

    @property
    def token_sets(self) -> tuple[frozenset[str], ...]:
        """The tokens of the asker, then those of everybody in the audience: a document must name one of each."""
        return (self.tokens, *self.audience)

    def holding_also(self, tokens: Iterable[str]) -> "Readers":
        """Return the same for an asker who holds these tokens besides. The audience stays."""
        return Readers(self.tokens.union(tokens), self.audience)

    def shown_to(self, others: Iterable["Readers"]) -> "Readers":
        """Return the same for an asker whose findings others see, too: what one of them may not read is not found."""
        held = {tokens for one in others for tokens in one.token_sets}.union(self.audience)
        least = (one for one in held if not any(other < one for other in held))
        return Readers(self.tokens, frozenset(one for one in least if not self.tokens <= one))

    def hold_any(self, tokens: Collection[str]) -> bool:
        """Return whether the asker, and everybody in the audience, holds one of these tokens."""
        return not any(held.isdisjoint(tokens) for held in self.token_sets)
