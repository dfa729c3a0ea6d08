"""What the model of a turn was shown of documents: which of it may not leave in a query or an address."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from urllib.parse import unquote_plus, urlsplit

from backend.chat.agent.encoded_terms import decode_word
from backend.chat.context_files import ContextFile
from backend.chat.earlier_findings import EarlierFinding
from backend.chat.privacy.query_privacy import (
    AllowedQuery,
    CheckedQuery,
    RefusedQuery,
    TurnTexts,
    keep_private_terms_out,
)
from backend.chat.turn import ChatTurn
from backend.search.models import InferenceSection
from backend.web_search.addresses import list_own_labels
from connectors.access import PUBLIC
from indexing.chunking.chunk import Chunk

MAX_ENCODINGS = 3
"""Of a part of an address."""


class ReadTexts:
    """The texts that a turn has read so far, and those that its asker wrote in the conversation.

    Pages of the web do not make a term public: a page that lists all codes that there could be would let out the right one.
    Answers of earlier turns count neither as private nor as public, unless they are added: they may rest on the web as well,
    and a follow-up names what they said. Where the asker has had an answer before, or gave pictures, addresses are restricted
    all the same.
    """

    def __init__(self, turn: ChatTurn, files: Iterable[ContextFile]) -> None:
        """Tell the asker's own texts from private ones; `files` are those that the model reads whole."""
        self._own = (
            turn.message,
            *(message.text for message in turn.history if message.role == "user"),
        )
        self._private: list[str] = [f"{file.name}\n{file.text}" for file in files]
        self._public: list[str] = []
        answered = any(message.role == "assistant" for message in turn.history)
        self._has_internal = bool(self._private or turn.pictures or turn.summary or answered)
        self._texts: TurnTexts | None = None

    @property
    def own(self) -> Sequence[str]:
        """What the asker wrote: the message, and those before it."""
        return self._own

    @property
    def has_internal(self) -> bool:
        """Whether the model may have read what is internal: then an address that it chooses may say something of it."""
        return self._has_internal

    def add_sections(self, sections: Iterable[InferenceSection]) -> None:
        """Note what a search has shown to the model."""
        for section in sections:
            self._has_internal = True
            self._texts = None
            public = PUBLIC in section.best.chunk.access.readers
            (self._public if public else self._private).append(join_shown_texts(section))

    def add_findings(self, findings: Iterable[EarlierFinding]) -> None:
        """Note what research found out before as private, but for what rests on pages of the web alone."""
        for one in findings:
            self._has_internal = True
            self._texts = None
            if one.document_ids or not one.is_of_web:
                self._private.append(f"{one.question}\n{one.answer}")

    def add_answers(self, turn: ChatTurn) -> None:
        """Note what was answered before as private: the documents behind it may not be at hand to compare."""
        answers = (message.text for message in turn.history if message.role == "assistant")
        self._private += filter(None, (turn.summary, *answers))
        self._texts = None

    def check_query(self, query: str) -> CheckedQuery:
        """Take out of a query of the web what only private texts say."""
        if not self._private:
            return AllowedQuery(query)
        if self._texts is None:
            self._texts = TurnTexts(tuple(self._private), tuple(self._public), self._own)
        return check_query(query, self._texts)

    def is_private_address(self, url: str) -> bool:
        """Return whether an address says what only private texts say, in the names of its host or behind it.

        The domain as a whole is nobody's secret: documents link to pages of it.
        """
        parts = urlsplit(url)
        user = parts.netloc.rpartition("@")[0]
        host = " ".join(list_own_labels(url))
        said = f"{user} {host} {parts.path} {parts.query} {parts.fragment}"
        spellings = [said := unquote_plus(said) for _ in range(MAX_ENCODINGS)]
        return any(self.check_query(one).removed for one in dict.fromkeys(spellings))


def check_query(query: str, texts: TurnTexts) -> CheckedQuery:
    """Take out terms that are written plainly, and then words that are such terms in disguise."""
    checked = keep_private_terms_out(query, texts)
    if isinstance(checked, RefusedQuery):
        return checked
    if _hides_private(checked.text, texts):
        return RefusedQuery((*checked.removed, checked.text))
    hidden = [word for word in checked.text.split() if _hides_private(word, texts)]
    if not hidden:
        return checked
    left = " ".join(word for word in checked.text.split() if word not in hidden)
    again = keep_private_terms_out(left, texts)
    return replace(again, removed=(*checked.removed, *hidden, *again.removed))


def _hides_private(text: str, texts: TurnTexts) -> bool:
    return any(keep_private_terms_out(said, texts).removed for said in decode_word(text))


def join_shown_texts(section: InferenceSection) -> str:
    """Return all that a model is shown of a section: its document's names, owners and metadata too."""
    chunk = section.best.chunk
    return "\n".join((chunk.title, *chunk.heading_path, *_describe(chunk), section.text))


def _describe(chunk: Chunk) -> Iterable[str]:
    """Return what is shown of a document besides its text: its owners and metadata."""
    yield from (f"{person.name} {person.email or ''}" for person in chunk.owners)
    yield from (tag.partition("=")[2] for tag in chunk.tags)
