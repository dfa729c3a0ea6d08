import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.extraction.encoding import decode, is_utf16_or_utf32, looks_like_text
from connectors.extraction.result import ExtractionError

JAPANESE = "第三章 経費精算の手順。出張費は月末までに申請してください。カタカナとひらがな。"
CHINESE = "员工手册第三章：报销流程。请在月底之前提交差旅费用。"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (JAPANESE, "utf-8"),
        (JAPANESE, "utf-8-sig"),
        (JAPANESE, "utf-16"),
        (JAPANESE, "utf-32"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        ("経費精算", "cp932"),
        (CHINESE, "gb18030"),
        ("員工手冊第三章：報銷流程。請在月底之前提交差旅費用。", "big5"),
        ("직원 안내서 제3장: 경비 정산 절차. 월말까지 신청", "cp949"),
        ("Руководство сотрудника. Глава третья: командировки.", "cp1251"),
        ("Руководство сотрудника. Глава третья: командировки.", "koi8_r"),
        ("Größe, Übermaß und Straße für die Mitarbeiter im Büro.", "cp1252"),
        ("Le café est fermé à midi.", "cp1252"),
        ("The price is 5 € for “members”.", "cp1252"),
        ("Zażółć gęślą jaźń, proszę", "cp1250"),
        ("plain text with spaces and more of them", "utf-16-le"),
        ("plain text with spaces and more of them", "utf-16-be"),
    ],
)
def test_text_is_decoded_whatever_its_encoding(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_a_long_legacy_text_is_judged_by_its_beginning_and_decoded_whole() -> None:
    text = f"{JAPANESE}\n" * 5_000
    assert decode(text.encode("cp932")) == text


def test_long_wide_text_without_a_mark_is_decoded_whole() -> None:
    text = "a line of plain text\n" * 10_000
    assert decode(text.encode("utf-16-le")) == text


def test_a_declared_encoding_is_believed_where_it_fits() -> None:
    assert decode("経費精算".encode("euc_jp"), "EUC-JP") == "経費精算"
    # what browsers do: the label of the smaller set means the larger
    assert decode(b"\x93hello\x94", "iso-8859-1") == "“hello”"
    assert decode("髙橋".encode("cp932"), "shift_jis") == "髙橋"


def test_utf8_is_believed_more_than_a_wrong_declaration() -> None:
    assert decode("für".encode(), "iso-8859-1") == "für"


@pytest.mark.parametrize(
    "declared",
    ["no-such-encoding", "zip", "hex", "rot13", "", "\0", "idna", "punycode", "undefined"],
)
def test_a_declaration_that_is_no_encoding_of_text_is_passed_over(declared: str) -> None:
    assert decode(b"plain", declared) == "plain"
    assert decode(b"caf\xe9 au lait", declared).startswith("caf")


def test_a_few_broken_bytes_do_not_turn_utf8_into_something_else() -> None:
    data = CHINESE.encode() + b"\xff" + CHINESE.encode()
    assert decode(data) == f"{CHINESE}\ufffd{CHINESE}"


def test_lines_end_in_newlines_and_nul_keeps_its_place() -> None:
    assert decode(b"a\r\nb\rc\n") == "a\nb\nc\n"
    assert decode(b"ab\0cd") == "ab\ufffdcd"


def test_bytes_of_no_encoding_are_no_text() -> None:
    with pytest.raises(ExtractionError, match="control characters"):
        decode(bytes(range(256)) * 4)


def test_what_is_text_is_distinguished_from_its_first_bytes() -> None:
    assert looks_like_text(b"hello\n")
    assert looks_like_text("経費".encode("cp932"))
    assert looks_like_text("h i there".encode("utf-16-le"))
    assert not looks_like_text(bytes(range(256)))


def test_wide_encodings_are_reported_with_and_without_a_mark() -> None:
    assert is_utf16_or_utf32(codecs.BOM_UTF16_LE + b"a\0")
    assert is_utf16_or_utf32("From: a".encode("utf-16-be"))
    assert not is_utf16_or_utf32(codecs.BOM_UTF8 + b"From: a")


@given(st.binary(max_size=400))
def test_whatever_is_decoded_can_be_encoded(data: bytes) -> None:
    try:
        text = decode(data)
    except ExtractionError:
        return
    assert "\0" not in text
    assert "\r" not in text
    text.encode()


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.just("\n"), max_size=200))
def test_utf8_survives_as_it_is(text: str) -> None:
    assert decode(text.encode()) == text.removeprefix("\ufeff")
