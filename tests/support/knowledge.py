"""Knowledge that is kept in tests."""

from datetime import datetime
from itertools import count
from pathlib import Path

from sqlalchemy import delete

from backend.chat.readable_ids import make_own_memories
from backend.conversations.answer_gate import AnswerGate
from backend.research.knowledge.gate import KnowledgeGate
from backend.research.knowledge.kept_knowledge import LearnedItem, PageVersion, Staleness
from backend.research.knowledge.service import KnowledgeService, add_items
from backend.research.knowledge_items import KnowledgeItem, KnowledgeType, Reference
from backend.store.database import Database, open_database
from backend.store.documents.ledger import StoredLedger
from backend.store.owner import ConversationOwner
from backend.store.research.knowledge_records import OWN, KnowledgePlace
from backend.store.schema.knowledge_tables import knowledge_items, knowledge_sources
from backend.store.sync import sources
from connectors.access import EVERYBODY, Access, Readers
from connectors.document import Span
from indexing.chunking.chunker import chunk_document, compute_content_hash
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import Amend, Delete, Replace
from indexing.ingestion.ledger import AccessAmended, Removed, Stored
from indexing.local import open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.support.conversations import OWNER
from tests.support.store import document


def forget_findings(database: Database) -> None:
    """Remove what research has kept, with which later research of the same home begins."""
    with database.writing() as connection:
        connection.execute(delete(knowledge_sources))
        connection.execute(delete(knowledge_items))


def make_reference(
    quote: str, answer: str, document_id: str | None = "desk:a", **changes: object
) -> Reference:
    """A quote that stands in the answer as well, at the beginning of the document."""
    start = answer.find(quote)
    values: dict[str, object] = {
        "exact_quote": quote,
        "url": "https://desk.test/a",
        "document_id": document_id,
        "title": "About desk:a",
        "relevance_score": 0.9,
        "answer_chunk": quote if start >= 0 else "",
        "answer_chunk_position": Span(
            max(start, 0), max(start, 0) + (len(quote) if start >= 0 else 0)
        ),
        "span": Span(0, len(quote)),
        **changes,
    }
    return Reference(**values)  # type: ignore[arg-type]


def make_item(
    question: str = "How long is leave?",
    answer: str = "Leave is 25 days.",
    *references: Reference,
    kind: KnowledgeType = KnowledgeType.QA,
    updated: datetime | None = None,
) -> KnowledgeItem:
    return KnowledgeItem(
        question=question, answer=answer, type=kind, references=references, updated=updated
    )


def learn(
    quote: str, *document_ids: str, question: str = "How long is leave?", url: str = ""
) -> LearnedItem:
    """An item that says what it quotes of each document, or rests on a page of the web."""
    item = make_item(question, quote, *(make_reference(quote, quote, one) for one in document_ids))
    return LearnedItem(item=item, pages=(PageVersion(url, "0" * 40),) if url else ())


class KnowledgeWorld:
    """A database and an index that agree: documents of the source `desk`, and people who may read some of them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.database = open_database(url)
        self._embedder = HashingEmbedder()
        self._writer = open_writer(folder, self._embedder.identity)
        self.index = open_index(folder, self._embedder.identity)
        self._ledger = StoredLedger(self.database)
        self._generations = count(1)
        sources.add(self.database, "desk", "folder", {"path": "/srv/desk"})

    def close(self) -> None:
        self.index.close()
        self.database.close()

    def put(self, name: str, text: str, *readers: str) -> str:
        """Write a document, or another version of it; return its id."""
        access = Access.to(readers) if readers else EVERYBODY
        generation = next(self._generations)
        one = document(f"desk:{name}", text, str(generation), access)
        digest, chunks = compute_content_hash(one), tuple(chunk_document(one, self._embedder))
        stored = Stored(
            document=one, content_hash=digest, generation=generation, chunks=len(chunks)
        )
        self._ledger.save([stored])
        vectors = self._embedder.embed_passages([chunk.embedded_text for chunk in chunks])
        self._writer.write(
            [
                Replace(
                    document_id=one.id,
                    generation=generation,
                    content_hash=digest,
                    chunks=chunks,
                    vectors=vectors,
                )
            ]
        )
        return one.id

    def admit(self, name: str, *readers: str) -> None:
        """Let nobody but these read a document from now on."""
        access = Access.to(readers)
        self._ledger.save([AccessAmended(f"desk:{name}", access)])
        self._writer.write([Amend(document_id=f"desk:{name}", access=access)])

    def drop(self, name: str) -> None:
        self._writer.write([Delete(f"desk:{name}")])
        self._ledger.save([Removed(f"desk:{name}")])

    def open_gate(self, owner: ConversationOwner, *tokens: str) -> KnowledgeGate:
        """The gate of somebody who holds these tokens besides the public."""
        answers = AnswerGate(
            index=self.index,
            readers=Readers.of(*tokens),
            own_memories=make_own_memories(self.database, owner),
            deadline=Deadline.after(600),
        )
        return KnowledgeGate(database=self.database, asker=owner, answers=answers)

    def serve(self, owner: ConversationOwner, *tokens: str) -> KnowledgeService:
        return KnowledgeService(
            database=self.database, owner=owner, gate=self.open_gate(owner, *tokens)
        )

    def keep(
        self,
        *learned: LearnedItem,
        owner: ConversationOwner = OWNER,
        place: KnowledgePlace = OWN,
    ) -> list[str]:
        return add_items(self.database, owner, place, learned)


def list_texts(service: KnowledgeService) -> list[str]:
    return [one.item.answer for one in service.list_all(None)]


def find_stale(service: KnowledgeService, item_id: str) -> Staleness | None:
    return service.get(item_id).stale
