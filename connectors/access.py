"""Reader tokens: who may read a document, and what an asker may read."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

PUBLIC = "public"

_TOKEN = re.compile(r"public|user:[^\s:@]+@[^\s:@]+|group:\S+|external:[^\s:]+:\S+")


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
    return token.lower() if token.startswith("user:") else token


@dataclass(frozen=True, slots=True)
class Access:
    """The reader tokens of a document; an asker must contain one of them to read it."""

    readers: frozenset[str]

    def __post_init__(self) -> None:
        if any(parse_reader_token(token) != token for token in self.readers):
            raise ValueError(f"reader tokens are not normalized: {sorted(self.readers)}")

    @classmethod
    def to(cls, tokens: Iterable[str]) -> "Access":
        return cls(frozenset(parse_reader_token(token) for token in tokens))


EVERYBODY = Access(frozenset({PUBLIC}))
NOBODY = Access(frozenset())


@dataclass(frozen=True, slots=True)
class Readers:
    """The reader tokens that an asker holds. No value may read everything."""

    tokens: frozenset[str]

    @classmethod
    def of(cls, *tokens: str) -> "Readers":
        """Return an asker who holds these tokens and, as everybody does, `public`."""
        return cls(frozenset({PUBLIC, *map(parse_reader_token, tokens)}))

    def may_read(self, access: Access) -> bool:
        return not self.tokens.isdisjoint(access.readers)
