"""Document sets for tests: their values, and documents written to an index as a run writes them."""

from backend.store.database import Database
from backend.store.documents import document_sets
from backend.store.documents.document_set_rules import RuleKind, SetRule
from backend.store.documents.document_sets import DocumentSet, SetValues
from backend.store.documents.ledger import StoredLedger
from backend.sync.document_set_updates import DocumentSetUpdater
from connectors.access import EVERYBODY, PUBLIC, Access
from indexing.chunking.chunk import Chunk
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import IndexWriter, Selection
from indexing.ingestion.executor import Executor, Plan
from indexing.ingestion.ledger import Restored
from indexing.ingestion.planner import EmbedStep
from indexing.ingestion.progress import RunCounters
from tests.support.chunks import chunk

EMBEDDER = HashingEmbedder(dimension=16)


def source(name: str) -> SetRule:
    return SetRule(RuleKind.SOURCE, "", name)


def folder(name: str, path: str) -> SetRule:
    return SetRule(RuleKind.FOLDER, path, name)


def tag(value: str, name: str | None = None) -> SetRule:
    return SetRule(RuleKind.TAG, value, name)


def single(document_id: str) -> SetRule:
    return SetRule(RuleKind.DOCUMENT, document_id, document_id.partition(":")[0])


def values(name: str, *rules: SetRule, readers: frozenset[str] = frozenset({PUBLIC})) -> SetValues:
    return SetValues(name=name, description=f"All of {name}", readers=readers, rules=rules)


def define(database: Database, name: str, *rules: SetRule) -> DocumentSet:
    """Add the set, or give it these rules."""
    for each in document_sets.list_sets(database):
        if each.name == name:
            document_sets.change(database, each.id, values(name, *rules))
            return document_sets.find(database, name)
    document_sets.add(database, values(name, *rules))
    return document_sets.find(database, name)


def make_chunk(document_id: str, *tags: str, access: Access = EVERYBODY) -> Chunk:
    found = chunk(document_id, 0, f"text of {document_id}", access=access)
    source_name = document_id.partition(":")[0]
    return Chunk(
        **{name: getattr(found, name) for name in found.__slots__}
        | {"source": source_name, "tags": frozenset(tags)}
    )


def write_documents(
    database: Database, writer: IndexWriter, chunks: list[Chunk], generation: int = 1
) -> None:
    """Write documents of one chunk each, as a run does."""
    steps = [
        EmbedStep(
            one.title,
            one.source,
            (one,),
            Restored(
                document_id=one.document_id,
                content_hash="h",
                generation=generation,
                chunks=1,
            ),
        )
        for one in chunks
    ]
    plan = Plan(tuple(steps))
    Executor(EMBEDDER, writer, StoredLedger(database)).run(plan, RunCounters())


def apply_all(database: Database, writer: IndexWriter) -> int:
    """Tell documents their sets until none is left to be told; return how many jobs that took."""
    worker, jobs = DocumentSetUpdater(database, writer, lambda: None), 0
    while worker.apply_next():
        jobs += 1
    return jobs


def members(writer: IndexWriter, found: DocumentSet) -> set[str]:
    """Return the documents that the index has in the set."""
    return {each.id for each in writer.select(Selection(in_set=found.label))}
