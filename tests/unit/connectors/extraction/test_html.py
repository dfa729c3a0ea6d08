from datetime import UTC, datetime

import pytest

from connectors.document import Person
from connectors.extraction.html import extract_html_sections, read_html
from connectors.extraction.result import ExtractionError, ExtractionResult

PAGE = """\
<!DOCTYPE html><html><head><meta charset="utf-8"><title>Travel &amp; lodging</title>
<meta name="author" content="Ann Lee"><meta property="article:published_time" content="2026-01-05T08:00:00Z">
<style>p { color: red }</style></head>
<body><nav><a href="/">Home</a></nav><script>var hidden = 1;</script>
<p>Welcome.</p>
<h1>Travel <em>policy</em></h1>
<p>Book<!-- not seen --> early,<br>or pay.</p><div hidden>draft</div><p style="display: none">bait</p>
<ul><li>Rail<ol start="3"><li>first class</li><li>second class</li></ol></li><li>Air</li></ul>
<pre>  keep
    this</pre>
<h2>Rates</h2>
<table><caption>Per night</caption>
<tr><th>City</th><th>Room | type</th><th>Rate</th></tr>
<tr><td rowspan="2">Bonn</td><td>single</td><td>90</td></tr>
<tr><td>double</td><td>120</td></tr>
<tr><td colspan="2">Elsewhere</td><td>80</td></tr></table>
<p>After.</p><img alt="A map of Bonn">
<h2>Empty</h2></body></html>
"""


def outline(read: ExtractionResult) -> list[tuple[tuple[str, ...], str, str]]:
    return [(one.place.heading_path, one.kind, one.text) for one in read.sections]


def test_a_page_is_read_as_it_is_seen() -> None:
    read = read_html(PAGE.encode())
    assert outline(read) == [
        ((), "text", "Welcome."),
        (
            ("Travel policy",),
            "text",
            "Book early,\nor pay.\n- Rail\n  3. first class\n  4. second class\n- Air\n\n"
            "  keep\n    this",
        ),
        (("Travel policy", "Rates"), "text", "Per night"),
        (
            ("Travel policy", "Rates"),
            "table",
            "| City | Room \\| type | Rate |\n| --- | --- | --- |\n| Bonn | single | 90 |\n"
            "| Bonn | double | 120 |\n| Elsewhere |  | 80 |",
        ),
        (("Travel policy", "Rates"), "text", "After.\n\nA map of Bonn"),
        (("Travel policy", "Empty"), "text", "Empty"),
    ]
    assert read.title == "Travel & lodging"
    assert read.authors == (Person("Ann Lee"),)
    assert read.created_at == datetime(2026, 1, 5, 8, tzinfo=UTC)


def test_the_declared_encoding_counts() -> None:
    page = '<meta charset="euc-jp"><p>経費精算</p>'
    assert read_html(page.encode("euc_jp")).sections[0].text == "経費精算"


def test_a_table_that_arranges_the_page_is_read_as_text() -> None:
    page = "<table><tr><td><h1>Menu</h1>soup</td><td>side</td></tr></table>"
    assert outline(read_html(page.encode())) == [(("Menu",), "text", "soup\n\nside")]
    nested = (
        "<table><tr><td>left</td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>"
    )
    assert outline(read_html(nested.encode())) == [
        ((), "text", "left"),
        ((), "table", "| a | b |\n| --- | --- |"),
    ]


WITH_GREATER = """ a = '>"' b=">'" """


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("<html></html>", "no text"),
        ("<script>only()</script>", "no text"),
        ("<!-- only -->", "no text"),
        ("<div>" * 10_000 + "deep", "too deeply"),
        (f"<p {'a ' * 1_001}>x", "more than 1,000 attributes"),
        (f"<p/{'a/' * 1_001}>x", "more than 1,000 attributes"),
        (f"<P{WITH_GREATER * 1_001}>x", "more than 1,000 attributes"),
        (f"<script {'a ' * 1_001}>x</script>y", "more than 1,000 attributes"),
        (f"<script>a<b</script>\n<p {'= ' * 4_000}", "more than 1,000 attributes"),
        ("<a " * 1_100, "more than 1,000 attributes"),
        *(
            (f"{before}<p {'a ' * 1_001}>x", "more than 1,000 attributes")
            for before in (
                *("<noscript>", "<title>", "<iframe>", "<!-->", "<!--->", "<!-- --!>", "<script/>"),
                *("<script src=a/>", "<script\x0b>", "<ſcript>", "<scripts>", "<script\xa0>"),
            )
        ),
    ],
)
def test_a_page_that_cannot_be_read_says_why(page: str, says: str) -> None:
    with pytest.raises(ExtractionError, match=says):
        read_html(page.encode())


@pytest.mark.parametrize(
    "page",
    [
        f"<p {'a ' * 1_000}>x",
        "x" + f"<p {'a=b> <p ' * 1_001}>",
        f"<!-- <p {'a ' * 2_000} --><p>x",
        f"<script>if (a <b) {{ {'c ' * 2_000} }}</script><p>x",
        f"<STYLE>a <b {'c ' * 2_000} </style><p>x",
        f"<p title='{'a ' * 2_000}'>x",
        f"<p>x 1 < 2 {'and ' * 2_000}",
    ],
)
def test_what_is_no_tag_with_many_attributes_is_read(page: str) -> None:
    assert read_html(page.encode()).sections[0].text.startswith("x")


@pytest.mark.parametrize("span", ["99999999999", "-1", "x", "٣"])
def test_spans_that_make_no_sense_do_no_harm(span: str) -> None:
    page = f'<table><tr><td rowspan="{span}" colspan="{span}">a</td><td>b</td></tr></table>'
    assert read_html(page.encode()).sections[0].text.startswith("| a")


def test_a_small_page_cannot_make_endless_cells() -> None:
    row = '<tr><td colspan="100">x</td></tr>'
    with pytest.raises(ExtractionError, match="2,000,000 cells"):
        read_html(f"<table>{row * 20_001}</table>".encode())


def test_a_long_cell_over_many_rows_is_not_repeated() -> None:
    page = f'<table><tr><td rowspan="9">{"x" * 300}</td><td>a</td></tr><tr><td>b</td></tr></table>'
    assert read_html(page.encode()).sections[0].text.endswith("\n|  | b |")


def test_an_endless_heading_is_text() -> None:
    page = f"<h1>{'word ' * 100}</h1><p>below</p>"
    (section,) = read_html(page.encode()).sections
    assert section.place.heading_path == ()
    assert section.text == f"{('word ' * 100).strip()}\n\nbelow"


def test_a_page_inside_another_document_may_be_empty() -> None:
    assert extract_html_sections(" ") == ()
    assert [one.text for one in extract_html_sections("<p>hello</p>")] == ["hello"]
