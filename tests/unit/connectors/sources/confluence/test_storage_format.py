"""The storage format as people see its pages."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.extraction.result import ExtractionError
from connectors.sources.confluence.storage_format import parse_sections, to_html

PEOPLE = {"557058:ann": "Ann Lee", "8a7f-bob": "Bob Ek"}


def name(key: str) -> str:
    return PEOPLE.get(key, "")


def text(stored: str) -> str:
    return "\n".join(one.text for one in parse_sections(stored, name))


def macro(kind: str, inside: str = "", **parameters: str) -> str:
    expected = "".join(
        f'<ac:parameter ac:name="{key}">{value}</ac:parameter>' for key, value in parameters.items()
    )
    return f'<ac:structured-macro ac:name="{kind}">{expected}{inside}</ac:structured-macro>'


def rich(inside: str) -> str:
    return f"<ac:rich-text-body>{inside}</ac:rich-text-body>"


def plain(inside: str) -> str:
    return f"<ac:plain-text-body><![CDATA[{inside}]]></ac:plain-text-body>"


def test_headings_and_tables_are_sections_of_their_own() -> None:
    stored = (
        "<p>Above.</p><h1>Leave</h1><p>25&nbsp;days &amp; more.</p><h2>Table</h2>"
        "<table><tbody><tr><th><p>Who</p></th><th>Days</th></tr>"
        '<tr><td><p>Ann</p></td><td data-x="y">25</td></tr></tbody></table>'
    )
    found = [(one.kind, one.place.heading_path, one.text) for one in parse_sections(stored, name)]
    assert found == [
        ("text", (), "Above."),
        ("text", ("Leave",), "25 days & more."),
        ("table", ("Leave", "Table"), "| Who | Days |\n| --- | --- |\n| Ann | 25 |"),
    ]


def test_code_is_kept_unchanged() -> None:
    code = 'if a < b && "&nbsp;":\n    print(1)'
    stored = macro("code", plain(code), language="py", title="a.py")
    assert text(stored) == f"a.py\n\n{code}"
    assert text(macro("noformat", plain("a  b"))) == "a  b"


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (macro("info", rich("<p>Read this.</p>")), "Info\n\nRead this."),
        (macro("warning", rich("<p>Stop.</p>"), title="Hot"), "Warning: Hot\n\nStop."),
        (macro("panel", rich("<p>In it.</p>"), title="Box"), "Box\n\nIn it."),
        (macro("expand", rich("<p>Folded.</p>"), title="More"), "More\n\nFolded."),
        (macro("excerpt", rich("<p>Shown.</p>")), "Shown."),
        (f"<p>Is {macro('status', title='DONE', colour='Green')}.</p>", "Is DONE."),
        (f"<p>See {macro('jira', key='OPS-7', server='Jira')}.</p>", "See OPS-7."),
        (macro("toc", maxLevel="3"), ""),
        (macro("made-by-an-app", rich("<p>Kept.</p>"), secret="x"), "Kept."),
        (macro("made-by-an-app", plain("a < b")), "a < b"),
        (macro("warning", rich(macro("code", plain("x = 1")))), "Warning\n\nx = 1"),
    ],
)
def test_macros_say_what_they_show(stored: str, expected: str) -> None:
    assert text(stored) == expected


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ('<ri:page ri:content-title="Travel" ri:space-key="HR"/>', "Travel"),
        ('<ri:attachment ri:filename="plan.pdf"/>', "plan.pdf"),
        ('<ri:space ri:space-key="HR"/>', "HR"),
        ('<ri:user ri:account-id="557058:ann"/>', "@Ann Lee"),
        ('<ri:user ri:userkey="8a7f-bob"/>', "@Bob Ek"),
        ('<ri:user ri:account-id="unknown"/>', "@somebody"),
        (
            '<ri:page ri:content-title="X"/><ac:plain-text-link-body><![CDATA[A & B]]>'
            "</ac:plain-text-link-body>",
            "A & B",
        ),
        (
            '<ri:page ri:content-title="X"/><ac:link-body>the <b>rules</b></ac:link-body>',
            "the rules",
        ),
    ],
)
def test_links_and_mentions_have_names(inside: str, expected: str) -> None:
    assert text(f"<p>See <ac:link>{inside}</ac:link>.</p>") == f"See {expected}."


def test_tasks_say_whether_they_are_done() -> None:
    def task(status: str, body: str) -> str:
        return (
            f"<ac:task><ac:task-id>1</ac:task-id><ac:task-status>{status}</ac:task-status>"
            f"<ac:task-body>{body}</ac:task-body></ac:task>"
        )

    due = 'Sell by <time datetime="2026-03-01" />'
    stored = f"<ac:task-list>{task('complete', 'Buy')}{task('incomplete', due)}</ac:task-list>"
    assert text(stored) == "- [x] Buy\n- [ ] Sell by 2026-03-01"


def test_pictures_emoticons_layouts_and_what_newer_editors_write() -> None:
    stored = (
        '<ac:layout><ac:layout-section><ac:layout-cell><p>Left <ac:emoticon ac:name="tick"/></p>'
        "</ac:layout-cell><ac:layout-cell><p>Right</p></ac:layout-cell></ac:layout-section>"
        '</ac:layout><ac:image><ri:attachment ri:filename="map.png"/>'
        "<ac:caption><p>The way</p></ac:caption></ac:image>"
        "<ac:adf-extension><ac:adf-node>hidden</ac:adf-node>"
        "<ac:adf-fallback><p>Decided.</p></ac:adf-fallback></ac:adf-extension>"
        "<p><ac:placeholder>Write here</ac:placeholder>"
        '<ac:inline-comment-marker ac:ref="r">marked</ac:inline-comment-marker> end</p>'
    )
    assert text(stored).split("\n\n") == [
        "Left :tick:",
        "Right",
        "map.png",
        "The way",
        "Decided.",
        "marked end",
    ]


def test_invalid_markup_is_read_as_far_as_possible() -> None:
    assert text("<p>one <b>two</p><p>three") == "one two\n\nthree"
    assert text("<p>&foo; stays</p>") == "&foo; stays"
    assert text("a \x01 b") == "a \ufffd b"
    assert text("") == text("  ") == ""


def test_no_entity_is_fetched_or_multiplied() -> None:
    stored = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]><p>&e;</p>'
    assert to_html(stored, name).endswith("<p>&amp;e;</p>")
    assert to_html("<p>&amp;lt;script&amp;gt;</p>", name) == "<p>&amp;lt;script&amp;gt;</p>"


@pytest.mark.parametrize("depth", [250, 2000])
def test_deep_nesting_is_an_error(depth: int) -> None:
    with pytest.raises(ExtractionError, match="nested too deeply"):
        text("<div>" * depth + "x" + "</div>" * depth)


@given(st.text(max_size=60))
def test_any_text_in_any_place_is_read_without_an_error(said: str) -> None:
    to_html(said, name)
    to_html(f"<p>{said}</p>", name)
    to_html(macro("code", plain(said.replace("]]>", ""))), name)


def test_verbatim_text_that_never_ends_is_looked_through_once() -> None:
    began = time.thread_time()
    to_html("<![CDATA[" * 40_000, str)
    assert time.thread_time() - began < 5


@pytest.mark.parametrize(
    "stored",
    ["<div>" * 150 + "<b>x</b>" * 50_000, ("<ac:image>" + "<p/>" * 1000 + "<ac:caption>") * 120],
)
def test_deep_content_is_read_in_time(stored: str) -> None:
    began = time.thread_time()
    to_html(stored, name)
    assert time.thread_time() - began < 5
