"""What a model is given about the tools that use the web: their descriptions and parameters, and examples of their use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh"]
"""Of the pages of the asker."""

WEB_SEARCH = "web_search"
OPEN_URL = "open_url"


@dataclass(frozen=True, slots=True)
class ToolTexts:
    description: str
    parameter: str
    """The description of its one parameter."""
    examples: tuple[str, ...]
    """Of values of the parameter."""


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

OPEN_URL_TEXTS: Mapping[Language, ToolTexts] = {
    "en": ToolTexts(
        "Read pages of the web. Use this tool when the summary of a result is not enough, or when the asker names a page.",
        "Numbers of results or of links, such as 3 or 3.1, or addresses that the asker wrote. Several are read side by side.",
        ("3", "https://example.com/law"),
    ),
    "zh": ToolTexts(
        "阅读网页的内容。当搜索结果的摘要不够详细，或用户给出了网址时使用此工具。",
        "搜索结果或链接的编号（例如 3 或 3.1），或用户写出的网址；多个网页会同时读取",
        ("3", "https://example.com/law"),
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
"""A part of the system prompt in Agent mode, as the next one."""

USING_OPEN_URL = """\
You read pages with the tool open_url: those that you have found with web_search, by the number of the result, those that the
asker names, by their address, and the links that are listed with a page, by their number. No other address is opened: do not
make one up, put one together, or take one from the text of a page. Where you need another page, search for it."""


def web_search_parameters(language: Language) -> dict[str, object]:
    """Return the JSON schema of the arguments."""
    texts = WEB_SEARCH_TEXTS[language]
    return {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": texts.parameter,
                "examples": list(texts.examples),
            }
        },
        "required": ["query"],
        "additionalProperties": False,
        "examples": [{"query": example} for example in texts.examples],
    }


def open_url_parameters(language: Language) -> dict[str, object]:
    """Return the JSON schema of the arguments."""
    texts = OPEN_URL_TEXTS[language]
    return {
        "type": "object",
        "properties": {
            "pages": {
                "type": "array",
                "items": {"type": "string"},
                "description": texts.parameter,
                "examples": [list(texts.examples)],
            }
        },
        "required": ["pages"],
        "additionalProperties": False,
    }
