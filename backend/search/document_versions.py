"""Tell which document replaces which, among those that were found.

A document is replaced by one of the same source

- that says so, or of which it says so itself: in its metadata (`replaces`, `superseded_by` …), or in a sentence that
  names the other by the words of its title, where the other was changed later; or
- that was changed later and is the same page: equal in title and file name but for marks such as "old" and "draft", in
  the same folder, but for one that is called so ("archive"), or in the same space of a wiki. Where title, file name or
  status say that it is old, an equal title in that place is enough.

An equal title alone says nothing: there is a README in every folder, and weekly notes are a series. Numbers of versions
say nothing either: the release notes of version 1 hold when there is a version 2.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import chain, permutations
from pathlib import PurePosixPath

import regex

from backend.search.models import InferenceSection, Successor
from indexing.chunking.chunk import Chunk
from indexing.text.normalization import fold
from indexing.text.tokenizer import plain_words

REPLACED_WITHIN = 12
"""Words after "replaces" among which the title of what is replaced stands."""
FEWEST_TITLE_WORDS = 2
"""A title of one word stands in many a sentence."""

_REPLACES = frozenset({"replaces", "supersedes", "obsoletes"})
_REPLACED_BY = frozenset({"replaced_by", "superseded_by", "obsoleted_by"})
_STEMS = (
    *("replace", "supersede", "obsolete", "deprecated", "outdated"),
    *("ersetz", "abgelöst", "veraltet"),
)
"""One of them stands in every sentence that says so; to look for them costs least."""
_SAYS_REPLACES = regex.compile(
    r"(?i)\b(?:replaces|supersedes|obsoletes|ersetzt(?! durch\b)"
    r"|(?:these|they)(?: \w+){0,3} (?:replace|supersede)|(?:diese|sie)(?: \w+){0,3} ersetzen)\b"
)
_SAYS_REPLACED_BY = regex.compile(
    r"(?i)\b(?:(?:replaced|superseded|obsoleted) by|(?:ersetzt|abgelöst) durch"
    r"|(?:obsolete|deprecated|outdated|superseded|veraltet)\W+(?:please )?(?:see|use|read|siehe)(?: instead)?)\b"
)
_SENTENCE_END = regex.compile(r"[.!?。]\s|\n\n")
_PAST = regex.compile(
    fold(
        r"\b(?:old|older|former|formerly|previous|previously|earlier|superseded|used to"
        r"|alte[mnrs]?|frühere?[mnrs]?|früher|bisherige?[mnrs]?|damals)\b|旧|以前|之前|过去|原来|昔"
    )
)
_YEAR = regex.compile(r"(?<!\d)(?:19|20)[0-9]{2}(?!\d)")
_VERSION = regex.compile(
    r"[\d.]+|\b(?:v|version|rev|revision|old|new|draft|final|copy|alt|neu)\b|旧|新|版"
)
_OLD_MARK = regex.compile(
    r"\b(?:old|draft|archived|superseded|outdated|deprecated|obsolete|alt|entwurf)\b|旧版?"
)
_OLD_STATUS = frozenset(
    {
        "archived",
        "superseded",
        "outdated",
        "deprecated",
        "obsolete",
        "retired",
        "withdrawn",
        "replaced",
    }
)
_NAMED_OLD = regex.compile(r"^(?:Old|Alte[mnrs]?) \p{Lu}\S*(?= \p{Ll})")
"""A proper name among words that are none: "Old Town office"."""
_MARK = regex.compile(rf"{_OLD_MARK.pattern}|\b(?:new|final|neu)\b|新版?")
_ARCHIVE = regex.compile(
    r"(?i)[_.]?(?:archived?|archiv|old|superseded|outdated|deprecated|obsolete)"
)


def asks_about_the_past(query: str) -> bool:
    return _PAST.search(fold(query)) is not None


def years_in(text: str) -> frozenset[str]:
    return frozenset(_YEAR.findall(text))


def without_version(heading: str) -> str:
    """Return a heading without what may distinguish versions: words such as "old", and all numbers."""
    return _strip(_VERSION, fold(heading))


def _strip(marks: regex.Pattern[str], text: str) -> str:
    return " ".join(marks.sub(" ", text).split()).strip("() ")


@dataclass(frozen=True, slots=True)
class _Page:
    """What is equal of the versions of a page."""

    place: str
    name: str
    title: str


@dataclass(frozen=True, slots=True)
class _Document:
    """A document, by the chunks that were found."""

    chunks: tuple[Chunk, ...]

    @property
    def chunk(self) -> Chunk:
        return self.chunks[0]

    @property
    def id(self) -> str:
        return self.chunk.document_id

    @property
    def updated_at(self) -> datetime | None:
        return self.chunk.updated_at

    @property
    def metadata(self) -> Mapping[str, tuple[str, ...]]:
        return _parse_tags(self.chunk.tags)

    @property
    def path(self) -> str:
        return next(iter(self.metadata.get("path", ())), "")

    @property
    def page(self) -> _Page | None:
        metadata = self.metadata
        # Blog posts and attachments of a space may share a title.
        space = metadata.get("space", ("",))[0] if metadata.get("kind") == ("page",) else ""
        return _page_of(self.chunk.title, self.path, space)

    def is_later_than(self, other: "_Document") -> bool:
        mine, others = self.updated_at, other.updated_at
        return mine is not None and others is not None and mine > others

    def is_called(self, name: str) -> bool:
        """Return whether metadata of another document means this one."""
        name, path = name.strip(), self.path
        return name in (self.chunk.title, path, self.id) or path.endswith(f"/{name}")


@lru_cache(maxsize=10_000)
def _parse_tags(tags: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the values of each key, however that is spelled."""
    values: dict[str, tuple[str, ...]] = {}
    for tag in sorted(tags):
        key, _, value = tag.partition("=")
        name = key.casefold().replace("-", "_").replace(" ", "_")
        values[name] = (*values.get(name, ()), value)
    return values


