"""A document's page: what stands where, what is marked, and how much of it."""

from datetime import UTC, datetime

from backend.store.documents.documents import StoredDocument
from backend.web.document_view import LONGEST, Author, DocumentView, Passage, build_view
from connectors.access import Access
from connectors.document import Document, Person, Place, Section, Span
from connectors.extraction import registry

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


def _view(stored: StoredDocument, passage: Passage | None, begin: int = 0) -> DocumentView:
    return build_view(stored, ["ann@example.com · member of #general"], passage, begin)


def _stored(*sections: Section, title: str = "Guide", link: str = "file:///x") -> StoredDocument:
    document = Document(
        id="zoo:guide.md",
        source="zoo",
        title=title,
        sections=sections,
        link=link,
        media_type=registry.TEXT,
        access=Access.to(["group:a", "user:ann@example.com"]),
        version="1",
        metadata={"path": "guide.md", "tags": ("a", "b")},
        owners=(Person("Ann", "Ann@example.com"), Person(" ")),
        parents=("top", "sub"),
        updated_at=MOMENT,
    )
    return StoredDocument(document=document, chunks=1, indexed_at=MOMENT)


def _text(page: DocumentView) -> str:
    return "".join(
        piece.text
        for part in page.parts
        for block in part.blocks
        if block.kind != "table"
        for piece in block.line
    )


def _marked(page: DocumentView) -> str:
    return "".join(
        piece.text
        for part in page.parts
        for block in part.blocks
        if block.kind != "table"
        for piece in block.line
        if piece.marked
    )


def _section(text: str, *path: str, page: int | None = None) -> Section:
    return Section(text=text, place=Place(heading_path=path, page=page))


def test_headings_stand_once_where_they_begin() -> None:
    page = _view(
        _stored(
            _section("intro", "Guide"),
            _section("a", "Guide", "One"),
            _section("b", "Guide", "One", "Inner"),
            _section("c", "Guide", "Two"),
        ),
        None,
    )
    assert [part.headings for part in page.parts] == [
        (),  # it repeats the title
        ((2, "One"),),
        ((3, "Inner"),),
        ((2, "Two"),),
    ]


def test_a_heading_of_its_own_is_not_said_twice() -> None:
    page = _view(_stored(_section("Lonely", "Lonely")), None)
    assert page.parts[0].headings == ((2, "Lonely"),)
    assert page.parts[0].blocks == ()


def test_pages_are_reported_where_they_begin() -> None:
    page = _view(_stored(_section("a", page=1), _section("b", page=1), _section("c", page=2)), None)
    assert [part.where for part in page.parts] == ["Page 1", "", "Page 2"]


def test_what_is_known_of_it() -> None:
    page = _view(_stored(_section("a")), None)
    assert page.readers == ("ann@example.com · member of #general",)
    assert page.original == "/api/documents/zoo:guide.md/original"
    ann = Author("Ann", "/?person=ann%40example.com")
    assert (page.path, page.authors, page.synced_at) == ("top / sub", (ann,), MOMENT)
    assert page.metadata == (("path", "guide.md"), ("tags", "a, b"))


def test_the_passage_is_marked() -> None:
    stored = _stored(_section("aaaa"), _section("bbbb"))
    assert _marked(_view(stored, Passage(1, Span(1, 3)))) == "bb"


def test_a_passage_of_an_older_version_marks_nothing() -> None:
    stored = _stored(_section("aaaa"))
    assert _marked(_view(stored, Passage(0, Span(2, 5)))) == ""
    assert _marked(_view(stored, Passage(7, Span(0, 1)))) == ""


def test_of_an_enormous_section_the_part_around_the_passage_is_shown() -> None:
    text = "x" * 3 * LONGEST + "here" + "y" * 3 * LONGEST
    page = _view(_stored(_section(text)), Passage(0, Span(3 * LONGEST, 3 * LONGEST + 4)))
    assert _marked(page) == "here"
    assert len(_text(page)) == LONGEST
    assert page.parts[0].left_out == len(text) - LONGEST


def test_a_long_document_is_turned_page_by_page_and_nothing_is_passed_over() -> None:
    sections = [_section(f"{number:04}" * 25) for number in range(5_000)]  # 500,000 characters
    stored = _stored(*sections)
    seen: list[str] = []
    at: int | None = 0
    while at is not None:
        page = _view(stored, None, at)
        anchors = [part.anchor for part in page.parts]
        seen += [anchor for anchor in anchors if anchor not in seen]
        at = page.after
    assert seen == [f"s{number}" for number in range(5_000)]


def test_a_passage_deep_in_a_long_document_has_ways_on_and_back() -> None:
    sections = [_section("z" * 100) for _ in range(10_000)]
    page = _view(_stored(*sections), Passage(5_000, Span(0, 10)))
    anchors = [part.anchor for part in page.parts]
    assert "s5000" in anchors
    assert anchors[0] != "s0"
    assert page.before is not None
    assert page.after == int(anchors[-1][1:]) + 1


def test_a_document_without_sections_has_a_page() -> None:
    assert _view(_stored(), None).parts == ()
