"""Find where sources contradict each other."""

from collections.abc import Collection, Iterable, Iterator
from datetime import date

from backend.research import prompts
from backend.research.model_calls import ModelCalls, ask_for_json
from backend.research.record.final_report import Contradiction, SourceStatement
from backend.research.report.merged_reports import MergedReports
from backend.search.llm_protocol import CompletionError
from indexing.runtime.deadline import Deadline

MAX_CONTRADICTIONS = 10
MAX_STATEMENTS = 4
LONGEST_TEXT = 400


def find_contradictions(
    merged: MergedReports, calls: ModelCalls, today: date | None, deadline: Deadline
) -> tuple[Contradiction, ...]:
    """Ask the fast model; none where it fails, or where there are no two sources."""
    if len(merged.sources) < 2:
        return ()
    values = merged.describe(calls.room, calls.dependencies.count_tokens)
    messages = prompts.quote(prompts.CONTRADICTIONS, values, today)
    try:
        found = ask_for_json(calls.judge, messages, _read, deadline)
    except CompletionError:
        return ()
    return tuple(_keep_valid(found, merged.sources))[:MAX_CONTRADICTIONS]


def _read(value: object) -> list[Contradiction] | None:
    match value:
        case {"contradictions": [*entries]}:
            return [one for entry in entries if (one := _read_entry(entry))]
        case _:
            return None


def _read_entry(entry: object) -> Contradiction | None:
    match entry:
        case {"about": str(about), "statements": [*statements]}:
            said = tuple(one for each in statements if (one := _read_statement(each)))
            return Contradiction(_to_line(about), said)
        case _:
            return None


def _read_statement(value: object) -> SourceStatement | None:
    match value:
        case {"source": bool()}:
            return None
        case {"source": int(number), "says": str(says)} if says.strip():
            return SourceStatement(number, _to_line(says))
        case _:
            return None


def _keep_valid(
    found: Iterable[Contradiction], numbers: Collection[int]
) -> Iterator[Contradiction]:
    """Yield those between two sources at least; one source says one thing of a point."""
    for one in found:
        known = {each.number: each for each in one.statements if each.number in numbers}
        if len(known) > 1:
            yield Contradiction(one.about, tuple(known.values())[:MAX_STATEMENTS])


def _to_line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_TEXT]
