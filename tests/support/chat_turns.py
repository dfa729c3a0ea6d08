"""Whole turns in Chat mode: a scripted model that answers from what it is sent, documents, and an open web."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from backend.chat.answer_by_model import answer_by_model
from backend.chat.chat_state import ChatStateContainer
from backend.chat.citations.citation_processor import SourceKind
from backend.chat.earlier_findings import FindEarlier
from backend.chat.events import (
    AnswerDone,
    ChatEvent,
    TextPiece,
    TurnFailed,
)
from backend.chat.intent.search_plan import Side
from backend.chat.llm.client import LanguageModel, make_complete
from backend.chat.llm.model_settings import ModelSettings
from backend.chat.turn import ChatDependencies, ChatTurn, FindMemories
from backend.chat.turn_settings import ChatMode
from backend.search.events import StepFailed
from backend.search.models import DocumentNumbers
from backend.search.search_tool import SearchTool
from backend.store.accounts.people import NOBODY
from backend.web_search.domains import ANY_DOMAIN, DomainRules
from connectors.access import Access, Readers
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING
from indexing.embedding.token_counting import estimated_tokens
from indexing.runtime.deadline import Deadline
from indexing.text.tokenizer import plain_words
from tests.contract.provider_worlds.world import Item
from tests.support.open_web import FEW_WORDS, OpenWeb
from tests.support.scripted_model import Json, Reply, Request, Say, ScriptedModel
from tests.support.search import MemoryIndex, chunk
from tests.support.sides import BOTH_SIDES

ANN = Readers.of("user:ann@example.com")
LEAVE, TRAVEL, RECEIPTS = "kb:leave", "kb:travel", "kb:receipts"
CORPUS = (
    chunk(LEAVE, 0, "Our parental leave lasts 14 weeks."),
    chunk(TRAVEL, 0, "The team lead approves travel abroad."),
    chunk(RECEIPTS, 0, "Receipts are handed in within 30 days."),
    chunk("kb:远程", 0, "远程办公每周最多两天。"),
    chunk("kb:falcon", 0, "Project Falcon costs 4,300 EUR.", Access.to(["user:ann@example.com"])),
    chunk(
        "kb:board", 0, "Directors have parental leave of 40 weeks.", Access.to(["user:ceo@x.com"])
    ),
)
DENMARK, LYON, MATCH = (
    "https://law.example/dk",
    "https://sky.example/lyon",
    "https://ball.example/1",
)
FOUND = (
    Item("Leave in Denmark", DENMARK, "Danish law gives parents 24 weeks of leave each."),
    Item("Weather for Lyon", LYON, "Tomorrow it rains in Lyon.", "2026-03-02"),
    Item("Match report", MATCH, "Lyon won the match 2:1 yesterday."),
    Item("零信任网络", "https://security.example/zero", "零信任网络默认不信任任何请求。"),
)
KEYWORDS = "keywords"
"""What the model writes as the keyword variant."""
GENERAL = "From general knowledge: nobody knows."
NOT_SAID = "The documents do not answer this."


def answer_from_sources(request: Request) -> Reply:
    """Do what each prompt asks, from nothing but what it holds."""
    if request.answers:
        return Say(write_answer(request))
    shown = read_selection(request)
    return Say(KEYWORDS if shown is None else json.dumps({"sections": shown}))


def write_answer(request: Request) -> str:
    """Cite the first sentence of each source that has a word of the question, or say what the rules tell to say."""
    question = request.questions[-1]
    said = [
        f"{find_sentence(one['content'])} [{one['number']}]."
        for one in request.sources
        if shares_word(question, f"{one['title']} {one['content']}")
    ]
    if said:
        return " ".join(said)
    rules = f"{request.messages[0]['content']} {request.last_text}"
    if "Never fill the gap" in rules and "references" in rules:
        return NOT_SAID
    return GENERAL


def find_sentence(content: str) -> str:
    """The first sentence of a source, without what is known of its document."""
    lines = [line for line in content.splitlines() if line and not line.startswith("(")]
    text = lines[0] if lines else content
    return text.partition("。")[0].partition(". ")[0].rstrip(".")


def shares_word(question: str, text: str) -> bool:
    return bool(set(plain_words(question)) & set(plain_words(text)) - FEW_WORDS)


def read_selection(request: Request) -> list[Json] | None:
    """The sections that a selection chooses; None where the request is for something else."""
    asked = json.loads(request.messages[-1]["content"])
    if "sections" not in asked:
        return None
    words = " ".join([asked["question"], *asked["searched_as"]])
    return [
        {"id": one["id"], "read": "as_is"}
        for one in asked["sections"]
        if shares_word(words, one["content"])
    ]


def write_plan(web: str = "not_needed", knowledge: str = "not_needed", rewrite: str = "") -> str:
    """The answer of an intent step; several questions of a side are separated by `|`."""
    return (
        f"<websearch>{_write_questions(web)}</websearch>"
        f"<knowledge>{f'<rewrite>{rewrite}</rewrite>' if rewrite else ''}{_write_questions(knowledge)}</knowledge>"
    )


def _write_questions(written: str) -> str:
    return "".join(f"<question>{one}</question>" for one in written.split("|") if one)


PartsChange: TypeAlias = Callable[[ChatDependencies], ChatDependencies]


@dataclass
class ChatTurns:
    """Turns of one asker, with all that came of them."""

    server: ScriptedModel
    web: OpenWeb
    window: int = 32_000
    index: MemoryIndex = field(default_factory=lambda: MemoryIndex(CORPUS))
    state: ChatStateContainer = field(default_factory=ChatStateContainer)
    events: list[ChatEvent] = field(default_factory=list)
    find_memories: FindMemories | None = None
    find_earlier: FindEarlier | None = None
    domains: DomainRules = ANY_DOMAIN
    models: list[LanguageModel] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server.play(answer_from_sources)

    def make_model(self, window: int, name: str = "scripted", **settings: Any) -> LanguageModel:
        model = LanguageModel(
            ModelSettings(
                base_url=self.server.base_url,
                model=name,
                api_key="sk-secret",
                context_window=window,
                first_backoff=0.01,
                **settings,
            )
        )
        self.models.append(model)
        return model

    def make_parts(self, model: LanguageModel | None = None) -> ChatDependencies:
        model = model or self.make_model(self.window)
        complete = make_complete(model)
        tool = SearchTool(
            index=self.index,
            embedder=HashingEmbedder(),
            understanding=EVERYTHING,
            count_tokens=estimated_tokens,
            complete=complete,
            numbers=DocumentNumbers(),
        )
        return ChatDependencies(
            model=model,
            count_tokens=estimated_tokens,
            search=tool,
            numbers=DocumentNumbers(),
            complete=complete,
            web=self.web.session(self.domains),
            find_memories=self.find_memories,
            find_earlier=self.find_earlier,
        )

    def start(
        self,
        message: str,
        *,
        plan: str = "",
        sides: frozenset[Side] = BOTH_SIDES,
        rewrites: bool = True,
        parts: ChatDependencies | None = None,
        **turn: Any,
    ) -> Iterator[ChatEvent]:
        if plan:
            self.server.plan = plan
        values: dict[str, Any] = {
            "readers": ANN,
            "deadline": Deadline.after(30),
            "person_id": NOBODY,
            "mode": ChatMode(sides, rewrites),
            **turn,
        }
        self.state = ChatStateContainer()
        return answer_by_model(
            ChatTurn(message=message, **values), parts or self.make_parts(), self.state
        )

    def ask(self, message: str, **turn: Any) -> AnswerDone:
        """The answer of a turn that must have one."""
        done = self.run(message, **turn)
        assert isinstance(done, AnswerDone), done
        return done

    def fail(self, message: str, **turn: Any) -> TurnFailed:
        done = self.run(message, **turn)
        assert isinstance(done, TurnFailed), done
        return done

    def run(self, message: str, **turn: Any) -> ChatEvent:
        self.events = list(self.start(message, **turn))
        return self.events[-1]

    def close(self) -> None:
        for model in self.models:
            model.close()

    @property
    def answering(self) -> Request:
        """The last request for an answer."""
        return [one for one in self.server.requests if one.answers][-1]

    @property
    def prompt(self) -> str:
        """What the asker's message has become."""
        return self.answering.last_text

    @property
    def shown(self) -> list[tuple[int, str]]:
        """The sources that the model was shown, by number and type."""
        return [(one["number"], one["type"]) for one in self.answering.sources]

    @property
    def searched(self) -> list[list[str]]:
        """What the index was asked, by call."""
        return [[query.text for query in queries] for queries, _ in self.index.finds]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextPiece))

    @property
    def lost(self) -> list[str]:
        return [event.step for event in self.events if isinstance(event, StepFailed)]

    def of_kind(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def cited(done: AnswerDone) -> list[tuple[int, str, SourceKind]]:
    return [(one.number, one.document_id, one.kind) for one in done.citations]
