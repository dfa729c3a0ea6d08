"""Words that say where to look, and words that only sound like it."""

import pytest

from backend.chat.intent.asked_sides import AskedSides, find_asked_sides
from backend.chat.intent.search_plan import Side
from tests.support.sides import BOTH_SIDES

WEB, KNOWLEDGE, NONE = frozenset({Side.WEB}), frozenset({Side.KNOWLEDGE}), frozenset[Side]()


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("What is the VAT rate? Take it from the web.", WEB),
        ("Google the address of the embassy", WEB),
        ("Please do a quick web search for the train strike", WEB),
        ("Look this up online: who owns Lego?", WEB),
        ("Find the price on the internet", WEB),
        ("根据知识库，报销流程是什么", KNOWLEDGE),
        ("在我们的文档里查一下差旅标准", KNOWLEDGE),
        ("联网查一下明天的天气", WEB),
        ("百度一下这家公司", WEB),
        ("ナレッジベースで休暇を調べて", KNOWLEDGE),
        ("インターネットで最新の金利を検索して", WEB),
        ("Suche online nach dem Wechselkurs", WEB),
        ("Laut unserer Wissensdatenbank: wie viel Urlaub gibt es?", KNOWLEDGE),
        ("Trouve le tarif sur le web", WEB),
        ("D'après nos documents, qui approuve ?", KNOWLEDGE),
        ("Busca en la web el horario", WEB),
        ("¿Qué dice en nuestros documentos?", KNOWLEDGE),
        ("According to our internal documents, who pays?", KNOWLEDGE),
        ("Search our wiki for the on-call rota", KNOWLEDGE),
        ("What do we pay according to our knowledgebase?", KNOWLEDGE),
        ("Compare what is in our documents with what you find on the web", BOTH_SIDES),
    ],
)
def test_where_the_asker_says_to_look_is_read(message: str, wanted: frozenset[Side]) -> None:
    assert find_asked_sides(message) == AskedSides(wanted)


@pytest.mark.parametrize(
    "message",
    [
        "How do I remove a user from the web interface?",
        "May I download software from the internet?",
        "Can I book holidays online?",
        "Who looks after our website?",
        "Are we allowed to publish this on the web?",
        'What does "from the web" mean?',
        "What is our documentation policy?",
        "公司的上网政策是什么",
        "知识库是什么意思",
        "网上报销怎么填",
        "ネット銀行の口座を教えて",
        "Wie melde ich Störungen im Internet?",
        "Darf ich im Internet surfen?",
        "Comment fonctionne le web ?",
        "¿Cómo funciona internet?",
        "Google Cloud costs too much. Why?",
        "",
    ],
)
def test_the_name_of_a_side_alone_says_nothing(message: str) -> None:
    assert find_asked_sides(message) == AskedSides()


@pytest.mark.parametrize(
    ("message", "unwanted"),
    [
        ("Without the internet: what is a mutex?", WEB),
        ("Don't search the web for this", WEB),
        ("不要上网，直接回答", WEB),
        ("ウェブ検索なしで答えて", WEB),
        ("Bitte nicht im Internet suchen", WEB),
        ("Réponds sans internet", WEB),
        ("Responde sin buscar en internet", WEB),
        ("Do not use our documents", KNOWLEDGE),
        ("不用查知识库", KNOWLEDGE),
    ],
)
def test_what_shall_not_be_searched_is_read(message: str, unwanted: frozenset[Side]) -> None:
    assert find_asked_sides(message) == AskedSides(NONE, unwanted)


def test_one_side_instead_of_the_other() -> None:
    message = "Look in our documents instead of the web"
    assert find_asked_sides(message) == AskedSides(KNOWLEDGE, WEB)


def test_of_a_very_long_message_beginning_and_end_are_read() -> None:
    assert find_asked_sides("word " * 10_000 + "Search the web.").wanted == WEB
