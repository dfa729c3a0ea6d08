"""Runs of research with all that they use: a scripted model that answers only from what it is sent, documents, a web.

    with research_world(seed=1) as world:
        record = world.run("What does the Aster pump cost?; Who makes the Aster pump?")
        assert record.report is not None

The model knows nothing: it plans by the semicolons of the question, answers with sentences that share words with what is asked, and
cites them by the numbers that it was shown. Pages, documents and results are in an order that the seed decides.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from backend.chat.citations.marker_parser import Marker, split_markers
from backend.chat.llm.client import LanguageModel
from backend.chat.prompts import judging_prompt
from backend.research import prompts
from backend.research.dependencies import ResearchControl, ResearchDependencies
from backend.research.events import (
    ActionDone,
    ActionStarted,
    IntermediateReportCitedDocs,
    PlanMade,
    ReportChecked,
    ReportPiece,
    ResearchDone,
    ResearchEvent,
    SourceFound,
    TaskDone,
    TaskStarted,
)
from backend.research.record.final_report import FinalReport
from backend.research.record.record_json import read_record, write_record
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.steps import continue_research
from backend.search.search_tool import SearchTool
from backend.store.accounts.people import NOBODY
from connectors.access import Access, Readers
from indexing.chunking.chunk import Chunk
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.embedding.language_support import EVERYTHING, EmbedderWithLanguages
from indexing.embedding.token_counting import estimated_tokens
from indexing.index.scoped_index import ScopedIndex
from indexing.runtime.deadline import CancelToken
from indexing.text.tokenizer import plain_words
from tests.contract.provider_worlds.world import Item
from tests.support.agent_world import AgentWorld, agent_world, page
from tests.support.chat_turns import read_selection
from tests.support.open_web import FEW_WORDS as OFTEN
from tests.support.scripted_model import Json, Reply, Request, Say
from tests.support.search import MemoryIndex, chunk

ANN = Readers.of("user:ann@example.com")
PRIVATE = Access.to(["user:ann@example.com"])
FEW_WORDS = {*OFTEN, "do", "who", "where", "when", "which", "it", "its", "by", "at", "to"}
FACTS = {
    "kb:price": "The Aster pump costs 40 EUR.",
    "kb:maker": "The Aster pump is made by Blau AG.",
    "kb:weight": "The Aster pump weighs 12 kg.",
    "kb:canteen": "The canteen opens at noon.",
    "kb:leave": "Annual leave is 25 days a year.",
}
WEB_FACTS = {
    "/aster": ("News of the Aster pump", "The Aster pump costs 45 EUR."),
    "/blau": ("All about Blau AG", "Blau AG has its seat in Lyon."),
    "/garden": ("Gardens in summer", "Gardens need much water in summer."),
}
"""The title and the one sentence of each page."""
QUESTION = "What does the Aster pump cost?; Who makes the Aster pump?"

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]")
_URL = re.compile(r"<url>\n(.*?)\n</url>")
_MADE_BY = re.compile(r"made by ([A-Z]\w+ [A-Z]\w+)")


def share_words(one: str, other: str) -> int:
    asked = set(plain_words(one)) - FEW_WORDS
    return len(asked & set(plain_words(other)))


def find_sentences(question: str, text: str, least: int = 2) -> list[str]:
    """The sentences of a text that share so many words with a question."""
    found = (one.strip() for one in _SENTENCE.findall(text))
    return [one for one in found if share_words(question, one) >= least]


def drop_markers(text: str) -> str:
    return re.sub(r" ?\[\d+\]", "", text)


@dataclass
class ResearchModel:
    """Does what each prompt of research asks, from nothing but what it holds."""

    steps: dict[str, Callable[[Json, Request], Reply]] = field(default_factory=dict)
    """What a test wants said to a prompt instead, by the names of the prompts."""
    asked: list[tuple[str, Json]] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        name = name_prompt(request)
        values = _read_values(request)
        self.asked.append((name, values))
        if instead := self.steps.get(name):
            return instead(values, request)
        said = _WRITERS[name](values, request)
        return Say(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False))

    def of(self, name: str) -> list[Json]:
        """What a prompt was given, each time."""
        return [values for asked, values in self.asked if asked == name]


def name_prompt(request: Request) -> str:
    system = str(request.messages[0]["content"])
    named = (name for name, text in _PROMPTS.items() if system.startswith(text))
    return next(named, "other")


def _read_values(request: Request) -> Json:
    users = [one["content"] for one in request.messages if one["role"] == "user"]
    for text in reversed(users):
        try:
            values = json.loads(text)
        except ValueError:
            continue
        if isinstance(values, dict):
            return values
    return {}


_PROMPTS = {
    "clarify": prompts.CLARIFY,
    "plan": prompts.PLAN,
    "agent": prompts.agent_prompt((), (), None).split("\n\n", maxsplit=1)[0],
    "judge": prompts.JUDGE,
    "task_report": prompts.TASK_REPORT,
    "next_tasks": prompts.NEXT_TASKS,
    "contradictions": prompts.CONTRADICTIONS,
    "final_report": prompts.FINAL_REPORT,
    "reword": prompts.REWORD,
    "claims": judging_prompt("")[0],
    "clusters": "You are given results of search engines for a query",
}


def _clarify(values: Json, _: Request) -> Json:
    return {"questions": [] if "pump" in values["question"] else ["Which one?"]}


def _plan(values: Json, _: Request) -> Json:
    return {"tasks": [one.strip() for one in values["question"].split(";")]}


def allowed_actions(request: Request) -> set[str]:
    return set(re.findall(r'"action": "(\w+)"', str(request.messages[0]["content"])))


def _decide(values: Json, request: Request) -> Json:
    """Read a page that seems to help, else answer from what is known, else search in other words."""
    allowed, question = allowed_actions(request), values["question"]
    helpful = [
        one["page"] for one in values.get("to_read", ()) if share_words(question, one["title"])
    ]
    if "visit" in allowed and helpful:
        return {"action": "visit", "pages": helpful}
    answer = " ".join(_find_answers(question, values, request))
    if "answer" in allowed and answer:
        return {"action": "answer", "answer": answer}
    words = " ".join(plain_words(question)[-2:])
    if "search" in allowed:
        return {"action": "search", "queries": [words]}
    return {"action": "reflect", "questions": []}


def _find_answers(question: str, values: Json, request: Request) -> Iterator[str]:
    numbers = {one["address"]: one["source"] for one in values.get("sources", ())}
    for message in request.messages:
        address = _URL.search(str(message["content"]))
        if message["role"] == "assistant" and address and address[1] in numbers:
            for sentence in find_sentences(question, str(message["content"])):
                yield f"{sentence[:-1]} [{numbers[address[1]]}]."


def _judge(values: Json, _: Request) -> Json:
    fits = share_words(values["question"], values["answer"]) > 1
    return {
        "definite": fits,
        "fresh": True,
        "complete": fits,
        "reason": "" if fits else "It is of something else.",
    }


def _report_task(values: Json, _: Request) -> str:
    said = [
        f"{sentence[:-1]} [{one['source']}]."
        for one in values["sources"]
        for sentence in find_sentences(values["question"], one["content"])
    ]
    return " ".join(dict.fromkeys(said))


def _choose_next(values: Json, _: Request) -> Json:
    """Ask for the seat of a maker, where no report has it."""
    text = " ".join(one["report"] for one in values["reports"])
    made = _MADE_BY.search(text)
    asks = made and not any("seat" in one["question"] for one in values["reports"])
    return {
        "tasks": [f"Where has {made[1]} its seat?"] if made and asks else [],
        "reason": "Asked on.",
    }


def _find_contradictions(values: Json, _: Request) -> Json:
    """Sentences that differ in their number alone contradict each other."""
    by_shape: dict[str, dict[str, int]] = {}
    for one in values["reports"]:
        for sentence, number in list_cited(one["report"]):
            shape = re.sub(r"\d+", "#", sentence)
            by_shape.setdefault(shape, {})[sentence] = number
    found = [
        {"about": shape, "statements": [{"source": n, "says": says} for says, n in said.items()]}
        for shape, said in by_shape.items()
        if len(said) > 1
    ]
    return {"contradictions": found}


def list_cited(text: str) -> list[tuple[str, int]]:
    """The sentences of a text without their markers, each with a number that it cites."""
    found = re.findall(r"([^.\n]*?) \[(\d+)\]\.", text)
    return [(f"{sentence.strip()}.", int(number)) for sentence, number in found]


def _report_all(values: Json, _: Request) -> str:
    return "\n\n".join(f"## {one['question']}\n\n{one['report']}" for one in values["reports"])


def _reword(values: Json, _: Request) -> Json:
    written = []
    for one in values["sentences"]:
        passage = one["passages"][0]
        content = re.sub(r"^About \S+: ", "", passage["content"])
        said = find_sentences(one["sentence"], content) or [content]
        written.append(
            {"number": one["number"], "text": f"{said[0].rstrip('.')} [{passage['source']}]."}
        )
    return {"sentences": written}


def _judge_claims(values: Json, _: Request) -> Json:
    verdicts = [
        {
            "claim": one["claim"],
            "verdict": "supported" if one["says"].rstrip(".") in one["passage"] else "weak",
        }
        for one in values["claims"]
    ]
    return {"verdicts": verdicts}


def _write_insights(_: Json, request: Request) -> str:
    """Say of each group of results what the first of them says."""
    groups = re.findall(r"Group (\d+)\n- (.*?): (.*)", request.last_text)
    return json.dumps(
        [
            {"group": int(at), "question": f"What of {title}?", "insight": said}
            for at, title, said in groups
        ]
    )


def _answer_search(_: Json, request: Request) -> Json | str:
    """What a search itself asks: which sections to show, or words."""
    shown = read_selection(request)
    return "keywords" if shown is None else {"sections": shown}


_WRITERS: Mapping[str, Callable[[Json, Request], Json | str]] = {
    "clarify": _clarify,
    "plan": _plan,
    "agent": _decide,
    "judge": _judge,
    "task_report": _report_task,
    "next_tasks": _choose_next,
    "contradictions": _find_contradictions,
    "final_report": _report_all,
    "reword": _reword,
    "claims": _judge_claims,
    "clusters": _write_insights,
    "other": _answer_search,
}


@dataclass
class ResearchWorld:
    """One person's runs. What may be read now is `readers`."""

    world: AgentWorld
    model: ResearchModel
    writer: LanguageModel
    readers: Readers | None = ANN
    events: list[ResearchEvent] = field(default_factory=list)
    saved: list[ResearchRecord] = field(default_factory=list)
    stop: CancelToken = field(default_factory=CancelToken)
    interrupt: CancelToken = field(default_factory=CancelToken)
    on_event: Callable[[ResearchEvent], None] = lambda _: None

    def dependencies(self, **others: Any) -> ResearchDependencies:
        index = self.world.index
        values: dict[str, Any] = {
            "writer": self.writer,
            "fast": self.writer,
            "count_tokens": estimated_tokens,
            "resolve_readers": lambda: self.readers,
            "index": index,
            "open_search": lambda complete, numbers, scope: SearchTool(
                index=ScopedIndex(index, scope),
                embedder=HashingEmbedder(),
                understanding=EVERYTHING,
                count_tokens=estimated_tokens,
                complete=complete,
                numbers=numbers,
            ),
            "web": self.world.session(),
            "embedding": EmbedderWithLanguages(HashingEmbedder(), EVERYTHING),
            "sentence_embedder": HashingEmbedder(),
            "person_id": NOBODY,
            "search_seconds": 10.0,
        }
        return ResearchDependencies(**{**values, **others})

    def control(self) -> ResearchControl:
        return ResearchControl(
            emit=self._emit, save=self._save, stop=self.stop, interrupt=self.interrupt
        )

    def _emit(self, event: ResearchEvent) -> None:
        self.events.append(event)
        self.on_event(event)

    def _save(self, record: ResearchRecord) -> None:
        assert read_record(write_record(record)) == record
        self.saved.append(record)

    def run(self, question: str = QUESTION, parts: Any = None, **request: Any) -> ResearchRecord:
        asked = ResearchRequest(question=question, **request)
        return self.go_on(ResearchRecord(request=asked), parts)

    def go_on(
        self, record: ResearchRecord, parts: ResearchDependencies | None = None
    ) -> ResearchRecord:
        return continue_research(record, parts or self.dependencies(), self.control())

    def of_kind(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def serve_pages(self, facts: Mapping[str, tuple[str, str]], seed: int = 0) -> None:
        """Serve a page of each fact, which the engine finds in an order that the seed decides."""
        items = []
        for path, (title, said) in facts.items():
            url = self.world.put("news.test", path, page(title, f"<p>{said}</p>"))
            items.append(Item(title, url, f"More about {path.strip('/')}.", "2026-02-03"))
        random.Random(seed).shuffle(items)
        self.world.engine.items = items


def make_chunks(facts: Mapping[str, str], seed: int = 0) -> tuple[Chunk, ...]:
    chunks = [chunk(document, 0, said) for document, said in facts.items()]
    random.Random(seed).shuffle(chunks)
    return tuple(chunks)


@contextmanager
def research_world(
    facts: Mapping[str, str] = FACTS,
    web: Mapping[str, tuple[str, str]] = WEB_FACTS,
    seed: int = 0,
    private: Sequence[str] = (),
    window: int = 32_000,
) -> Iterator[ResearchWorld]:
    """Serve everything for as long as the block lasts.

    Args:
        private: ids of documents that Ann alone may read.
    """
    with agent_world(window=window) as served:
        chunks = make_chunks(facts, seed)
        own = tuple(
            replace(one, access=PRIVATE) if one.document_id in private else one for one in chunks
        )
        served.index = MemoryIndex(own)
        model = ResearchModel()
        served.server.play(model)
        with closing(LanguageModel(replace(served.model.settings, first_backoff=0.01))) as writer:
            world = ResearchWorld(served, model, writer)
            world.serve_pages(web, seed)
            yield world


def list_markers(text: str) -> list[int]:
    """The numbers that a text cites, in its order."""
    return [n for piece in split_markers(text) if isinstance(piece, Marker) for n in piece.numbers]


def check_run(world: ResearchWorld, record: ResearchRecord) -> FinalReport:
    """Hold a run that ended well to what holds of each: the order of its events, its numbering, its counts."""
    report = record.report
    assert report is not None
    events = world.events
    assert isinstance(events[0], PlanMade)
    assert events[-1] == ResearchDone(report)
    for task in record.tasks:
        check_task(world, task.number)
    checked = next(at for at, one in enumerate(events) if isinstance(one, ReportChecked))
    pieces = events[checked + 1 : -1]
    assert "".join(one.text for one in pieces if isinstance(one, ReportPiece)) == report.markdown
    assert all(isinstance(one, ReportPiece) for one in pieces)
    check_numbering(report)
    check_counts(report)
    assert world.saved[-1] == record
    return report


def check_task(world: ResearchWorld, number: int) -> None:
    """A task begins, acts, tells what its report cites, and ends."""
    events = [one for one in world.events if number_of(one) == number]
    kinds = [type(one) for one in events]
    assert (kinds[0], kinds[-1]) == (TaskStarted, TaskDone)
    assert kinds.count(TaskStarted) == kinds.count(TaskDone) == 1
    started = [one for one in events if isinstance(one, ActionStarted)]
    done = [one for one in events if isinstance(one, ActionDone)]
    assert [one.step for one in started] == [one.step for one in done]
    assert [one.step for one in started] == list(range(1, len(started) + 1))
    last = events[-1]
    assert isinstance(last, TaskDone)
    cited = [one for one in events if isinstance(one, IntermediateReportCitedDocs)]
    if last.report.has_text:
        assert [one.number for one in cited[0].sources] == sorted({*list_markers(last.report.text)})
        assert not any(one.texts for one in cited[0].sources)
    else:
        assert cited == []
        assert last.report.failure


def number_of(event: ResearchEvent) -> int | None:
    match event:
        case TaskStarted(task):
            return task.number
        case TaskDone(report):
            return report.task.number
        case ActionStarted() | ActionDone() | SourceFound() | IntermediateReportCitedDocs():
            return event.task
        case _:
            return None


def check_numbering(report: FinalReport) -> None:
    """Sources are numbered from 1 in the order of their first citation, and each is cited."""
    said = [one.number for each in report.contradictions for one in each.statements]
    first = list(dict.fromkeys([*list_markers(report.text), *said]))
    assert first == list(range(1, len(first) + 1))
    assert [one.number for one in report.sources] == first
    ids = [one.document_id for one in report.sources]
    assert len(ids) == len({*ids})


def check_counts(report: FinalReport) -> None:
    counts = report.counts
    assert counts.citations == len(report.citations)
    verdicts = (
        counts.supported + counts.weak + counts.unsupported + counts.contradicted + counts.unchecked
    )
    assert verdicts == counts.citations
    assert str(counts.citations) in report.markdown
