"""What research has found out, for one asker: list, search, correct, delete, export, import. The API, the page and the terminal call it."""

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from backend.chat.text_nearness import SentenceModel
from backend.research.knowledge.encoding import encode_item, encode_references
from backend.research.knowledge.gate import KnowledgeGate
from backend.research.knowledge.kept_knowledge import (
    ImportedItem,
    ImportReport,
    KeptItem,
    LearnedItem,
)
from backend.research.knowledge.knowledge_import import ItemImporter
from backend.research.knowledge.ranking import rank_items, select_relevant
from backend.research.knowledge.sources import locate_references
from backend.research.knowledge_items import Reference
from backend.store.chat import projects
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.research import knowledge
from backend.store.research.knowledge_records import (
    LONGEST_TEXT,
    MOST_ITEMS,
    Correction,
    ItemPosition,
    ItemSource,
    KnowledgePlace,
    StoredItem,
)
from connectors.document import Span
from connectors.errors import ConflictError, InvalidInputError, NotAllowedError
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import is_storable, is_visible

MOST_SEARCHED = 2_000
"""Items of which a search chooses: the newest ones that the asker may read."""
LEAST_FOUND = 0.25
"""The relevance from which on a search shows an item: whoever searches sees by themselves what fits."""
_BATCH = 200
_NO_TEXT = "The text contains an invalid character."


class KnowledgeRefusedError(NotAllowedError):
    """The asker sees an item, but may not do this with it."""


@dataclass(frozen=True, slots=True)
class KnowledgePage:
    items: Sequence[KeptItem]
    next: ItemPosition | None


