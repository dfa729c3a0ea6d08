"""JSON of an answer: its citations, and the events while it is written."""

from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from pydantic import JsonValue, computed_field

from backend.schemas.base import Schema, SpanPair, with_example
from backend.schemas.file import FilesGivenResponse

if TYPE_CHECKING:
    from backend.chat.events import AnswerDone, Citation, ShownDocument
    from backend.chat.passages import PassagesShown

_LINK = "file:///srv/handbook/people/parental-leave.md"
_SENTENCE = "Parents have 26 weeks of paid leave."
_CITED: dict[str, JsonValue] = {
    "number": 1,
    "document_id": "handbook:people/parental-leave.md",
    "title": "Parental leave",
    "link": _LINK,
}


_PASSAGE: dict[str, JsonValue] = {
    **_CITED,
    "place": "How long",
    "quote": _SENTENCE,
    "section": 1,
    "span": [0, 36],
    "runs": [{"text": _SENTENCE, "highlighted": True}],
    "score": 0.71,
}

SourceKindName: TypeAlias = Literal["document", "file", "url", "memory", "research", "image"]
"""`url`: a page of the open web; `memory`: what the asker asked to remember; `research`: what research found out before."""
Verdict: TypeAlias = Literal[
    "verbatim", "supported", "weak", "unsupported", "contradicted", "unchecked"
]


class CitationResponse(Schema):
    number: int
    document_id: str
    title: str
    link: str
    kind: SourceKindName = "document"
    quote: str
    """The passage that supports or contradicts the sentence, or comes nearest; empty where none was found. Of an answer that did not
    come to its end, the beginning of the passage that its model was given."""
    section: int
    span: SpanPair
    score: float
    verdict: Verdict
    """`verbatim`: the sentence is the document's own, no language model wrote it. `unchecked`: the check
    did not run, or could not: no claim, or a language that is not understood."""

    @classmethod
    def from_citation(cls, citation: "Citation") -> Self:
        support = citation.support
        return cls(
            number=citation.number,
            document_id=citation.document_id,
            title=citation.title,
            link=citation.link,
            kind=citation.kind.value,
            quote=support.quote if support else "",
            section=support.section if support else 0,
            span=(support.span.start, support.span.end) if support else (0, 0),
            score=support.score if support else 0.0,
            verdict=support.verdict.value if support else "unchecked",
        )


class TextRun(Schema):
    """A part of a passage as a person reads it."""

    text: str
    highlighted: bool
    """Whether it seems to answer the question."""


class PassageResponse(Schema):
    """A passage that comes close to the question, where no language model answered."""

    number: int
    document_id: str
    title: str
    link: str
    place: str
    """Headings or page in the document."""
    quote: str
    """Verbatim, as in the document."""
    section: int
    span: SpanPair
    runs: tuple[TextRun, ...]
    """The quote without markup, on one line."""
    score: float


PassagesReasonName: TypeAlias = Literal[
    "no_model",
    "nothing_answers",
    "budget_used",
    "group_budget_used",
    "shared_budget_used",
    "web_alone",
    "model_failed",
    "model_refused",
    "model_broke_off",
    "without_model",
]
"""`without_model` is shown to others than the asker, in place of `budget_used` and `group_budget_used`."""


class PassagesEvent(Schema):
    """The event `passages`: comes where no language model answers, before the text; where it failed, after
    what it wrote."""

    model_config = with_example(
        reason="no_model",
        sentence="No language model is set. These passages come closest.",
        passages=[_PASSAGE],
    )

    reason: PassagesReasonName
    sentence: str
    """What to say to the asker."""
    passages: tuple[PassageResponse, ...]

    @classmethod
    def from_shown(cls, shown: "PassagesShown", sentence: str) -> Self:
        return cls(
            reason=shown.reason.value,
            sentence=sentence,
            passages=tuple(map(PassageResponse.model_validate, shown.passages)),
        )


class ShownSectionResponse(Schema):
    """The best passage of a section that the answer could cite."""

    section: int
    span: SpanPair
    heading_path: tuple[str, ...]


class ShownDocumentResponse(Schema):
    """A document that the answer could cite, under its number."""

    number: int
    document_id: str
    title: str
    link: str
    kind: SourceKindName = "document"
    source: str = ""
    """As results of a search name it; empty where it is of none, for others where it is one of files, and in answers stored without it."""
    updated_at: datetime | None = None
    """When the document was changed last, as of the answer."""
    cited: bool
    sections: tuple[ShownSectionResponse, ...]

    @classmethod
    def from_document(cls, shown: "ShownDocument", *, cited: bool) -> Self:
        chunks = [section.best.chunk for section in shown.sections]
        return cls(
            number=shown.number,
            document_id=shown.document_id,
            title=shown.title,
            link=shown.link,
            kind=shown.kind.value,
            source=shown.source or (chunks[0].source if chunks else ""),
            updated_at=chunks[0].updated_at if chunks else None,
            cited=cited,
            sections=tuple(map(ShownSectionResponse.model_validate, chunks)),
        )


