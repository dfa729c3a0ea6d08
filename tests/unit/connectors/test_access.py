"""Who may read a document: one who holds one of its tokens, written in one way."""

import re

import pytest

from connectors.access import EVERYBODY, NOBODY, Access, Readers, parse_reader_token

FINANCE = Access.to(["user:Ann@Example.com", "group:Finance"])


@pytest.mark.parametrize(
    ("tokens", "may"),
    [
        (["user:ANN@example.com"], True),
        (["group:Finance", "group:other"], True),
        (["group:finance"], False),
        (["user:bob@example.com"], False),
        ([], False),
    ],
)
def test_one_token_in_common_suffices(tokens: list[str], may: bool) -> None:  # noqa: FBT001
    assert Readers.of(*tokens).may_read(FINANCE) is may


def test_everybody_holds_the_public_token_and_nobody_reads_without_one() -> None:
    assert Readers.of().tokens == {"public"}
    assert Readers.of("group:a").may_read(EVERYBODY)
    assert not Readers.of("group:a").may_read(NOBODY)
    assert not Readers(frozenset()).may_read(EVERYBODY)


def test_addresses_are_compared_in_lower_case_and_other_names_as_they_are() -> None:
    assert parse_reader_token(" user:Ann@Example.com ") == "user:ann@example.com"
    assert parse_reader_token("group:Finance") == "group:Finance"
    assert parse_reader_token("external:GitHub:Team") == "external:GitHub:Team"


@pytest.mark.parametrize("text", ["", "Public", "user:ann", "group:", "group:a b", "external:a"])
def test_what_is_no_token_is_refused_with_those_that_are(text: str) -> None:
    message = (
        f"not a reader: {text!r}; write public, user:<email>, group:<id> or external:<source>:<id>"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Access.to([text])


def test_tokens_that_are_not_normalized_are_refused() -> None:
    message = "reader tokens are not normalized: ['public', 'user:Ann@b.c']"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Access(frozenset({"user:Ann@b.c", "public"}))
