"""What says, in the place of a query, that no search is needed, and real queries that only look like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.chat.intent.unneeded_search import LONGEST, says_not_needed

UNNEEDED = """
not_needed
NOT NEEDED
"none"
None.
n/a
N / A
null
no search
No search needed
No search needed based on the query analysis.
no web search required
no search is necessary for this question
Search is not required.
There is no need to search
nothing to search for
not applicable
nicht nötig
Nicht erforderlich!
keine Suche nötig
Keine Websuche erforderlich.
Suche nicht notwendig
keine Recherche
aucune recherche
Aucune recherche nécessaire.
pas nécessaire
pas besoin de chercher
Recherche non requise
no es necesario
Ninguna búsqueda necesaria
no se necesita buscar
No se requiere búsqueda
sin búsqueda
不需要搜索
无需搜索。
「無需檢索」
不需要
不用联网搜索
没有必要查询
无需进行网络搜索
検索不要
検索は不要です
検索の必要はありません
（検索なし）
""".strip().splitlines()
REAL = """
NA
NA share price
N.A. bank
Na element
no
Needed
none of the above meaning
None Python type
null pointer exception
n/a meaning in spreadsheets
no search results found error
no search engine
search not working
search is required field
why is no web search required
not needed dependencies pip
nothing to declare customs limit
No Need to Argue album
not applicable tax form
no query string
skip
nicht nötig Synonym
keine Suche nach Mitarbeitern in Outlook
Suche nach Kindergeld
Recherche Kosten
nötig
aucune idée synonyme
pas nécessaire de payer la taxe
recherche emploi Lyon
no es necesario visado Perú
búsqueda de empleo
sin
不需要签证的国家
无需搜索引擎的浏览器
无人机
不必要的开支
检索系统
検索不要なサイトを除外
検索エンジン
不要品回収
必要
""".strip().splitlines()


@pytest.mark.parametrize("query", UNNEEDED)
def test_what_says_that_no_search_is_needed(query: str) -> None:
    assert says_not_needed(query)


@pytest.mark.parametrize("query", REAL)
def test_what_is_searched(query: str) -> None:
    assert not says_not_needed(query)


def test_there_are_enough_of_both() -> None:
    assert min(len(set(UNNEEDED)), len(set(REAL))) >= 30


@given(
    phrase=st.sampled_from(UNNEEDED),
    around=st.text(" \t.!?\"'*_-()「」", max_size=6),
    behind=st.text(" \t.!?\"'*_-()「」", max_size=6),
)
def test_punctuation_around_makes_no_query_of_it(phrase: str, around: str, behind: str) -> None:
    query = f"{around}{phrase}{behind}"
    assert says_not_needed(query)
    assert says_not_needed(query.upper())


@given(st.sampled_from(UNNEEDED), st.sampled_from(["Zürich", "417", "股票"]))
def test_any_other_word_makes_a_query_of_it(phrase: str, word: str) -> None:
    assert not says_not_needed(f"{phrase} {word}")
    assert not says_not_needed(f"{word} {phrase}")


def test_a_long_text_is_searched() -> None:
    assert not says_not_needed("none" + "." * LONGEST)