class CitedSourceResponse(Schema):
    """A source that the answer cites, as the list at its end has it."""

    number: int
    title: str
    link: str
    kind: SourceKindName
    document_id: str


class AnswerResponse(Schema):
    question: str
    answer: str
    model: str | None
    citations: tuple[CitationResponse, ...]
    seconds: float
    cut: bool = False
    """Whether the model reached its limit before the end of the answer."""
    answered: bool = True
    """False if the language model failed, or none is set and no passage seems to answer."""
    passages: tuple[PassageResponse, ...] = ()
    """Where no language model answered: those that come closest, best first."""
    passages_reason: PassagesReasonName | None = None
    """Why they are shown, as the event `passages` says; null where a language model answered, and of answers stored without it."""
    uncited: tuple[str, ...] = ()
    """Sentences that state something and cite nothing; all of them if there is no citation."""
    general_knowledge: bool = False
    """The answer states something and cites nothing: it is what the language model has learned."""
    documents: tuple[ShownDocumentResponse, ...] = ()
    """All that the answer could cite, by number: what was shown to the model, or quoted from."""
    files: FilesGivenResponse | None = None
    """What became of the files that came with the question; null where none did."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def references(self) -> tuple[CitedSourceResponse, ...]:
        """The cited sources, each once, in the order of their numbers; none where nothing is cited."""
        cited = {citation.number: citation for citation in reversed(self.citations)}
        return tuple(CitedSourceResponse.model_validate(cited[number]) for number in sorted(cited))

    @classmethod
    def from_answer(cls, question: str, done: "AnswerDone", seconds: float) -> Self:
        cited = {citation.number for citation in done.citations}
        return cls(
            question=question,
            answer=done.text,
            model=done.model,
            citations=tuple(map(CitationResponse.from_citation, done.citations)),
            seconds=round(seconds, 4),
            cut=done.cut,
            answered=done.answered,
            passages=tuple(map(PassageResponse.model_validate, done.passages)),
            passages_reason=done.passages_reason.value if done.passages_reason else None,
            uncited=done.uncited,
            general_knowledge=done.is_general_knowledge,
            documents=tuple(
                ShownDocumentResponse.from_document(one, cited=one.number in cited)
                for one in done.documents
            ),
            files=FilesGivenResponse.from_given(done.files) if done.files else None,
        )


class ReasoningEvent(Schema):
    """The event `reasoning`."""

    model_config = with_example(text="The page on leave says how long it is.")

    text: str


class TextEvent(Schema):
    """The event `text`: Markdown, citations as `[[1]](link)`."""

    model_config = with_example(text=f"{_SENTENCE} [[1]]({_LINK})")

    text: str


class CitationEvent(Schema):
    """The event `citation`: comes before the text that cites."""

    model_config = with_example(**_CITED)

    number: int
    document_id: str
    title: str
    link: str
    kind: SourceKindName = "document"


class AnswerDoneEvent(Schema):
    """The event `done` of an answer."""

    model_config = with_example(
        answer={
            "question": "How long is parental leave?",
            "answer": f"{_SENTENCE} [[1]]({_LINK})",
            "model": None,
            "citations": [
                {
                    **_CITED,
                    "quote": _SENTENCE,
                    "section": 1,
                    "span": [0, 36],
                    "score": 0.91,
                    "verdict": "verbatim",
                }
            ],
            "seconds": 0.41,
            "cut": False,
            "answered": True,
            "passages": [_PASSAGE],
            "passages_reason": "no_model",
            "uncited": [],
            "general_knowledge": False,
            "references": [{**_CITED, "kind": "document"}],
            "documents": [
                {
                    **_CITED,
                    "source": "handbook",
                    "updated_at": "2025-11-03T09:30:00Z",
                    "cited": True,
                    "sections": [
                        {
                            "section": 1,
                            "span": [0, 36],
                            "heading_path": ["Parental leave", "How long"],
                        }
                    ],
                }
            ],
        },
        html=f"<p>{_SENTENCE}</p>",
    )

    answer: AnswerResponse
    html: str
    """The answer, rendered and sanitized."""
