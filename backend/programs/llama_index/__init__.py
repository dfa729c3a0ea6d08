"""A retriever for LlamaIndex (the extra `llama-index`), over a home on this machine."""

from importlib.util import find_spec

if find_spec("llama_index") is None or find_spec("llama_index.core") is None:
    raise ModuleNotFoundError(
        "The retriever for LlamaIndex needs the extra `llama-index`: pip install 'quarry-search[llama-index]'",
        name="llama_index",
    )

from backend.programs.llama_index.retriever import QuarryRetriever, open_retriever

__all__ = ["QuarryRetriever", "open_retriever"]