def add_items(
    database: Database,
    owner: ConversationOwner,
    place: KnowledgePlace,
    learned: Sequence[LearnedItem],
    run_id: str | None = None,
) -> list[str]:
    """Keep what a run of research has learned, and return the ids of the items.

    Each rests on the documents that its references quote, and on those that it names besides: who may not read one of them
    does not see the item. What a run has learned is kept once: a second time, nothing is added.

    Raises:
        NotFoundError: the owner has no such conversation, or is in no such project.
        ConflictError: more would be kept in this place than allowed.
    """
    now = datetime.now(UTC)
    named = {one: _list_documents(one) for one in learned}
    hashes = knowledge.read_content_hashes(database, frozenset[str]().union(*named.values()))
    added = [
        encode_item(
            one.item,
            one.pages,
            [_start_source(document, hashes.get(document)) for document in sorted(named[one])],
            now + timedelta(microseconds=number),  # They are listed in their order.
        )
        for number, one in enumerate(learned)
    ]
    if run_id is None:
        return knowledge.add(database, owner, place, added, None)
    return knowledge.add_of_run(database, owner, place, added, run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeService:
    database: Database
    owner: ConversationOwner
    """The person who asks."""
    gate: KnowledgeGate
    """By what they may read now."""

    def list_page(
        self,
        places: Collection[KnowledgePlace] | None,
        before: ItemPosition | None,
        limit: int,
    ) -> KnowledgePage:
        """Return the items behind a position that the asker may read, the newest first: of these places, or of all."""
        found = list[KeptItem]()
        for one in self._read(places, before):
            found.append(one)
            if len(found) > limit:
                break
        page = found[:limit]
        is_last = len(found) <= limit
        return KnowledgePage(page, None if is_last else ItemPosition(page[-1].made_at, page[-1].id))

    def list_all(self, places: Collection[KnowledgePlace] | None) -> list[KeptItem]:
        """Return all that the asker may read, the newest first."""
        return list(self._read(places, None))

    def search(
        self,
        query: str,
        places: Collection[KnowledgePlace] | None,
        model: SentenceModel,
        limit: int,
    ) -> list[KeptItem]:
        """Return the items that say most of a query, the nearest first, stale ones too."""
        readable = self._read_newest(places)
        ranked = rank_items(readable, query, model, self.gate.answers.deadline)
        return select_relevant(ranked, LEAST_FOUND)[:limit]

    def get(self, item_id: str) -> KeptItem:
        """Return a finding. Raises NotFoundError: there is none, or the asker may not read what it rests on."""
        return self._open(item_id)[1]

    def correct(self, item_id: str, question: str | None, answer: str | None) -> KeptItem:
        """Change what an item says, where it is not None, as a person does who knows better.

        References whose part of the answer no longer stands in it are dropped, and so are those whose documents no longer
        say what they quote. What is left counts from now on; the item goes on to rest on all of its documents.

        Raises:
            NotFoundError, InvalidInputError
            KnowledgeRefusedError: it is somebody else's.
            ConflictError: one of its documents was deleted.
        """
        stored, kept = self._open(item_id)
        self._check_may_change(stored)
        if kept.is_gone:
            raise ConflictError(
                "A document that this rests on was deleted, so that it can only be deleted too."
            )
        said = kept.item.answer if answer is None else clean_text(answer)
        asked = kept.item.question if question is None else clean_text(question)
        correction = self._make_correction(kept, asked, said)
        knowledge.correct(self.database, stored, correction)
        return self.get(item_id)

    def delete(self, item_id: str) -> None:
        """Delete a finding. Raises NotFoundError; KnowledgeRefusedError: it is somebody else's."""
        stored, _ = self._open(item_id)
        self._check_may_change(stored)
        knowledge.remove(self.database, item_id)

    def export_page(
        self, places: Collection[KnowledgePlace] | None, before: ItemPosition | None
    ) -> KnowledgePage:
        """Return what the asker may read behind a position and that says anything, the newest first: as much as one file holds."""
        page = self.list_page(places, before, MOST_ITEMS)
        return KnowledgePage([one for one in page.items if not one.is_gone], page.next)

    def import_items(self, place: KnowledgePlace, given: Sequence[ImportedItem]) -> ImportReport:
        """Keep items of a file. A reference to a document stays only where the asker may read it and it says so.

        Raises:
            NotFoundError: there is no such place.
            ConflictError: more would be kept in it than allowed.
            InvalidInputError: a text cannot be kept.
        """
        for one in given:
            clean_text(one.item.question)
            clean_text(one.item.answer)
            if not is_storable(one.item.source_code or ""):
                raise InvalidInputError(_NO_TEXT)
        converted = ItemImporter.open(self.gate, place, given).convert(given)
        added = [one.new for one in converted]
        ids = knowledge.add(self.database, self.owner, place, added, None)
        return ImportReport(
            ids=ids,
            dropped_references=sum(one.dropped_references for one in converted),
            unverified=sum(one.unverified for one in added),
        )

    def may_change(self, item: KeptItem) -> bool:
        """Return whether the asker may correct and delete it: their own, and what others keep in their project."""
        return item.owner == self.owner or self._owns_project(item.place)

    def _read(
        self, places: Collection[KnowledgePlace] | None, before: ItemPosition | None
    ) -> Iterator[KeptItem]:
        while stored := knowledge.list_page(self.database, self.owner, places, before, _BATCH):
            yield from self.gate.admit(stored)
            before = ItemPosition(stored[-1].made_at, stored[-1].id)

    def _read_newest(self, places: Collection[KnowledgePlace] | None) -> list[KeptItem]:
        readable = (one for one in self._read(places, None) if not one.is_gone)
        return [one for one, _ in zip(readable, range(MOST_SEARCHED), strict=False)]

    def _open(self, item_id: str) -> tuple[StoredItem, KeptItem]:
        stored = knowledge.get(self.database, self.owner, item_id)
        admitted = self.gate.admit([stored])
        if not admitted:
            raise knowledge.make_missing_item_error()
        return stored, admitted[0]

    def _check_may_change(self, stored: StoredItem) -> None:
        if stored.owner != self.owner and not self._owns_project(stored.place):
            raise KnowledgeRefusedError(
                "Only the person whose finding this is, or the owner of the project, may do this."
            )

    def _owns_project(self, place: KnowledgePlace) -> bool:
        if place.kind != "project":
            return False
        return projects.get(self.database, self.owner, place.id).owner == self.owner

    def _make_correction(self, kept: KeptItem, question: str, answer: str) -> Correction:
        hashes = self.gate.find_hashes(kept.document_ids)
        texts = self.gate.open_texts()
        relocated = [_find_in_answer(one, answer) for one in kept.item.references]
        borne = [
            _find_in_source(one, texts.find(one.document_id) or (), self.gate.answers.deadline)
            if one.document_id
            else one
            for one in relocated
            if one is not None
        ]
        return Correction(
            question=question,
            answer=answer,
            quotes=encode_references(one for one in borne if one is not None),
            sources=[
                _renew_source(document, hashes.get(document))
                for document in sorted(kept.document_ids)
            ],
        )


def clean_text(text: str) -> str:
    """Return a text as it is kept: composed characters (NFC), one kind of line end, no blanks at its ends.

    Raises:
        InvalidInputError: nothing of it can be seen, or it is too long.
    """
    if not is_storable(text):
        raise InvalidInputError(_NO_TEXT)
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    cleaned = unicodedata.normalize("NFC", lines).strip()
    if not is_visible(cleaned):
        raise InvalidInputError("A question and an answer need visible characters.")
    if len(cleaned) > LONGEST_TEXT:
        raise InvalidInputError(
            f"A question and an answer have at most {LONGEST_TEXT:,} characters each, these are {len(cleaned):,}. Shorten the text."
        )
    return cleaned


def _list_documents(learned: LearnedItem) -> frozenset[str]:
    quoted = (one.document_id for one in learned.item.references)
    return learned.document_ids.union(filter(None, quoted))


def _start_source(document_id: str, content_hash: str | None) -> ItemSource:
    """Return a source whose quotes are looked up when the item is first read."""
    return ItemSource(
        document_id=document_id, content_hash=content_hash, checked_hash=None, quotes_stand=True
    )


def _renew_source(document_id: str, content_hash: str | None) -> ItemSource:
    """Return a source as it is now."""
    return ItemSource(
        document_id=document_id,
        content_hash=content_hash,
        checked_hash=content_hash,
        quotes_stand=True,
    )


def _find_in_answer(reference: Reference, answer: str) -> Reference | None:
    """Return the reference with the place of its part in another answer; None where it does not stand there."""
    before = reference.answer_chunk_position
    if before.of(answer) == reference.answer_chunk:
        return reference
    start = answer.find(reference.answer_chunk)
    if start < 0 or not reference.answer_chunk:
        return None
    place = Span(start, start + len(reference.answer_chunk))
    return replace(reference, answer_chunk_position=place)


def _find_in_source(
    reference: Reference, texts: Sequence[str], deadline: Deadline
) -> Reference | None:
    located = locate_references([reference], texts, deadline)
    return located[0][1] if located else None
