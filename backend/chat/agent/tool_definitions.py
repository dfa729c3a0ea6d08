"""The tools of Agent mode, as they are described to the model."""

from collections.abc import Mapping

from backend.chat import prompts
from backend.chat.agent.tool_calls import INTERNAL_SEARCH_NAME
from backend.chat.llm.messages import ToolSpec
from backend.chat.turn import ChatDependencies
from backend.web_search.tool_texts import (
    OPEN_URL,
    OPEN_URL_TEXTS,
    USING_OPEN_URL,
    USING_WEB_SEARCH,
    WEB_SEARCH,
    WEB_SEARCH_TEXTS,
    Language,
    open_url_parameters,
    web_search_parameters,
)


def _describe_internal_search(description: str, queries: str) -> ToolSpec:
    return ToolSpec(
        name=INTERNAL_SEARCH_NAME,
        description=description,
        parameters={
            "type": "object",
            "properties": {
                "queries": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": queries,
                }
            },
            "required": ["queries"],
            "additionalProperties": False,
        },
        usage=prompts.BY_SEARCHING,
    )


INTERNAL_SEARCH = _describe_internal_search(prompts.SEARCH_DESCRIPTION, prompts.QUERIES_DESCRIPTION)
_INTERNAL_SEARCH: Mapping[Language, ToolSpec] = {
    "en": INTERNAL_SEARCH,
    "zh": _describe_internal_search(
        prompts.SEARCH_DESCRIPTION_IN_CHINESE, prompts.QUERIES_DESCRIPTION_IN_CHINESE
    ),
}


def choose_tools(dependencies: ChatDependencies, language: Language) -> tuple[ToolSpec, ...]:
    """Return the tools of a turn: those whose work something can do, in the language of the asker's pages."""
    internal = (_INTERNAL_SEARCH[language],) if dependencies.search is not None else ()
    of_web = _describe_web_tools(language) if dependencies.web is not None else ()
    return (*internal, *of_web)


def _describe_web_tools(language: Language) -> tuple[ToolSpec, ToolSpec]:
    search = ToolSpec(
        name=WEB_SEARCH,
        description=WEB_SEARCH_TEXTS[language].description,
        parameters=web_search_parameters(language),
        usage=USING_WEB_SEARCH,
    )
    read = ToolSpec(
        name=OPEN_URL,
        description=OPEN_URL_TEXTS[language].description,
        parameters=open_url_parameters(language),
        usage=USING_OPEN_URL,
    )
    return search, read
