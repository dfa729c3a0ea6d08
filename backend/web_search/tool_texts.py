"""What a model is told of the tool that searches the web: its description and parameters, and examples of its use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]
"""Of the pages of the asker."""

WEB_SEARCH = "web_search"


@dataclass(frozen=True, slots=True)
class ToolTexts:
    description: str
    query: str
    """The description of its parameter."""
    examples: tuple[str, ...]
    """Of queries."""


WEB_SEARCH_TEXTS: Mapping[Language, ToolTexts] = {
    "en": ToolTexts(
        "Search the internet for current information. Use this tool when you need the latest events, live data, today's news, "
        "or have to verify information.",
        "The keywords to search for, which should be specific, clear and to the point.",
        ("statutory minimum wage Germany 2026", "OpenSearch latest stable release notes"),
    ),
    "zh": ToolTexts(
        "搜索互联网获取实时信息。当需要了解最新事件、实时数据、当前新闻或验证信息时使用此工具。",
        "搜索查询关键词,应该具体、清晰、针对性强",
        ("2026年 上海 最低工资标准", "人民币 美元 汇率 今日"),
    ),
}

USING_WEB_SEARCH = """\
You find what is new, or what the documents do not hold, with the tool web_search. Give it keywords, not a sentence, and put
the year, place or product into them. Ask again in other words when what was found does not answer the question.

Example. "Is our wage above the minimum in Germany?" needs {"query": "statutory minimum wage Germany 2026"}.
Example. "Which release of OpenSearch should we take?" needs {"query": "OpenSearch latest stable release notes"}.
Example of reading results. Of "[3] Minimum wage" with the summary "From January the minimum wage is 13.90 euros an hour…" you
write: The minimum wage has been 13.90 euros an hour since January [3]. What a summary breaks off is not known: open the page
when you need the rest."""
"""A part of the system prompt in Agent mode."""


def web_search_parameters(language: Language) -> dict[str, object]:
    """Return the JSON schema of the arguments."""
    texts = WEB_SEARCH_TEXTS[language]
    return {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": texts.query,
                "examples": list(texts.examples),
            }
        },
        "required": ["query"],
        "additionalProperties": False,
        "examples": [{"query": example} for example in texts.examples],
    }
