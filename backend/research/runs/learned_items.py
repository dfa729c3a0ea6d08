"""What a run has learned is kept where it belongs: with its conversation, its project, or its owner alone."""

import logging

from backend.research.knowledge.kept_knowledge import LearnedItem
from backend.research.knowledge.service import add_items
from backend.research.record.research_record import ResearchRecord
from backend.store.database import Database
from backend.store.research.knowledge_records import OWN, KnowledgePlace
from backend.store.research.research_runs import ResearchRun
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError

LOG = logging.getLogger("quarry.research")


def keep_learned(database: Database, run: ResearchRun, record: ResearchRecord) -> None:
    """Keep what the tasks of a run have learned. Each item rests on all documents that its agent had read.

    The report is there without it: where it cannot be kept, the log says so.
    """
    history = frozenset(run.history_document_ids)
    learned = [
        LearnedItem(item=item, document_ids=history.union(report.documents))
        for report in record.reports
        for item in report.knowledge
    ]
    try:
        add_items(database, run.owner, _find_place(run), learned, run.id)
    except (ActionRequiredError, TemporarilyUnavailableError) as error:
        LOG.warning("What the research %s has learned is not kept: %s", run.id, error)


def _find_place(run: ResearchRun) -> KnowledgePlace:
    if run.project_id is not None:
        return KnowledgePlace("project", run.project_id)
    if run.conversation_id is not None:
        return KnowledgePlace("conversation", run.conversation_id)
    return OWN
