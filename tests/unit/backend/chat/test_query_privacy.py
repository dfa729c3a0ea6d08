"""What of a web query is kept back: terms that private documents alone hold, however they are written, and nothing else."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.privacy.private_terms import letters_of
from backend.chat.privacy.query_privacy import (
    AllowedQuery,
    CheckedQuery,
    RefusedQuery,
    TurnTexts,
    keep_private_terms_out,
)

PRIVATE = (
    "Project Bluebird Falcon starts in May. Ann Lee and Bob O'Neil pay €3,500 or 12 % for ERR-1042 and the "
    '"Golden Goose" plan, see 《青鸟计划》, 「カワセミ」 and "Nightingale". Annual Leave is 25 days; annual leave counts. '
    "The budget is 4.2 million euros; contact ann.lee@corp.example for getUserName in report_final.pdf. "
    "Das ist „vorläufig“ für Müller Łódź GmbH.\nNehmen Sie ¥800."
)


def check(query: str, own: str = "", public: str = "") -> CheckedQuery:
    return keep_private_terms_out(query, TurnTexts([PRIVATE], [public], [own]))


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("Project Bluebird Falcon launch date", "launch date"),
        ("bluebird falcon launch", "launch"),
        ("what does falcon mean", "what does mean"),
        ("ERR-1042 fix", "fix"),
        ("err 1042 fix", "fix"),
        ("ＥＲＲ１０４２ fix", "fix"),
        ("E.R.R.1.0.4.2 fix", "fix"),
        ("fix xERR-1042y", "fix"),
        ("fix ER ERR-1042 R-1042 now", "fix now"),
        ("“golden goose” story", "story"),
        ('site:corp.example "nightingale" song', "song"),
        ("关于ERR-1042的解决办法", "关于 的解决办法"),
        ("青鸟计划 是什么", "是什么"),
        ("青 鸟 计 划是什么", "是什么"),
        ("カワセミ とは 鳥", "とは 鳥"),
        ("€3,500 tax", "tax"),
        ("3500 tax", "tax"),
        ("3.500 EUR tax", "tax"),
        ("800 yen coin", "coin"),
        ("12 percent tax", "tax"),
        ("25 days of leave law", "of leave law"),
        ("4.2 million euro budget", "budget"),
        ("getusername java", "java"),
        ("report final pdf template", "template"),
        ("MULLER LODZ register", "register"),
    ],
)
def test_what_only_private_documents_hold_is_taken_out(query: str, left: str) -> None:
    found = check(query)
    assert isinstance(found, AllowedQuery)
    assert found.text == left
    assert found.removed


@pytest.mark.parametrize(
    "query",
    [
        "annual leave law in Spain",
        "vorläufig übersetzen",
        "how to set up a printer",
        "project management in May",
        "error 10421 of a printer",
        "125 days in months",
        "35001 Padua",
        "what does eagle mean",
        "",
        "the of and",
    ],
)
def test_ordinary_words_and_other_numbers_stay(query: str) -> None:
    assert check(query) == AllowedQuery(query)


def test_capitals_of_german_grammar_are_no_names() -> None:
    german = (
        "Die Richtlinie gilt für alle. Neue Mitarbeiter bekommen einen Rechner, und neue Geräte sind im Lager. "
        "Das Projekt leitet Gerda Krummholz aus der Zentrale, die auch für den Einkauf da ist."
    )
    texts = TurnTexts([german], [], [])
    for query in ("die richtlinie", "neue mitarbeiter einarbeiten"):
        assert keep_private_terms_out(query, texts) == AllowedQuery(query)
    found = keep_private_terms_out("gerda krummholz lebenslauf", texts)
    assert found == AllowedQuery("lebenslauf", ("gerda krummholz",))


def test_what_the_asker_wrote_stays() -> None:
    query = "ERR-1042 Ann Lee “Golden Goose” 25 days"
    assert check(query, own="Ask ann lee on err-1042, golden goose, in 25 days") == AllowedQuery(
        query
    )
    assert check("Ann Lee career", own="What does Ann say?") == AllowedQuery(
        "Ann career", ("Ann Lee",)
    )
    # Two words of the asker that only the documents bring together.
    assert check("Ann Lee career", own="Did Ann meet Mrs Lee?") == AllowedQuery(
        "career", ("Ann Lee",)
    )
    assert check("25 days law", own="Why 125 days?") == AllowedQuery("days law", ("25 days",))


def test_what_public_documents_say_stays() -> None:
    assert check("Ann Lee career", public="ANN LEE leads the team.") == AllowedQuery(
        "Ann Lee career"
    )
    assert check("ERR-1042 fix", public="See ERR-10421.") == AllowedQuery("fix", ("ERR-1042",))


def test_a_query_of_private_terms_alone_is_refused() -> None:
    assert check("Golden Goose") == RefusedQuery(("Golden Goose",))
    assert check("what is the Golden Goose?") == RefusedQuery(("Golden Goose",))


def test_a_query_that_quotes_a_private_document_loses_the_quotation() -> None:
    assert check('"starts in May. Ann" novel') == AllowedQuery("novel", ("starts in May. Ann",))


ORDINARY = ("printer", "setup", "weather", "law", "価格", "天气", "höhe", "price", "2024")
OTHER = "Lorem ipsum dolor sit amet. "
syllables = st.sampled_from(["bra", "zun", "kel", "mop", "fli", "gro", "vex", "quo"])
made_up = st.lists(syllables, min_size=2, max_size=3).map(lambda parts: "".join(parts).capitalize())
codes = st.from_regex(r"[A-Z]{2,4}-[0-9]{3,5}", fullmatch=True)
names = st.tuples(made_up, made_up).map(" ".join)
quotes = st.tuples(made_up, made_up).map(lambda words: f'"{" ".join(words).lower()}"')
terms = st.one_of(codes, names, quotes)


@st.composite
def disguised(draw: st.DrawFn, term: str) -> str:
    """A term in other letters, with something between them."""
    text = draw(st.sampled_from([str.upper, str.lower, str.title, wide, decomposed]))(term)
    joint = draw(st.sampled_from(["", "", " ", "-", ". ", "\u200b", "_"]))
    around = draw(st.sampled_from(["", "x", "(", "的"]))
    return around + joint.join(text) + around


def wide(text: str) -> str:
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


@given(
    st.data(),
    st.lists(terms, min_size=1, max_size=3),
    st.lists(st.sampled_from(ORDINARY), max_size=4),
)
def test_no_private_term_survives_and_every_ordinary_word_does(
    data: st.DataObject, private: list[str], words: list[str]
) -> None:
    pieces = data.draw(st.permutations([*words, *(data.draw(disguised(one)) for one in private)]))
    texts = TurnTexts([OTHER + f"We have {one} here. " for one in private], [OTHER], ["hello"])
    found = keep_private_terms_out(" ".join(pieces), texts)
    assert found.removed
    if isinstance(found, RefusedQuery):
        return
    left = letters_of(found.text)
    assert not any(letters_of(one) in left for one in private)
    assert [one for one in found.text.split() if one in ORDINARY] == [
        one for one in pieces if one in ORDINARY
    ]
    assert keep_private_terms_out(found.text, texts) == AllowedQuery(found.text)


@given(st.data(), terms, st.sampled_from(["own", "public"]))
def test_what_is_known_to_others_or_to_the_asker_is_sent_as_it_is(
    data: st.DataObject, term: str, known_from: str
) -> None:
    query = f"printer {data.draw(st.sampled_from([term, term.upper(), wide(term)]))} price"
    known = [f"I know {term.lower()}."]
    of = {"own": known} if known_from == "own" else {"public": known}
    texts = TurnTexts(**{"private": [f"We have {term} here."], "public": [], "own": [], **of})
    assert keep_private_terms_out(query, texts) == AllowedQuery(query)


@given(st.text(), st.lists(st.text(), max_size=2), st.text(), st.text())
def test_any_text_is_checked(query: str, private: list[str], public: str, own: str) -> None:
    found = keep_private_terms_out(query, TurnTexts([*private, query], [public], [own]))
    if isinstance(found, AllowedQuery) and not found.removed:
        assert found.text == query
    same = keep_private_terms_out(query, TurnTexts(private, [query], [own]))
    assert keep_private_terms_out(query, TurnTexts([], [public], [own])) == AllowedQuery(query)
    assert isinstance(same, AllowedQuery | RefusedQuery)


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    "unit",
    ["A ", "Ab ", "“a", "「あ", "1,000 ", "111 ", "A-9-", "a.b@c.d ", "ERR-1042 ", "- ", "x", "€1"],
)
def test_time_is_linear(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        started = time.process_time()
        keep_private_terms_out("ERR-1042 fix", TurnTexts([text], [text], [text]))
        return time.process_time() - started

    small = min(seconds(5_000) for _ in range(3))
    large = min(seconds(40_000) for _ in range(2))
    # Eight times the text: linear is a ratio of 8, quadratic one of 64.
    assert large < 30 * small + 0.01
