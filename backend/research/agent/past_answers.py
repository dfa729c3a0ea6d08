"""What the conversation before established, as far as the person may read its sources now."""

from collections.abc import Iterable

from backend.chat.readable_ids import is_memory_reference
from backend.research.dependencies import ResearchDependencies
from backend.research.knowledge.builders import learn_from_history
from backend.research.knowledge_items import KnowledgeItem
from backend.research.readable_documents import RightsUnknownError, list_withdrawn
from backend.research.record.request import PastMessage


def find_past_answers(
    history: Iterable[PastMessage], dependencies: ResearchDependencies
) -> list[KnowledgeItem]:
    """Return an item of each question that was answered; none of an answer that rests on what may not be read any more.

    Where that cannot be looked up, only what rests on nothing is known.
    """
    history = list(history)
    withdrawn = _list_withdrawn(history, dependencies)
    return learn_from_history(
        [one for one in history if withdrawn.isdisjoint(_list_documents(one))]
    )


def _list_withdrawn(
    history: Iterable[PastMessage], dependencies: ResearchDependencies
) -> frozenset[str]:
    named = frozenset[str]().union(*map(_list_documents, history))
    try:
        return list_withdrawn(named, dependencies)
    except RightsUnknownError:
        return named


def _list_documents(message: PastMessage) -> frozenset[str]:
    """List the documents that an answer rests on, and no memories.

    A memory of the person is nobody else's, and was looked up when the run was taken up.
    """
    return frozenset(one for one in message.rests_on if not is_memory_reference(one))
