"""The gate of kept knowledge: an item is there for whoever may read now all that it rests on, and for nobody else.

One that is not readable leaves no trace: it is not counted, found or said to be stale. Whether a document may be read is
asked of the index, at once for all items. An item whose document was deleted is read by nobody; its owner learns that there
is one, so that they can delete it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from backend.chat.readable_ids import is_memory_reference
from backend.conversations.answer_gate import AnswerGate
from backend.research.knowledge.encoding import make_gone, make_kept
from backend.research.knowledge.kept_knowledge import WEB_AGE, KeptItem, Staleness
from backend.research.knowledge.sources import ReadableTexts, check_sources
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.research import knowledge
from backend.store.research.knowledge_records import StoredItem


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeGate:
    database: Database
    asker: ConversationOwner
    answers: AnswerGate
    """Says what of the sources the asker may read."""
    web_age: timedelta = WEB_AGE
    """After which what rests on pages of the web is stale."""

    def admit(self, stored: Sequence[StoredItem]) -> list[KeptItem]:
        """Return those of the items that the asker may read, in their order, each as fresh or as stale as it is now."""
        named = frozenset[str]().union(*(one.document_ids for one in stored))
        readable = self.answers.find_readable(named)
        hashes = knowledge.read_content_hashes(self.database, named)
        may_read = (one for one in stored if one.document_ids <= readable)
        oldest = datetime.now(UTC) - self.web_age
        shown = {one.id: _keep(one, oldest) for one in self._check(may_read, hashes)}
        shown |= {
            one.id: make_gone(one)
            for one in stored
            if one.owner == self.asker and _are_gone(one.document_ids - readable, hashes)
        }
        return [shown[one.id] for one in stored if one.id in shown]

    def find_hashes(self, document_ids: Collection[str]) -> dict[str, str]:
        """Return the hashes of the contents of those of the documents that the asker may read."""
        readable = self.answers.find_readable(document_ids)
        return knowledge.read_content_hashes(self.database, readable)

    def open_texts(self) -> ReadableTexts:
        return ReadableTexts(self.database, self.answers.readers)

    def _check(self, items: Iterable[StoredItem], hashes: Mapping[str, str]) -> list[StoredItem]:
        """Return the items with what became of their sources, which is noted, also where the time ends in between.

        Raises:
            DeadlineExceededError
        """
        texts, checked, news = self.open_texts(), list[StoredItem](), list[StoredItem]()
        try:
            for one in items:
                found = check_sources(one, hashes, texts, self.answers.deadline)
                checked.append(found)
                if found is not one:
                    news.append(found)
        finally:
            if news:
                knowledge.record_checks(self.database, news)
        return checked


def _keep(stored: StoredItem, oldest: datetime) -> KeptItem:
    """Judge whether a finding holds; `oldest` is as of when what rests on pages of the web has to hold at least."""
    if stored.unverified:
        return make_kept(stored, Staleness.UNVERIFIED)
    if not all(one.quotes_stand for one in stored.sources):
        return make_kept(stored, Staleness.SOURCE_CHANGED)
    kept = make_kept(stored, None)
    is_too_old = kept.is_of_web and kept.holds_as_of < oldest
    return replace(kept, stale=Staleness.TOO_OLD) if is_too_old else kept


def _are_gone(missing: frozenset[str], hashes: Mapping[str, str]) -> bool:
    """Return whether what cannot be read is missing for everybody.

    A document that exists, or a memory, may be somebody else's.
    """
    return bool(missing) and not any(one in hashes or is_memory_reference(one) for one in missing)
