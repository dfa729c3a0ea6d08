"""Judge an answer before it counts: by another model than the one that wrote it, where there is one."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from backend.research import prompts
from backend.research.model_calls import ask_for_json
from backend.research.record.sources import NumberedSource
from backend.search.llm_protocol import Complete, CompletionError
from indexing.runtime.deadline import Deadline

NO_SOURCE = "It names no source by its number."
NOT_JUDGED = "Whether the answer is definite, fresh and complete could not be judged."
JUDGING_SECONDS = 45.0
LONGEST_REASON = 500


@dataclass(frozen=True, slots=True)
class Judgement:
    fault: str = ""
    """Why the answer does not count; empty where it does."""
    note: str = ""
    """What could not be judged."""


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    complete: Complete
    today: date | None

    def judge(
        self, question: str, answer: str, cited: Iterable[NumberedSource], deadline: Deadline
    ) -> Judgement:
        """Judge an answer by its question and the dates of its sources; one that could not be judged counts, with a note."""
        sources = [_describe(one) for one in cited]
        if not sources:
            return Judgement(NO_SOURCE)
        values = {"question": question, "answer": answer, "sources": sources}
        messages = prompts.quote(prompts.JUDGE, values, self.today)
        try:
            limit = deadline.limited_to(JUDGING_SECONDS)
            return ask_for_json(self.complete, messages, read_judgement, limit)
        except CompletionError:
            return Judgement(note=NOT_JUDGED)


def read_judgement(value: object) -> Judgement | None:
    match value:
        case {
            "definite": bool(definite),
            "fresh": bool(fresh),
            "complete": bool(complete),
            **others,
        }:
            reason = others.get("reason")
            failed = {"definite": definite, "fresh": fresh, "complete": complete}
            return _conclude([name for name, holds in failed.items() if not holds], reason)
        case _:
            return None


def _conclude(failed: list[str], reason: object) -> Judgement:
    if not failed:
        return Judgement()
    said = " ".join(reason.split())[:LONGEST_REASON] if isinstance(reason, str) else ""
    return Judgement(f"It is not {' and not '.join(failed)}. {said}".strip())


def _describe(source: NumberedSource) -> dict[str, object]:
    dated = {"date": source.date.date().isoformat()} if source.date else {}
    return {"source": source.number, "title": source.title, **dated}
