"""What an agent may not let out to the web: how that which was read before it, and by it, is kept apart.

The guards are those of a turn in Agent mode. What the person wrote may be sent; the question of a task counts as written by a
model, which in later rounds has read reports.
"""

from backend.chat.agent.read_texts import ReadTexts
from backend.chat.context_files import ContextFile
from backend.chat.turn import ChatTurn
from backend.research.record.plan import ResearchTask
from backend.research.record.research_record import ResearchRecord
from backend.search.llm_protocol import ChatMessage
from connectors.access import Readers
from indexing.chunking.chunk import split_sentences
from indexing.runtime.deadline import Deadline


def make_read_texts(
    record: ResearchRecord, task: ResearchTask, readers: Readers, person_id: int
) -> ReadTexts:
    """Return the texts that are known to an agent before it begins: its task may say something of each of them."""
    said = [ChatMessage("user", text) for text in record.person_said[1:]]
    answered = [one.to_chat_message() for one in record.request.history if one.role == "assistant"]
    turn = ChatTurn(
        message=record.request.question,
        readers=readers,
        deadline=Deadline.after(0),
        person_id=person_id,
        history=(*said, *answered),
    )
    texts = ReadTexts(turn, _list_files(record, task))
    texts.add_answers(turn)
    return texts


def _list_files(record: ResearchRecord, task: ResearchTask) -> list[ContextFile]:
    """Return what earlier findings and reports say that the question of a task may rest on."""
    planned = record.plan.private_text if record.plan else ""
    of_plan = [ContextFile(document_id="plan", name="", text=planned)] if planned else []
    if not task.round:
        return of_plan
    read = [one for one in record.reports if one.documents and one.task.round < task.round]
    return of_plan + [
        ContextFile(document_id=f"report/{one.task.number}", name="", text=one.private_text)
        for one in read
    ]


def collect_private_sentences(text: str, texts: ReadTexts) -> str:
    """Return the sentences of a text that say what only private documents say."""
    sentences = (span.of(text) for span in split_sentences(text))
    return "\n".join(one for one in sentences if texts.check_query(one).removed)
