"""Words, exact terms and keyword queries, by tables that a reader can check."""

import threading
from itertools import chain

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from indexing.text.normalization import SPACELESS, fold
from indexing.text.tokenizer import (
    contains_term,
    extract_keywords,
    find_exact_terms,
    plain_words,
    words,
    words_and_plain_words,
)

TEXTS = st.text(max_size=60)
SPELLED = st.text(alphabet="aZé1 2.-_:@'/国のー ガ“”\"#+\n", max_size=40)


def _rows(text: str) -> list[str]:
    return text.split()


CODES = ["E-22", "AB-1234", "report.pdf", "max_size", "ISO9001", "10.0.0.1", "C++", "#4711"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("The cats are sleeping", ["cat", "sleep"]),  # stop words out, stems
        ("CAFÉ Łódź Straße Ærø", ["cafe", "lodz", "strass", "aero"]),  # case and diacritics
        ("Ｆｕｌｌ　ｗｉｄｔｈ", ["full", "width"]),  # compatibility forms
        ("soft\u00adware", ["softwar"]),  # a soft hyphen is no letter
        ("half \ud800 a pair", ["half", "pair"]),  # half a surrogate pair is dropped
        ("Quarry™", ["quarri"]),  # nor is a trade mark sign
        ("it's Ann's, don’t", ["ann", "don"]),  # tails of contractions, both apostrophes
        ("l'avion", ["l", "avion"]),  # an elision is two words
        ("vitamin D", ["vitamin", "d"]),  # single letters count
        ("high-speed R&D and/or", ["high", "speed", "r", "d"]),  # joined letters are just words
        ("E-22", ["e-22", "e", "22"]),  # a code: whole, then its parts
        ("E-22/E-23", ["e-22", "e", "22", "e-23", "e", "23"]),  # a slash separates
        ("max_size", ["max_size", "max", "size"]),
        ("Report.PDF", ["report.pdf", "report", "pdf"]),
        ("ann@example.com", ["ann@example.com", "ann", "exampl", "com"]),
        ("http://db1:5432/x", ["http", "db1:5432", "db1", "5432", "x"]),
        ("std::vector", ["std::vector", "std", "vector"]),
        ("3.5", ["3.5", "3", "5"]),
        ("1990s", ["1990s"]),  # what has a digit is not stemmed
        ("東京都", ["東", "東京", "京", "京都", "都"]),  # characters and pairs
        ("国", ["国"]),
        ("ラーメン", ["ラ", "ラー", "ー", "ーメ", "メ", "メン", "ン"]),  # the long mark belongs
        ("ｶﾞ", ["ガ"]),  # half-width kana with its voicing mark
        ("かが", ["か", "かが", "が"]),  # voiced and plain differ
        ("서울", ["서", "서울", "울"]),
        ("PKFの略", ["pkf", "の", "の略", "略"]),  # scripts part words
        ("हिन्दी", ["हिन्दी"]),  # vowel signs are kept
        ("ไทย", ["ไ", "ไท", "ท", "ทย", "ย"]),  # Thai has no spaces either
        ("to be or not to be", []),  # nothing but stop words
        ("- -- … 。、", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("To be, or not!", ["to", "be", "or", "not"]),  # stop words stay
        ("Running CAFÉS", ["running", "cafes"]),  # no stems
        ("E-22's", ["e", "22", "s"]),  # codes by their parts
        ("東京 1号", ["東", "京", "1", "号"]),  # characters only
    ],
)
def test_plain_words(text: str, expected: list[str]) -> None:
    assert plain_words(text) == expected
    assert plain_words(text) == expected


def test_a_long_run_is_cut_every_64_characters() -> None:
    assert words("9" * 130) == ["9" * 64, "9" * 64, "99"]
    assert plain_words("9" * 130) == words("9" * 130)


def test_what_is_joined_is_kept_whole_up_to_128_characters() -> None:
    fits, longer = "_".join(["a1"] * 43), "_".join(["a1"] * 44)
    assert (len(fits), len(longer)) == (128, 131)
    assert words(fits) == [fits, *["a1"] * 43]
    assert words(longer) == ["a1"] * 44


@pytest.mark.soak("slow")
@pytest.mark.parametrize("unit", ["a", "é", "国", "a-", "1.", "_", "'s", "\u0301", '"', "「", "@a"])
def test_very_many_characters_without_a_blank(unit: str) -> None:
    """Quadratic time would take minutes here."""
    text = unit * (200_000 // len(unit))
    assert max(map(len, words(text)), default=0) <= 128
    assert find_exact_terms(text) == ()


def test_a_long_message_of_quotes_and_codes_takes_linear_time() -> None:
    message = '"be kind" E-22 ' * 10_000
    assert find_exact_terms(message) == ("be kind", "E-22")
    assert extract_keywords(message) == message.strip()


def test_threads_do_not_share_a_stemmer() -> None:
    results: dict[int, set[tuple[str, ...]]] = {}

    def work(number: int) -> None:
        texts = (f"running{chr(97 + i % 26)}s connections{number}x flies" for i in range(3000))
        results[number] = {tuple(words(text))[-1:] for text in texts}

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: {("fli",)} for number in range(4)}


