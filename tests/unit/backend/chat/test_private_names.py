"""Names of people, projects and firms in four languages: kept out of web queries however they are written; the rest is sent."""

import pytest

from backend.chat.private_names import find_names, is_ordinary_compound
from backend.chat.private_terms import letters_of
from backend.chat.query_privacy import (
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
    write_out_umlauts,
)

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
