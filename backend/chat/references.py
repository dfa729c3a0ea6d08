"""The references of a message in Chat mode: all that was looked up for it, under one numbering."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backend.chat.citations.citation_processor import CitedDocument, SourceKind
from backend.chat.context_files import ContextFile, ContextFileMetadata
from backend.search.budget import JSON_JOINT, describe_document, to_json
from backend.search.models import InferenceSection, SearchResult
from indexing.embedding.token_counting import CountTokens

_GAP = "\n[…]\n"
"""Between two parts of a document."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A source as the model is shown it."""

    number: int
    document: CitedDocument
    content: str

    def as_json(self) -> str:
        return to_json(
            {
                "id": self.number,
                "title": self.document.title,
                "content": self.content,
                "sourceUrl": self.document.link,
                "type": self.document.kind.value,
            }
        )

    def as_list_item(self) -> str:
        """Return it with title, address and summary, as an item of a numbered list."""
        lines = (self.document.title, self.document.link, self.content)
        text = "\n   ".join(" ".join(line.split()) for line in lines if line.strip())
        return f"{self.number}. {text}"


def map_references(references: Iterable[Reference]) -> Mapping[int, CitedDocument]:
    return {reference.number: reference.document for reference in references}


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


def _join_sections(sections: Sequence[InferenceSection]) -> str:
    known = describe_document(sections[0])
    known.pop("title", None)
    about = "; ".join(f"{name}: {_to_text(value)}" for name, value in known.items())
    text = _GAP.join(section.text for section in sections)
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