@pytest.mark.soak("slow")
def test_folding_a_character_twice_is_folding_it_once() -> None:
    characters = (
        chr(i) for i in chain(range(0xD800), range(0xF900, 0x33480), range(0xE0000, 0xE01F0))
    )
    assert [c for c in characters if fold(once := fold(c)) != once] == []


@given(TEXTS)
def test_folding_a_text_twice_is_folding_it_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(SPELLED, SPELLED)
def test_words_of_two_lines_are_the_words_of_each(first: str, second: str) -> None:
    assert words(f"{first}\n{second}") == words(first) + words(second)
    assert plain_words(f"{first}\n{second}") == plain_words(first) + plain_words(second)


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=60))
def test_a_text_of_ascii_is_cut_as_if_it_were_not(text: str) -> None:
    assert words(text) + words("ж") == words(f"{text}\nж")
    assert plain_words(text) + plain_words("ж") == plain_words(f"{text}\nж")


@given(TEXTS)
def test_both_kinds_of_words_are_those_of_each(text: str) -> None:
    assert words_and_plain_words(text) == (words(text), plain_words(text))


@given(SPELLED)
def test_words_do_not_depend_on_case(text: str) -> None:
    assert words(text.upper()) == words(text.lower())


@given(TEXTS)
def test_every_character_of_a_spaceless_script_can_be_searched(text: str) -> None:
    spaceless = regex.findall(f"[{SPACELESS}]", fold(text))
    assert [word for word in plain_words(text) if regex.fullmatch(f"[{SPACELESS}]", word)] == (
        spaceless
    )
    assert set(spaceless) <= set(words(text))


@pytest.mark.parametrize(
    "code",
    _rows("""E-22 e-22 AB-1234 QX-7 KB-104 TS-500-A COVID-19 RFC-2119 ISO-8601 UTF-8 W-2 1099-NEC CVE-2024-12345
    inv-2024-001 978-3-16-148410-0 550e8400-e29b-41d4-a716-446655440000 web01-prod
    ISO9001 SKU1234 B12 0x80070005 ERR_TIMED_OUT max_size __init__
    report.pdf README.md final.report_v2.docx src/main.py /etc/hosts ~/notes/todo C:\\temp\\x.txt ../a/b
    ann@example.com root@db1 http://example.com/a?b=1 s3://bucket/key www.example.com example.com
    example.com:8080 localhost:80 db:5432 10.0.0.1 10.0.0.1:80 v2.1 3.11.7 1.0rc2 python3.11
    os.path.join std::vector getUserName AccessKeyId KeyError C++ C# --dry-run #4711"""),
)
def test_what_is_a_code(code: str) -> None:
    assert find_exact_terms(f"what is {code} about?") == (code,)
    assert contains_term(f"All about {code}, here.", code)


@pytest.mark.parametrize(
    "ordinary",
    _rows("""e-mail follow-up state-of-the-art X-ray and/or TCP/IP R&D AT&T U.S e.g Ph.D VPN iPhone GitHub macOS
    2024 4711 24/7 1,000 1.000.000 3.5 50% $100k 11/21/2026 2026-11-21 21.11.2026 2019-2024 10:30 9:30am
    1st 3pm 10PM 90s 16GB 100mbps 30days 2.5GHz 500kWh 10G 24-hour 5-year-old 19th-century 4x4 3-D 10-K mid-2024 mid-1990s Q3 2024-Q3 FY24
    H2O MP3 A4 2FA type-2 top-10 approx.5 No.5 end.The lost.It badge.in 401(k) km/h word--word _emphasis_ ___
    don't O'Brien l'avion"""),
)
def test_what_is_no_code(ordinary: str) -> None:
    assert find_exact_terms(f"what is {ordinary} about?") == ()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('find "be kind" please', ("be kind",)),
        ("find “be kind” and „sei nett“", ("be kind", "sei nett")),
        ('look for "schools"', ("schools",)),  # one word, in a short message
        (f'{"so " * 24} "schools", "high schools"', ("high schools",)),  # in a long one, phrases
        ("« mot juste » et 「年次休暇」", ("mot juste", "年次休暇")),
        ('请查"年假"制度', ("年假",)),  # no blank needed around
        ("it's John's 'own' word", ()),  # apostrophes are no quotes
        ('a 5" and a 3" disk', ()),  # inches are no quotes
        ('an "unfinished quote', ()),
        ('"" and " " and “…”', ()),  # nothing is quoted
        ("“over two\n  lines”", ("over two lines",)),
        ('"error E-22" or E-23', ("error E-22", "E-23")),  # the phrase holds its code
        ("E-22, e-22 and Ｅ－２２", ("E-22",)),  # one term in three spellings
        ("E-22/E-23", ("E-22", "E-23")),
        ("an E-22-related fault", ("E-22",)),  # what follows is an ordinary word
        ("see https://example.com/a.", ("https://example.com/a",)),  # the sentence's full stop
        ("エラーE-22が出た", ("E-22",)),
        (" ".join(f"AB-{n}" for n in range(10, 40)), tuple(f"AB-{n}" for n in range(10, 26))),
    ],
)
def test_exact_terms(message: str, expected: tuple[str, ...]) -> None:
    assert find_exact_terms(message) == expected


