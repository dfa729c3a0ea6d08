"""The references of a message in Chat mode: all that was looked up for it, under one numbering."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from backend.chat.citations.citation_processor import CitedDocument, SourceKind
from backend.chat.context_files import ContextFile, ContextFileMetadata
from backend.chat.earlier_findings import EarlierFinding
from backend.chat.pictures import Picture
from backend.chat.readable_ids import make_memory_reference, make_research_reference
from backend.search.models import DocumentNumbers, InferenceSection, SearchResult
from backend.search.sections import JSON_JOINT, describe_document, to_json
from backend.store.chat.memories import Memory
from connectors.text_cleaning import remove_invisible
from indexing.embedding.token_counting import CountTokens

GAP = "\n[…]\n"
"""Between two parts of a document or a page."""
_UNNUMBERED = 0
_LINE_ENDS = {ord(one): f"\\u{ord(one):04x}" for one in "\x85\u2028\u2029"}
"""That JSON leaves as they are."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A source as the model is shown it."""

    number: int
    document: CitedDocument
    content: str

    @property
    def kind(self) -> SourceKind:
        return self.document.kind

    def as_json(self) -> str:
        """Return it on one line."""
        shown = to_json(
            {
                "id": self.number,
                "title": self.document.title,
                "content": self.content,
                "sourceUrl": self.document.link,
                "type": self.kind.value,
            }
        )
        return shown.translate(_LINE_ENDS)

    def as_list_item(self) -> str:
        """Return it with title, address and summary, as an item of a numbered list: each on a line of its own that Quarry begins."""
        title, url, summary = (
            " ".join(text.split())
            for text in (self.document.title, self.document.link, self.content)
        )
        return f"{self.number}. Title: {title}\n   Address: {url}\n   Summary: {summary}"


def map_references(references: Iterable[Reference]) -> Mapping[int, CitedDocument]:
    return {reference.number: reference.document for reference in references}


def number_references(
    references: Iterable[Reference], numbers: DocumentNumbers
) -> tuple[Reference, ...]:
    """Return the references with the numbers that their sources have or get there."""
    return tuple(
        replace(one, number=numbers.assign(one.document.document_id)) for one in references
    )


def make_file_references(
    loaded: Sequence[ContextFileMetadata], files: Sequence[ContextFile]
) -> list[Reference]:
    """Return the files that the model reads whole."""
    return [
        Reference(
            one.number,
            CitedDocument(one.document_id, one.name, one.link, SourceKind.FILE),
            file.text,
        )
        for one, file in zip(loaded, files, strict=True)
    ]


def make_document_references(result: SearchResult) -> list[Reference]:
    """Return the documents of a search, each once, with what is known of them before their sections."""
    sections: dict[int, list[InferenceSection]] = {}
    documents: dict[int, CitedDocument] = {}
    for doc, section in zip(result.docs, result.sections, strict=True):
        sections.setdefault(doc.number, []).append(section)
        documents.setdefault(doc.number, CitedDocument(doc.document_id, doc.title, doc.link))
    return [
        Reference(number, document, _join_sections(sections[number]))
        for number, document in documents.items()
    ]


def drop_repeated(references: Iterable[Reference]) -> list[Reference]:
    """Keep the first reference to each source: a file that is read whole may be found by a search too."""
    first: dict[str, Reference] = {}
    for reference in references:
        first.setdefault(reference.document.document_id, reference)
    return list(first.values())


def keep_documents(result: SearchResult, shown: Iterable[Reference]) -> SearchResult:
    """Return a result without the documents that are not shown, under the numbers of those that are."""
    numbers = {one.document.document_id: one.number for one in shown}
    kept = [
        (replace(doc, number=numbers[doc.document_id]), section)
        for doc, section in zip(result.docs, result.sections, strict=True)
        if doc.document_id in numbers
    ]
    docs, sections = tuple(doc for doc, _ in kept), tuple(section for _, section in kept)
    citations = {one.number: one.document_id for one in docs}
    return replace(result, docs=docs, sections=sections, citations=citations)


def make_memory_references(memories: Iterable[Memory]) -> list[Reference]:
    """Return what the asker asked to remember; its title is the day of that."""
    return [
        Reference(
            _UNNUMBERED,
            CitedDocument(
                make_memory_reference(one.id),
                f"Remembered on {one.created_at:%Y-%m-%d}",
                "",
                SourceKind.MEMORY,
            ),
            one.text,
        )
        for one in memories
    ]


def make_research_references(findings: Iterable[EarlierFinding]) -> list[Reference]:
    """Return what research found out before, each with its day and whether strangers have written some of it."""
    return [
        Reference(
            _UNNUMBERED,
            CitedDocument(
                make_research_reference(one.id),
                " ".join(remove_invisible(one.question).split()),
                "",
                SourceKind.RESEARCH,
            ),
            f"({_describe_finding(one)})\n{remove_invisible(one.answer)}",
        )
        for one in findings
    ]


def _describe_finding(finding: EarlierFinding) -> str:
    found = f"found by research on {finding.made_at:%Y-%m-%d}"
    return f"{found}, in part from pages of the web" if finding.is_of_web else found


def make_picture_references(pictures: Iterable[Picture]) -> list[Reference]:
    """Return pictures that the model sees, in the order in which they come with the message."""
    return [
        Reference(
            _UNNUMBERED,
            CitedDocument(one.document_id, one.name, "", SourceKind.PICTURE),
            f"Picture {place} of those that come with this message.",
        )
        for place, one in enumerate(pictures, 1)
    ]


def _join_sections(sections: Sequence[InferenceSection]) -> str:
    known = describe_document(sections[0])
    known.pop("title", None)
    about = "; ".join(f"{name}: {_to_text(value)}" for name, value in known.items())
    text = GAP.join(section.text for section in sections)
    return f"({about})\n{text}" if about else text


def _to_text(value: object) -> str:
    match value:
        case str():
            return value
        case list():
            return ", ".join(map(str, value))
        case _:
            return to_json(value)


def format_references(references: Sequence[Reference]) -> str:
    """Format references as a JSON array in a fence, one a line: no text of a source can end the fence."""
    lines = ",\n".join(reference.as_json() for reference in references)
    return f"```json\n[\n{lines}\n]\n```"


def format_web_list(references: Sequence[Reference]) -> str:
    """Format what a search of the web found as a numbered list, of one item a result."""
    return "\n".join(reference.as_list_item() for reference in references)


def fit_references(
    references: Iterable[Reference], room: int, count_tokens: CountTokens
) -> list[Reference]:
    """Keep those that together come to at most `room` tokens; one that is too long is left out."""
    kept: list[Reference] = []
    for reference in references:
        cost = count_tokens(reference.as_json()) + JSON_JOINT
        if cost <= room:
            kept.append(reference)
            room -= cost
    return kept
