"""Names of people, projects and firms in four languages: kept out of web queries however they are written; the rest is sent."""

import pytest

from backend.chat.privacy.private_names import find_names, is_ordinary_compound
from backend.chat.privacy.private_terms import letters_of
from backend.chat.privacy.query_privacy import (
    AllowedQuery,
    RefusedQuery,
    TurnTexts,
    keep_private_terms_out,
)
from tests.support.private_name_sets import (
    SETS,
    SPELLINGS,
    read_documents,
    read_innocent_queries,
    read_sentence_starts,
    write_out_umlauts,
)

_BEFORE = {
    "en": "We have talked with the lead yesterday and went through all of it again. It should be done by the end of the week.",
    "de": "Wir haben gestern mit der Leitung gesprochen und alles noch einmal durchgesehen. Bis zum Ende der Woche soll das fertig sein.",
    "fr": "Nous avons parlé hier avec la direction et tout revu encore une fois. Cela doit être prêt avant la fin de la semaine.",
}
"""What says of a short sentence in which language it is."""
_QUESTIONS = {"en": "{} release date", "de": "{} Erfahrungen", "zh": "{}是谁", "ja": "{} とは"}


def _is_let_out(name: str, query: str, texts: TurnTexts) -> bool:
    match keep_private_terms_out(query, texts):
        case AllowedQuery(left):
            spelled = {letters_of(name), letters_of(write_out_umlauts(name))}
            return any(one in letters_of(left) for one in spelled)
        case RefusedQuery():
            return False


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", SETS)
def test_no_private_name_is_let_out(name: str, spelling: str) -> None:
    let_out = [
        (document.language, one)
        for document in read_documents(name)
        for one in document.names
        if _is_let_out(
            one,
            _QUESTIONS[document.language].format(SPELLINGS[spelling](one)),
            TurnTexts([document.text], [], ["?"]),
        )
    ]
    assert let_out == []


@pytest.mark.parametrize("name", SETS)
def test_what_the_asker_wrote_is_sent(name: str) -> None:
    for document in read_documents(name):
        for one in document.names:
            query = _QUESTIONS[document.language].format(one)
            texts = TurnTexts([document.text], [], [f"({write_out_umlauts(one).lower()})"])
            assert keep_private_terms_out(query, texts) == AllowedQuery(query)


@pytest.mark.parametrize(("name", "most"), [("developed", 2), ("held_out", 1)])
def test_innocent_queries_are_sent_as_they_are_beside_all_private_documents(
    name: str, most: int
) -> None:
    texts = TurnTexts([one.text for one in read_documents(name)], [], ["?"])
    queries = read_innocent_queries(name)
    changed = [one for one in queries if keep_private_terms_out(one, texts) != AllowedQuery(one)]
    assert len(changed) <= most, changed


def test_the_sets_are_as_large_as_is_said() -> None:
    names = [one for each in SETS for document in read_documents(each) for one in document.names]
    queries = [one for each in SETS for one in read_innocent_queries(each)]
    assert len(names) >= 160
    assert len(queries) >= 160


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We move Falcon to Kubernetes and Python 3 in Germany.", {"Falcon"}),
        ("The falcon is a bird. We saw a Falcon there.", set()),
        ("Open the Reports tab in Settings. The Company pays VAT.", set()),
        ("The Zephyr-19 rollout is late.", {"Zephyr-19", "Zephyr"}),
        ("See Section 4, Phase-2 and COVID-19.", set()),
        ("Project Management is taught here.", set()),
        ("Die Elternzeitregelung und die Reisekosten gelten für alle.", set()),
        (
            "Das Projekt Storch und das Haus Müllerhof sind für die Leitung.",
            {"Storch", "Müllerhof"},
        ),
    ],
)
def test_what_is_a_name(text: str, names: set[str]) -> None:
    assert set(find_names(text)) == names


@pytest.mark.parametrize(
    ("name", "names", "missed", "ordinary", "most"),
    [("developed", 34, {"Bernstein", "Mistral"}, 40, 1), ("held_out", 24, set(), 28, 7)],
)
def test_ordinary_words_that_are_names_at_the_beginning_of_sentences(
    name: str, names: int, missed: set[str], ordinary: int, most: int
) -> None:
    starts = read_sentence_starts(name)
    found = {
        one.word: one.word in find_names(f"{_BEFORE[one.language]} {one.text}") for one in starts
    }
    real = [one.word for one in starts if one.is_name]
    others = [one.word for one in starts if not one.is_name]
    assert (len(real), len(others)) == (names, ordinary)
    assert {one for one in real if not found[one]} <= missed
    assert sum(found[one] for one in others) <= most


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("Falke startet im Mai. Das ist noch nicht sicher.", "Falke Erfahrungen"),
        ("Orchid ships with the spring release.", "orchid release"),
    ],
)
def test_a_name_at_the_beginning_of_a_sentence_is_kept_in(name: str, query: str) -> None:
    word, rest = query.split()
    assert keep_private_terms_out(query, TurnTexts([name], [], ["?"])) == AllowedQuery(
        rest, (word,)
    )
    small = f"{name} Die {word.lower()}n fliegen; {word.lower()} here."
    assert keep_private_terms_out(query, TurnTexts([small], [], ["?"])) == AllowedQuery(query)


def test_what_is_an_ordinary_german_compound() -> None:
    words = ("reisekostenrichtlinie", "homeofficeregelung", "müllerhaus", "wolkersberg", "x" * 200)
    assert [one for one in words if is_ordinary_compound(one)] == [
        "reisekostenrichtlinie",
        "homeofficeregelung",
    ]


def test_a_name_that_is_part_of_an_ordinary_word_leaves_the_word() -> None:
    texts = TurnTexts(["They bought Falcon from us."], [], [])
    query = "falconry in Scotland"
    assert keep_private_terms_out(query, texts) == AllowedQuery(query)
    assert keep_private_terms_out("falcons price", texts) == AllowedQuery("price", ("falcons",))