@pytest.mark.parametrize(
    ("text", "term", "expected"),
    [
        ("Error E-22.", "e-22", True),  # case, and the sentence's full stop
        ("Error E-2207", "E-22", False),  # part of a longer number
        ("Error XE-22", "E-22", False),
        ("Error E-22.1", "E-22", False),  # another code
        ("Error E-22-07", "E-22", False),
        ("version 3.11.7", "11.7", False),
        ("(E-22)", "E-22", True),
        ("an E-22-related fault", "E-22", True),
        ("Ｅ－２２", "E-22", True),  # width
        ("always\n  on duty", "Always on", True),  # white space
        ("Café", "cafe", True),  # diacritics
        ("smart-phone", "art", False),  # inside a word
        ("社内の年次休暇制度", "年次休暇", True),  # no boundary in Chinese and Japanese
        ("uses C++", "C++", True),
        ("report.pdf", "port.pdf", False),
        ("on 2024-11-21", "2024", True),  # a plain number is no code
        ("anything", "", False),
        ("", "E-22", False),
    ],
)
def test_holds(text: str, term: str, expected: object) -> None:
    assert contains_term(text, term) is expected


@given(st.sampled_from(CODES), SPELLED, SPELLED)
def test_a_text_holds_a_code_that_stands_free_in_it(code: str, before: str, after: str) -> None:
    assert contains_term(f"{before} {code} {after}", code)


@given(SPELLED, SPELLED)
def test_where_a_term_is_held_its_words_stand_side_by_side(text: str, term: str) -> None:
    wanted, found = plain_words(term), plain_words(text)
    if contains_term(text, term):
        assert any(
            found[start : start + len(wanted)] == wanted
            for start in range(len(found) - len(wanted) + 1)
        )


@given(SPELLED)
def test_a_message_holds_its_own_exact_terms(message: str) -> None:
    assert all(contains_term(message, term) for term in find_exact_terms(message))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", ""),
        ("   ", ""),
        ("How do I reset my VPN password?", "reset VPN password"),
        ("What does error E-22 mean?", "error E-22 mean"),  # codes are kept
        ('Who wrote "the who"?', 'wrote "the who"'),  # quoted words are kept, with their quotes
        ("What's Ann's limit? I don’t know", "Ann limit"),  # no tails of contractions
        ("to be or not to be", "to be or not to be"),  # never empty
        ("Wie viele Urlaubstage habe ich im Jahr?", "Urlaubstage Jahr"),
        ("Quels sont les jours de congé en France ?", "jours congé France"),
        ("¿Cuántos días de vacaciones tengo?", "días vacaciones tengo"),
        ("Quanti giorni di ferie sono nel contratto?", "giorni ferie contratto"),
        ("Quantos dias de férias tem no contrato?", "dias férias contrato"),
        ("Hoeveel dagen vakantie heb ik in het jaar?", "dagen vakantie jaar"),
        ("die casting process", "die casting process"),  # one German word makes no German
        ("年假有多少天？", "年假 天"),
        ("请问怎么申请年假？", "申请年假"),  # 请 is part of 申请
        ("项目的目的是什么", "项目 目的"),  # 的 is part of 目的
        ("有給休暇は何日ありますか", "有給休暇 日"),
        ("VPNの接続方法を教えてください", "VPN 接続方法"),
        ("出張旅費の申請はどこでしますか？", "出張旅費 申請"),
        ("「年次休暇」とは何ですか", "「年次休暇」"),
    ],
)
def test_keywords(message: str, expected: str) -> None:
    assert extract_keywords(message) == expected


@given(SPELLED)
def test_keywords_are_never_lost_entirely(message: str) -> None:
    assert bool(extract_keywords(message)) == bool(message.strip())


@given(SPELLED)
def test_keywords_keep_every_exact_term(message: str) -> None:
    assert set(find_exact_terms(message)) <= set(find_exact_terms(extract_keywords(message)))
