"""Tools and a retriever for LangChain (the extra `langchain`), over a home on this machine."""

from importlib.util import find_spec

if find_spec("langchain_core") is None:
    raise ModuleNotFoundError(
        "LangChain's tools need the extra `langchain`: pip install 'quarry-search[langchain]'",
        name="langchain_core",
    )

from backend.programs.langchain.internal_search import InternalSearchTool
from backend.programs.langchain.opened_home import OpenedHome, open_home
from backend.programs.langchain.retriever import QuarryRetriever
from backend.programs.langchain.tool_session import ToolSession
from backend.programs.langchain.web_search import WebSearchTool

__all__ = [
    "InternalSearchTool",
    "OpenedHome",
    "QuarryRetriever",
    "ToolSession",
    "WebSearchTool",
    "open_home",
]
