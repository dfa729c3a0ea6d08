"""Files that come with a message: put in whole if all fit, else used as a search filter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from backend.chat.citations.citation_processor import CitedDocument, SourceKind
from backend.search.models import DocumentNumbers
from backend.search.sections import to_json
from indexing.embedding.token_counting import CountTokens
from indexing.index.protocols import Filters

SHARE_OF_WINDOW = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFile:
    document_id: str
    """Its id in the index, by which a search can be restricted to it."""
    name: str
    text: str
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFileMetadata:
    """A file that was put in whole, with its citation number."""

    number: int
    document_id: str
    name: str
    link: str


@dataclass(frozen=True, slots=True)
class ContextFiles:
    """All or nothing: either every file is put in whole, or the search is restricted to them."""

    files: tuple[ContextFile, ...]
    use_as_search_filter: bool

    def restrict(self, filters: Filters) -> Filters:
        """Restrict `filters` to the files if they are used as a search filter."""
        if not self.use_as_search_filter:
            return filters
        scope = frozenset(file.document_id for file in self.files)
        chosen = filters.document_ids
        return replace(filters, document_ids=scope if chosen is None else scope & chosen)


def resolve_context_user_files(
    files: Sequence[ContextFile], window: int, count_tokens: CountTokens
) -> ContextFiles:
    """Decide whether the files together fit 60 % of the window; a file given twice counts once.

    Args:
        window: tokens of the model's prompt.
    """
    distinct = tuple({file.document_id: file for file in files}.values())
    left = SHARE_OF_WINDOW * window
    for file in distinct:
        left -= count_tokens(_format_file(1, file)) if left >= 0 else 0
    return ContextFiles(distinct, use_as_search_filter=left < 0)


def load_in_memory_chat_files(
    context: ContextFiles, numbers: DocumentNumbers
) -> tuple[ContextFileMetadata, ...]:
    """Number the files that are put in whole, before anything else is numbered; none if they do not fit."""
    if context.use_as_search_filter:
        return ()
    return tuple(
        ContextFileMetadata(
            number=numbers.assign(file.document_id),
            document_id=file.document_id,
            name=file.name,
            link=file.link,
        )
        for file in context.files
    )


def build_context_file_citation_mapping(
    loaded: Sequence[ContextFileMetadata],
) -> Mapping[int, CitedDocument]:
    return {
        file.number: CitedDocument(file.document_id, file.name, file.link, SourceKind.FILE)
        for file in loaded
    }


def files_for_model(context: ContextFiles, loaded: Sequence[ContextFileMetadata]) -> str:
    """Format files as JSON lines, shaped like search results."""
    pairs = zip(loaded, context.files, strict=True) if loaded else ()
    return "\n".join(_format_file(metadata.number, file) for metadata, file in pairs)


def _format_file(number: int, file: ContextFile) -> str:
    return to_json({"document": number, "title": file.name, "content": file.text})
