"""Who may read a document: one who holds one of its tokens, written in one way."""

import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.access import (
    EVERYBODY,
    NOBODY,
    Access,
    Readers,
    is_account_token,
    make_account_token,
    parse_access,
    parse_account_token,
    parse_reader_token,
)
from tests.support.rights import may_read

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
    assert may_read(Readers.of(*tokens), FINANCE) is may


def test_everybody_holds_the_public_token_and_nobody_reads_without_one() -> None:
    assert Readers.of().tokens == {"public"}
    assert may_read(Readers.of("group:a"), EVERYBODY)
    assert not may_read(Readers.of("group:a"), NOBODY)
    assert not may_read(Readers(frozenset()), EVERYBODY)


def test_addresses_are_compared_in_lower_case_and_other_names_as_they_are() -> None:
    assert parse_reader_token(" user:Ann@Example.com ") == "user:ann@example.com"
    assert parse_reader_token("user:Änne@Example.com") == "user:änne@example.com"
    with pytest.raises(ValueError, match="only look like"):
        parse_reader_token("user:\N{KELVIN SIGN}urt@example.com")
    assert parse_reader_token("group:Finance") == "group:Finance"
    assert parse_reader_token("external:GitHub:Team") == "external:GitHub:Team"


@pytest.mark.parametrize(
    "text",
    ["", "Public", "user:ann", "group:", "group:a b", "external:a", "all:", "all:" + "0" * 64],
)
def test_what_is_no_token_is_refused_with_those_that_are(text: str) -> None:
    message = (
        f"not a reader: {text!r}; write public, user:<email>, group:<id> or external:<source>:<id>"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Access.to([text])


def test_tokens_that_are_not_normalized_are_refused() -> None:
    message = "reader tokens are not normalized: ['public', 'user:Ann@b.c']"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Access(frozenset({frozenset({"user:Ann@b.c", "public"})}))


SPACE, BOARD = ["external:7:space"], ["group:board", "user:ann@example.com"]
RESTRICTED = Access.all_of([SPACE, BOARD])


@pytest.mark.parametrize(
    ("tokens", "may"),
    [
        (["external:7:space", "group:board"], True),
        (["external:7:space", "user:ann@example.com"], True),
        (["external:7:space"], False),
        # Two tokens of one clause do not stand for the other.
        (["group:board", "user:ann@example.com"], False),
    ],
)
def test_every_clause_must_be_met(tokens: list[str], may: bool) -> None:  # noqa: FBT001
    assert may_read(Readers.of(*tokens), RESTRICTED) is may


@pytest.mark.parametrize(
    ("clauses", "same"),
    [
        ([], []),
        ([[]], []),
        ([["group:a"], []], []),
        ([["public"], []], []),
        ([["public", "group:a"]], [["public"]]),
        ([["public"], ["group:a", "public"]], [["public"]]),
        ([["public"], ["group:a"]], [["group:a"]]),
        ([["group:a", "group:b"], ["group:a"]], [["group:a"]]),
        ([["group:a"], ["group:a"]], [["group:a"]]),
        ([["group:b"], ["group:a"]], [["group:a"], ["group:b"]]),
    ],
)
def test_clauses_that_restrict_nobody_fall_away_and_an_empty_one_admits_nobody(
    clauses: list[list[str]], same: list[list[str]]
) -> None:
    expected = frozenset(map(frozenset, same))
    assert Access.all_of(clauses) == Access(expected)
    given = frozenset(map(frozenset, clauses))
    if given != expected:
        with pytest.raises(ValueError, match="clauses are not normalized"):
            Access(given)


def test_a_conjunction_is_one_token_that_its_clauses_alone_decide() -> None:
    (token,) = RESTRICTED.readers
    assert re.fullmatch(r"all:[0-9a-f]{64}", token)
    assert Access.all_of([reversed(BOARD), SPACE]).readers == {token}
    assert Access.all_of([SPACE, BOARD[:1]]).readers != {token}
    assert Access.to(BOARD).readers == frozenset(BOARD)
    assert EVERYBODY.readers == {"public"}
    assert NOBODY.readers == frozenset()
    # The token of an index or a cluster outlives this program: its form may not change.
    assert token == "all:ffa1a3d200cd3787fa1e30bfe035e3461e8815de2d1b97c7ddc9d48f64175f2c"


def test_a_derived_token_is_not_taken_for_the_right_to_read_by_clauses() -> None:
    assert not may_read(Readers(RESTRICTED.readers), RESTRICTED)
    with pytest.raises(ValueError, match="not a reader"):
        Access.to(RESTRICTED.readers)
    with pytest.raises(ValueError, match="not a reader"):
        parse_access([*RESTRICTED.readers])


TOKENS = st.sampled_from(["public", *(f"group:{name}" for name in "abcde")])
CLAUSES = st.lists(st.lists(TOKENS, max_size=3), max_size=4)
HELD = st.lists(TOKENS, max_size=4)


@given(CLAUSES, HELD)
def test_normalizing_changes_nobodys_right(clauses: list[list[str]], held: list[str]) -> None:
    asker = Readers.of(*held)
    meets_all = bool(clauses) and all(asker.tokens & set(clause) for clause in clauses)
    assert may_read(asker, Access.all_of(clauses)) is meets_all


@given(st.lists(CLAUSES, max_size=4), HELD)
def test_one_token_of_the_flat_form_suffices_exactly_where_all_clauses_are_met(
    documents: list[list[list[str]]], held: list[str]
) -> None:
    asker = Readers.of(*held)
    granted = [Access.all_of(clauses) for clauses in documents]
    met = {
        token
        for access in granted
        if access.is_conjunction and may_read(asker, access)
        for token in access.readers
    }
    for access in granted:
        assert bool((asker.tokens | met) & access.readers) is may_read(asker, access)


@given(CLAUSES)
def test_an_access_comes_back_from_json(clauses: list[list[str]]) -> None:
    access = Access.all_of(clauses)
    assert parse_access(json.loads(json.dumps(access.to_json()))) == access


@pytest.mark.parametrize(
    ("access", "value"),
    [
        (NOBODY, []),
        (EVERYBODY, ["public"]),
        (Access.to(BOARD), BOARD),
        (RESTRICTED, [SPACE, BOARD]),
    ],
)
def test_one_clause_is_written_as_before_there_were_several(
    access: Access, value: Sequence[object]
) -> None:
    assert access.to_json() == value


SOME_TOKENS = ["public", "user:ann@example.com", "user:bob@example.com", "group:a", "group:b"]


@given(
    st.lists(st.sets(st.sampled_from(SOME_TOKENS), min_size=1), min_size=1, max_size=4),
    st.sets(st.sampled_from(SOME_TOKENS), max_size=4),
    st.lists(st.sets(st.sampled_from(SOME_TOKENS), max_size=4), max_size=5),
)
def test_with_an_audience_only_what_each_of_them_may_read_may_be_read(
    clauses: list[set[str]], asker: set[str], others: list[set[str]]
) -> None:
    access = Access.all_of(clauses)
    alone = [Readers(frozenset(tokens)) for tokens in (asker, *others)]
    together = alone[0].shown_to(alone[1:])
    assert may_read(together, access) is all(may_read(one, access) for one in alone)
    assert alone[0].shown_to(alone[1:2]).shown_to(alone[2:]) == together


def test_who_holds_what_another_holds_adds_nothing_to_an_audience() -> None:
    ann = Readers.of("user:ann@example.com", "group:a")
    stranger, bob = Readers.of(), Readers.of("user:bob@example.com")
    assert ann.shown_to([stranger, bob]).audience == {frozenset({"public"})}
    assert stranger.shown_to([ann, bob]) == stranger
    assert ann.shown_to([]) == ann == ann.shown_to([ann])


def test_tokens_are_added_to_an_asker_and_the_audience_stays() -> None:
    shown = Readers.of("group:a").shown_to([Readers.of("group:b")])
    more = shown.holding_also(["group:c"])
    assert more.tokens == {"public", "group:a", "group:c"}
    assert more.audience == shown.audience


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_the_token_of_an_account_says_its_id_whatever_that_contains(account: str) -> None:
    token = make_account_token(7, account)
    assert is_account_token(token)
    assert parse_reader_token(token) == token
    assert parse_account_token(token) == account