@lru_cache(maxsize=10_000)
def _page_of(title: str, path: str, space: str) -> _Page | None:
    """Return what a page is known by; None where it has no place that tells it from others of its title."""
    called = fold(title) if _NAMED_OLD.match(title) else _strip(_MARK, fold(title))
    if path:
        file = PurePosixPath(path)
        folders = [each for each in file.parts[:-1] if not _ARCHIVE.fullmatch(each)]
        name = _strip(_MARK, regex.sub(r"[-_.\s]+", " ", fold(file.stem)))
        return _Page("/".join(folders) + file.suffix.casefold(), name, called)
    return _Page(space, "", called) if space else None


def find_successors(sections: Iterable[InferenceSection]) -> dict[str, Successor]:
    """Return what replaces a document, by the id of the replaced one; of several the latest."""
    chunks: dict[str, list[Chunk]] = {}
    for section in sections:
        chunks.setdefault(section.document_id, []).extend(section.chunks)
    documents = [_Document(tuple(each)) for each in chunks.values()]
    found: dict[str, _Document] = {}
    for old, new in _find_replacements(documents):
        known = found.get(old.id)
        if known is None or new.is_later_than(known):
            found[old.id] = new
    return {
        old: Successor(new.id, new.chunk.title)
        for old, new in found.items()
        # Where each says that it replaces the other, neither is believed.
        if new.id not in found or found[new.id].id != old
    }


def _find_replacements(
    documents: Sequence[_Document],
) -> Iterator[tuple[_Document, _Document]]:
    """Yield pairs of a document and one that replaces it."""
    by_source: dict[str, list[_Document]] = {}
    for one in documents:
        by_source.setdefault(one.chunk.source, []).append(one)
    for of_source in by_source.values():
        yield from _find_same_pages(of_source)
        for one in of_source:
            others = [other for other in of_source if other is not one]
            yield from ((other, one) for other in _find_meant(one, _REPLACES, others))
            yield from ((one, other) for other in _find_meant(one, _REPLACED_BY, others))
            yield from _find_said(one, others)


