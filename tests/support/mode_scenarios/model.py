"""A scripted model that follows the steps of a scenario, and answers from what it is sent."""

import json
import re
from dataclasses import dataclass

from tests.support.chat_turns import GENERAL, NOT_SAID, find_sentence, read_selection, shares_word
from tests.support.scripted_model import Call, Json, Reply, Request, Say, ToolUse

_WEB_RESULT = re.compile(
    r"^\[(?P<number>\d+)\] (?P<title>.*)\nAddress: .*\n(?:Published: .*\n)?Summary: (?P<content>.*)$",
    re.MULTILINE,
)
_PAGES = re.compile(r'^\{"pages": .*\}$', re.MULTILINE)
OWN_LIST = "\n\n## References\n\n[1] A list of the model\n"


@dataclass(frozen=True)
class ModelOfScenario:
    steps: tuple[tuple[ToolUse, ...], ...]
    """The tools that it calls, by step."""
    adds: str = ""
    """What it writes behind its sentences."""

    def __call__(self, request: Request) -> Reply:
        if not request.answers:
            return Say(_write_selection(request))
        uses = self._choose_tools(request)
        return Call(uses) if uses else Say(_write_answer(request, self.adds))

    def _choose_tools(self, request: Request) -> tuple[ToolUse, ...]:
        """The step that comes next, of the tools that the request offers."""
        done = sum(bool(one.get("tool_calls")) for one in request.messages)
        return self.steps[done] if request.tool_names and done < len(self.steps) else ()


def _write_selection(request: Request) -> str:
    try:
        shown = read_selection(request)
    except ValueError:
        return "keywords"
    return "keywords" if shown is None else json.dumps({"sections": shown})


def _write_answer(request: Request, adds: str) -> str:
    """Cite each source that has a word of the question, and append a list that nobody asked for."""
    question = request.questions[-1]
    sources = {one["number"]: one for one in [*request.sources, *_read_tool_results(request)]}
    said = [
        f"{find_sentence(one['content'])} [{number}]."
        for number, one in sources.items()
        if shares_word(question, f"{one.get('title', '')} {one['content']}")
    ]
    if said:
        return " ".join(said) + adds + OWN_LIST
    rules = f"{request.messages[0]['content']} {request.last_text}"
    is_knowledge_alone = "Never fill the gap" in rules and "references" in rules
    return (NOT_SAID if is_knowledge_alone else GENERAL) + adds


def _read_tool_results(request: Request) -> list[Json]:
    """Results of the web and pages that were read, as `number`, `title` and `content`."""
    said = [str(one["content"]) for one in request.messages if one["role"] == "tool"]
    found = [one.groupdict() for text in said for one in _WEB_RESULT.finditer(text)]
    pages = [one for text in said for line in _PAGES.findall(text) for one in _read_pages(line)]
    return [{**one, "number": int(one["number"])} for one in [*found, *pages]]


def _read_pages(line: str) -> list[Json]:
    return [
        {"number": one["page"], "title": one.get("title", ""), "content": one["content"]}
        for one in json.loads(line)["pages"]
        if "content" in one
    ]
