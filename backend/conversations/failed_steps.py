"""What an answer was written without, as a sentence for whoever reads it."""

from collections.abc import Mapping
from types import MappingProxyType

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "semantic_query_rephrase": "the model's rephrasing",
        "keyword_query_expansion": "the model's key words",
        "embedding": "the search by meaning",
        "late_retrieval": "the search for the model's variants",
        "selection": "the model's choice of passages",
        "expansion": "the text around what was found",
        "intent": "the plan of the search",
        "earlier_findings": "earlier findings",
        "knowledge": "company knowledge",
        "web": "the web",
        "memory": "what you asked Quarry to remember",
        "language_model": "the chosen language model",
        "assistant_model": "the language model of this assistant",
        "follow_up": "what was said before",
        "history": "the earliest messages of this conversation",
    }
)
"""By the step that was lost; `backend/web/static/turn.js` says the same while an answer is written."""


def describe_failed_step(step: str, reason: str) -> str:
    """Return as a sentence that a step was lost, and why."""
    return f"Done without {NAMES.get(step, step)}: {reason}"
