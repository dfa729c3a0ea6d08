"""Sentences: their ends in several scripts, and that nothing is lost or doubled."""

import time
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing.chunking.chunk import TokenizedText, iterate_sentences, split_sentences
from tests.support.memory import measure_peak

HOSTILE = st.text(
    st.sampled_from(list("aB1 .!?。！？」）\"')|#-*\n\r\t\u2028e.gDr…「の\u3000é中"))
    | st.characters(codec="utf-8"),
    max_size=200,
)


def cut(text: str) -> list[str]:
    return [span.of(text) for span in split_sentences(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["One.", "Two!", "Three?", "Four"],
        ["Use e.g. 3.5 V here.", "Ask Dr. Lee, i.e. the owner."],
        ["See Fig. 3 and No. 5 of vol. 2.", "He lives at no. 7.", "It is 3.14."],
        ["J. R. Smith of the U.S. Army agreed.", "Then he left at 5 p.m.", "The end."],
        ["It costs $3.50.", "5 people paid."],
        ['He said "stop."', "She did (at once!).", "“Why?”", "Nobody knew."],
        ["Wait... what?!", "No idea."],
        ["Error E-1042.3 in v2.1.0 of app.config.yaml is fixed.", "See https://x.org/a.b?c=d."],
        ["Yahoo! is a company, he wrote."],
        ["Am 3. Oktober, z.B. vormittags, ist zu.", "Das gilt seit 2019.", "Danach nicht."],
        ["Он пришёл.", "Она ушла!"],
        ["مرحبا؟", "نعم."],
        ["यह पहला वाक्य है।", "यह दूसरा है।"],
    ],
)
def test_sentences_of_a_line(expected: list[str]) -> None:
    assert cut(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["年假为十五天。", "病假需要证明！", "“可以吗？”", "他问道"],
        ["有給休暇は１５．５日です。", "「はい。」と彼は言った。", "（例外もある。）", "以上｡"],
        ["彼は「行くよ！」の一言で去った。", "終わり！？"],
    ],
)
def test_scripts_without_blanks(expected: list[str]) -> None:
    assert cut("".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["Holidays", "Everybody has 25 days."],
        ["- apples", "- pears", "* plums", "1. first", "2) second", "(a) third"],
        ["| Name | Note |", "| --- | --- |", "| Ann | Here. There. |"],
        ["# Heading", "text under it"],
        ["First paragraph without an end", "", "second one"],
    ],
)
def test_lines_end_a_sentence(expected: list[str]) -> None:
    assert cut("\n".join(expected)) == [line for line in expected if line]


def test_a_wrapped_line_does_not_end_a_sentence() -> None:
    text = (
        "The travel desk books flights for everybody who works in the Berlin or the\n"
        "Osaka office, and only asks for the cost\n"
        "centre. Hotels are booked by hand."
    )
    assert cut(text) == [text[: text.index(" Hotels")], "Hotels are booked by hand."]


def test_a_line_does_not_end_within_the_label_of_a_link() -> None:
    text = (
        "You can make [arrangements in\n"
        'Concur]({% page "/travel/book/" %}) before your event is approved.\n'
        "[Event form](https://example.com/form)"
    )
    assert cut(text) == [text[: text.index("\n[Event")], "[Event form](https://example.com/form)"]


@pytest.mark.parametrize("target", ["{% page '/" + "x" * 200 + "' %}", "https://a.b/" + "x" * 200])
def test_a_line_that_is_long_for_its_link_alone_is_wrapped(target: str) -> None:
    text = (
        f"or as soon as [applicable]({target}),\nhead into the tool, where you can book. Then go."
    )
    assert cut(text) == [text[: text.index(" Then")], "Then go."]


@pytest.mark.parametrize(
    "link", [f"[ask for one](https://a.b/{'x' * 80})", f"https://a.b/{'x' * 80}"]
)
def test_a_line_that_a_link_had_no_room_in_is_wrapped(link: str) -> None:
    assert cut(f"You can\n{link}. Then go.") == [f"You can\n{link}.", "Then go."]


def test_a_long_line_of_words_is_none_that_was_wrapped() -> None:
    lines = ["word " * 40 + "[link](https://example.com)", "another line here, one that is its own"]
    assert cut("\n".join(lines)) == lines


def test_a_wrapped_chinese_line_does_not_end_a_sentence() -> None:
    text = "公司为所有正式员工提供每年十五天的带薪年假，员工必须提前两周在人事系统中提\n交申请。病假另算。"
    assert cut(text) == [text[: text.index("病")], "病假另算。"]


@given(HOSTILE)
def test_spans_are_in_order_and_hold_all_that_is_not_blank(text: str) -> None:
    spans = split_sentences(text)
    place = 0
    for span in spans:
        assert place <= span.start < span.end
        assert not text[place : span.start].strip()
        assert span.of(text) == span.of(text).strip()
        place = span.end
    assert not text[place:].strip()


def test_sentences_are_packed_without_a_list_of_them() -> None:
    lines = 10_000
    tokenized = TokenizedText("x\n" * lines, array("I", range(1, 2 * lines, 2)))
    units = iterate_sentences(tokenized.text)
    # A list of so many spans takes a megabyte.
    assert measure_peak(lambda: tokenized.pack(units, room=500)) < 150_000


@pytest.mark.parametrize("lines", [0, 1, 9, 10, 11, 19, 20, 21, 30, 31, 36])
def test_the_last_two_runs_are_evened_out_alone(lines: int) -> None:
    text = "x\n" * lines
    tokenized = TokenizedText(text, range(1, 2 * lines, 2))
    sizes = [span.of(text).count("x") for span in tokenized.pack(iterate_sentences(text), room=10)]
    full, rest = divmod(lines, 10)
    if full and 0 < rest < 3:
        half = (10 + rest) // 2
        assert sizes == [10] * (full - 1) + [10 + rest - half, half]
    else:
        assert sizes == [10] * full + [rest] * (rest > 0)


@pytest.mark.soak("slow")
@pytest.mark.parametrize(
    "unit",
    [
        ".",
        "!) ",
        "a. ",
        "A.",
        "「。",
        "\n",
        "word ",
        "x\n",
        "1.",
        "Dr. ",
        "](",
        "[a](b\n",
        "[a](({{ ",
    ],
)
def test_time_is_linear(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * size
        started = time.process_time()
        split_sentences(text)
        return time.process_time() - started

    small = min(seconds(2_500) for _ in range(3))
    large = min(seconds(20_000) for _ in range(2))
    # Eight times the text: linear is a ratio of 8, quadratic one of 64.
    assert large < 30 * small + 0.01