def _find_same_pages(documents: Sequence[_Document]) -> Iterator[tuple[_Document, _Document]]:
    pages: dict[_Page, list[_Document]] = {}
    for one in documents:
        if (page := one.page) is not None:
            pages.setdefault(page, []).append(one)
    for versions in pages.values():
        for old, new in permutations(versions, 2):
            if new.is_later_than(old) and not _may_be_old(new):
                yield old, new
    titles: dict[tuple[str, str], list[_Document]] = {}
    for page, versions in pages.items():
        titles.setdefault((page.place, page.title), []).extend(versions)
    for versions in titles.values():
        for old, new in permutations(versions, 2):
            if new.is_later_than(old) and _is_declared_old(old) and not _may_be_old(new):
                yield old, new


def _may_be_old(document: _Document) -> bool:
    """Return whether its title or any part of its path says so: enough not to take it for the current version."""
    return _OLD_MARK.search(fold(f"{document.chunk.title} {document.path}")) is not None


def _is_declared_old(document: _Document) -> bool:
    """Return whether its title, file name or status says so of this document.

    The name of its folder does not count: it says so of all documents of the folder, whichever is newest.
    """
    name = regex.sub(r"[-_.\s]+", " ", PurePosixPath(document.path).stem)
    marked = _OLD_MARK.search(fold(f"{document.chunk.title} {name}")) is not None
    statuses = map(fold, document.metadata.get("status", ()))
    return marked or not _OLD_STATUS.isdisjoint(statuses)


def _find_meant(
    document: _Document, keys: frozenset[str], others: Sequence[_Document]
) -> Iterator[_Document]:
    """Yield the documents that one names in its metadata."""
    metadata = document.metadata
    for name in chain.from_iterable(metadata.get(key, ()) for key in keys):
        yield from (other for other in others if other.is_called(name))


def _find_said(
    document: _Document, others: Sequence[_Document]
) -> Iterator[tuple[_Document, _Document]]:
    """Yield what sentences of a document say of others."""
    for chunk in document.chunks:
        if not any(stem in chunk.text.lower() for stem in _STEMS):
            continue
        for said in _said_after(_SAYS_REPLACES, chunk.text):
            for other in others:
                if document.is_later_than(other) and _names(said, other):
                    yield other, document
        for said in _said_after(_SAYS_REPLACED_BY, chunk.text):
            for other in others:
                if other.is_later_than(document) and _names(said, other):
                    yield document, other


def _said_after(verb: regex.Pattern[str], text: str) -> Iterator[str]:
    """Yield what follows the verb in its sentence."""
    for match in verb.finditer(text):
        yield _SENTENCE_END.split(text[match.end() :], maxsplit=1)[0]


def _names(said: str, document: _Document) -> bool:
    """Return whether a sentence has the words of the title, or the file name."""
    found, title = plain_words(said)[:REPLACED_WITHIN], plain_words(document.chunk.title)
    if len(title) >= FEWEST_TITLE_WORDS and set(title) <= set(found):
        return True
    file = PurePosixPath(document.path).name
    return (
        bool(file) and regex.search(rf"(?<![\w-]){regex.escape(file)}(?![\w-])", said) is not None
    )


def place_after_successors(
    sections: Sequence[InferenceSection], successors: Mapping[str, Successor]
) -> list[InferenceSection]:
    """Move what stands above the document that replaces it to directly below the best section of that."""
    waiting: dict[str, list[InferenceSection]] = {}
    placed: list[InferenceSection] = []
    ahead = {section.document_id for section in sections}
    """Documents of which nothing is placed yet."""
    for section in sections:
        pending = [section]
        while pending:
            one = pending.pop(0)
            successor = successors.get(one.document_id)
            if successor and ahead.issuperset({one.document_id, successor.document_id}):
                waiting.setdefault(successor.document_id, []).append(one)
                continue
            placed.append(one)
            ahead.discard(one.document_id)
            pending = [*waiting.pop(one.document_id, ()), *pending]
    return [*placed, *chain.from_iterable(waiting.values())]
