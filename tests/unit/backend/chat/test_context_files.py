"""All or nothing: files are read whole, or they are where the search looks."""

import json

import pytest

from backend.chat.citations.citation_processor import CitedDocument, SourceKind
from backend.chat.context_files import (
    ContextFile,
    build_context_file_citation_mapping,
    files_for_model,
    load_in_memory_chat_files,
    resolve_context_user_files,
)
from backend.search.models import DocumentNumbers
from indexing.index.protocols import Filters


def file(name: str, text: str = "") -> ContextFile:
    return ContextFile(document_id=f"up:{name}", name=name, text=text, link=f"file:///{name}")


def letters(text: str) -> int:
    return text.count("x")


@pytest.mark.parametrize(("count", "fits"), [(0, True), (59, True), (60, True), (61, False)])
def test_files_fit_sixty_hundredths_of_the_window(count: int, *, fits: bool) -> None:
    half = count // 2
    files = [file("a", "x" * half), file("b", "x" * (count - half))]
    context = resolve_context_user_files(files, 100, letters)
    assert context.use_as_search_filter is not fits


def test_one_file_too_many_and_none_is_read_whole() -> None:
    context = resolve_context_user_files([file("a"), file("b", "x" * 99)], 100, letters)
    assert load_in_memory_chat_files(context, DocumentNumbers()) == ()
    assert files_for_model(context, ()) == ""
    scope = frozenset({"up:a", "up:b"})
    assert context.restrict(Filters()) == Filters(document_ids=scope)
    chosen = Filters(document_ids=frozenset({"up:a", "kb:c"}), sources=frozenset({"s"}))
    assert context.restrict(chosen) == Filters(
        document_ids=frozenset({"up:a"}), sources=frozenset({"s"})
    )


def test_files_read_whole_are_numbered_first_and_narrow_nothing() -> None:
    context = resolve_context_user_files([file("a", 'q"uote\n'), file("b")], 100, letters)
    numbers = DocumentNumbers()
    loaded = load_in_memory_chat_files(context, numbers)
    assert numbers.assign("kb:later") == 3
    assert build_context_file_citation_mapping(loaded) == {
        1: CitedDocument("up:a", "a", "file:///a", SourceKind.FILE),
        2: CitedDocument("up:b", "b", "file:///b", SourceKind.FILE),
    }
    shown = [json.loads(line) for line in files_for_model(context, loaded).splitlines()]
    assert [(each["document"], each["content"]) for each in shown] == [(1, 'q"uote\n'), (2, "")]
    assert context.restrict(Filters()) == Filters()


def test_a_file_that_is_named_twice_counts_once() -> None:
    twice = [file("a", "x" * 40), file("a", "x" * 40)]
    context = resolve_context_user_files(twice, 100, letters)
    assert not context.use_as_search_filter
    assert len(context.files) == 1


def test_no_files_are_no_scope() -> None:
    context = resolve_context_user_files([], 100, letters)
    assert context.restrict(Filters()) == Filters()


def test_counting_stops_when_the_files_no_longer_fit() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return 50

    resolve_context_user_files([file(str(n)) for n in range(1000)], 100, count)
    assert len(counted) == 2
