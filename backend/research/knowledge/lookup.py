"""Find what research found out before that speaks to a question of a turn."""

from collections.abc import Sequence

from backend.chat.earlier_findings import EarlierFinding
from backend.chat.text_nearness import SentenceModel
from backend.chat.turn import ChatTurn
from backend.research.knowledge.gate import KnowledgeGate
from backend.research.knowledge.kept_knowledge import KeptItem
from backend.research.knowledge.ranking import rank_items, select_relevant
from backend.store.research import knowledge
from backend.store.research.knowledge_records import OWN, KnowledgePlace
from backend.store.research.research_runs import ResearchRun
from indexing.index.protocols import Filters
from indexing.runtime.deadline import Deadline

MOST_USED = 5
MOST_READ = 1_000
"""Items of all places of a turn: the newest ones."""


def list_places(turn: ChatTurn) -> list[KnowledgePlace]:
    """Return where the knowledge of a turn is kept: its asker's own, its conversation and its project."""
    return make_places(turn.conversation_id, turn.assistant.holders.project_id)


def make_places(conversation_id: str | None, project_id: str | None) -> list[KnowledgePlace]:
    """Return the places of somebody's own knowledge, and of that of a conversation and a project."""
    places = [OWN]
    if conversation_id is not None:
        places.append(KnowledgePlace("conversation", conversation_id))
    if project_id is not None:
        places.append(KnowledgePlace("project", project_id))
    return places


def list_run_places(run: ResearchRun) -> list[KnowledgePlace]:
    """Return whose findings a run begins with: in a project those of the project alone, because all of its members see the run."""
    if run.project_id is not None:
        return [KnowledgePlace("project", run.project_id)]
    return make_places(run.conversation_id, None)


def is_narrowed(turn: ChatTurn) -> bool:
    """Return whether a turn searches a part of the documents only: earlier findings rest on others as well."""
    return turn.filters != Filters() or turn.assistant.scope != Filters()


def find_earlier(
    gate: KnowledgeGate,
    places: Sequence[KnowledgePlace],
    question: str,
    model: SentenceModel,
    deadline: Deadline,
) -> list[EarlierFinding]:
    """Return the items that the asker may read, that are not stale, and that speak to a question, the most relevant first."""
    stored = knowledge.list_page(gate.database, gate.asker, places, None, MOST_READ)
    fresh = [one for one in gate.admit(stored) if one.stale is None]
    relevant = select_relevant(rank_items(fresh, question, model, deadline))
    return [_to_finding(one) for one in relevant[:MOST_USED]]


def _to_finding(kept: KeptItem) -> EarlierFinding:
    return EarlierFinding(
        id=kept.id,
        question=kept.item.question,
        answer=kept.item.answer,
        made_at=kept.made_at,
        is_of_web=kept.is_of_web,
        document_ids=kept.document_ids,
    )
