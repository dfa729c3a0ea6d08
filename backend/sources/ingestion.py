"""The service for documents that programs put in: it stores them at once, and a sync indexes them.

Each request is one transaction, with its audit entry and the request for a sync: whatever dies after it was answered, all of it
is there.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias
from urllib.parse import urlencode

from backend.files.file_types import UploadedFile
from backend.schemas.ingestion import (
    DocumentResult,
    PushedDeletionResponse,
    PushedDocumentResponse,
    PushedDocumentsResponse,
    PushResponse,
)
from backend.schemas.new_document import NewDocument, NewFile, Refusal
from backend.schemas.system import FieldError
from backend.sources.pushed_content import from_document, from_file
from backend.store import audit
from backend.store.audit import Actor
from backend.store.database import Database
from backend.store.documents import pushed_documents, pushes
from backend.store.documents.pushed_documents import PushedState
from backend.store.documents.pushes import EncodedDocument, Push
from backend.store.sync import schedule, sources, workers
from backend.store.sync.sources import Source, SourceChoice
from backend.sync import wakeup_messages
from connectors.errors import ConflictError, NotFoundError
from connectors.extraction.result import ExtractionError
from connectors.registry import INGEST
from indexing.runtime.deadline import Deadline

_Taken: TypeAlias = EncodedDocument | Refusal
_TWICE = "another document of this request has the same id: send one of them"
PROGRESS = "/api/ingestion"
LONGEST_READING = 60.0
"""Seconds for the Markdown and HTML of one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMark:
    """By what a request is known again."""

    digest: str
    """Of all that was sent."""
    key: str | None = None
    """That the program gave it."""


@dataclass(frozen=True, slots=True)
class IngestService:
    """All methods that take the name of a source raise NotFoundError for one that does not exist for the asker, and ConflictError
    for one of another kind."""

    database: Database
    actor: Actor
    choice: SourceChoice
    """The sources that exist for the asker."""

    def push(
        self, source: str, given: Sequence[NewDocument | Refusal], mark: RequestMark
    ) -> PushResponse:
        """Put in documents, each in place of one of the same id.

        Raises:
            ConflictError: another request came with the same key.
        """
        self._find(self.database, source)
        deadline = Deadline.after(LONGEST_READING)
        taken = [_encode(source, each, deadline) for each in _refuse_repeated(given)]
        return self._save(source, taken, mark)

    def push_file(self, about: NewFile, file: UploadedFile, mark: RequestMark) -> PushResponse:
        """Put in a file, which the sync reads.

        Raises:
            InvalidInputError: files like it are not read.
            ConflictError: another request came with the same key.
            TemporarilyUnavailableError: too many files wait.
        """
        self._find(self.database, about.source)
        return self._save(about.source, [pushes.encode(from_file(about, file))], mark)

    def delete(self, source: str, ids: Sequence[str], mark: RequestMark) -> PushedDeletionResponse:
        """Delete documents by the ids that the program gave them.

        Raises:
            ConflictError: another request came with the same key.
        """

        def carry_out(database: Database, push: Push) -> Mapping[str, object]:
            wanted = {f"{source}:{each}": each for each in ids}
            present = pushes.list_present(database, push.source_id, list(wanted))
            answer = PushedDeletionResponse(
                source=source,
                deleted=tuple(each for key, each in wanted.items() if key in present),
                missing=tuple(each for key, each in wanted.items() if key not in present),
            ).model_dump(mode="json")
            pushes.save_deletion(database, push, sorted(present), answer)
            if present:
                schedule.request_run(database, source, "incremental")
                self._record(database, "delete_documents", source, deleted=len(present))
            return answer

        return PushedDeletionResponse.model_validate(self._once(source, mark, carry_out))

    def delete_one(self, document_id: str, mark: RequestMark) -> None:
        """Delete a document that was put in. Raises NotFoundError: there is no such document."""
        source, local_id = self._split(document_id)
        if not self.delete(source.name, [local_id], mark).deleted:
            raise _no_document(document_id)

    def list_documents(
        self, source: str, after: str, limit: int, state: PushedState | None
    ) -> PushedDocumentsResponse:
        """Return what became of the documents of a source; `after` is the `next` of the page before."""
        found = self._find(self.database, source)
        states = pushed_documents.list_states(self.database, found, after, limit, state)
        return PushedDocumentsResponse(
            documents=tuple(map(PushedDocumentResponse.from_state, states)),
            next=states[-1].document_id if len(states) == limit else None,
        )

    def get(self, document_id: str) -> PushedDocumentResponse:
        """Return what became of a document that was put in. Raises NotFoundError: there is no such document."""
        source, _ = self._split(document_id)
        state = pushed_documents.find_state(self.database, source, document_id)
        return PushedDocumentResponse.from_state(state)

    def _save(self, source: str, taken: Sequence[_Taken], mark: RequestMark) -> PushResponse:
        def carry_out(database: Database, push: Push) -> Mapping[str, object]:
            given = [each for each in taken if isinstance(each, EncodedDocument)]
            same = pushes.find_unchanged(database, push.source_id, given)
            answer = self._describe(database, source, taken, same).model_dump(mode="json")
            changed = [each for each in given if each.id not in same]
            pushes.save(database, push, changed, answer)
            if changed:
                schedule.request_run(database, source, "incremental")
            counts = {name: answer[name] for name in ("accepted", "unchanged", "refused")}
            self._record(database, "put_in", source, **counts)
            return answer

        return PushResponse.model_validate(self._once(source, mark, carry_out))

    def _once(
        self,
        name: str,
        mark: RequestMark,
        carry_out: Callable[[Database, Push], Mapping[str, object]],
    ) -> Mapping[str, object]:
        """Carry out a request, or return what the same request was answered before."""
        with self.database.transaction() as database:
            source = self._find(database, name)
            if schedule.is_being_removed(database, name):
                raise ConflictError(f"{name!r} is being removed.")
            now = datetime.now(UTC)
            push = Push(source_id=source.id, digest=mark.digest, key=mark.key, at=now)
            answer = pushes.find_answer(database, push)
            if answer is None:
                reached = int(source.checkpoint.value) if source.checkpoint else 0
                pushes.remove_deleted(database, source.id, reached)
                answer = carry_out(database, push)
            return answer

    def _describe(
        self, database: Database, source: str, taken: Sequence[_Taken], same: frozenset[str]
    ) -> PushResponse:
        results = tuple(_to_result(*each, same) for each in enumerate(taken))
        counts = Counter(each.outcome for each in results)
        query = urlencode({"source": source, "state": "waiting"})
        return PushResponse(
            source=source,
            accepted=counts["accepted"],
            unchanged=counts["unchanged"],
            refused=counts["refused"],
            results=results,
            progress=f"{PROGRESS}?{query}",
            notice=_explain_wait(database, source),
        )

    def _find(self, database: Database, name: str) -> Source:
        found = sources.find(database, name, self.choice)
        if found.kind != INGEST:
            raise ConflictError(
                f"{name!r} reads its documents from elsewhere. Programs put documents into sources of the kind {INGEST}."
            )
        return found

    def _split(self, document_id: str) -> tuple[Source, str]:
        """Return the source of a document and its id there, alike for all that do not exist for the asker."""
        name, _, local_id = document_id.partition(":")
        try:
            return self._find(self.database, name), local_id
        except NotFoundError:
            raise _no_document(document_id) from None

    def _record(self, database: Database, action: str, source: str, **details: object) -> None:
        audit.record(database, action, source, details, self.actor)


def _refuse_repeated(given: Sequence[NewDocument | Refusal]) -> list[NewDocument | Refusal]:
    """Refuse all documents of an id that comes more than once: which one was meant is not guessed."""
    times = Counter(each.id for each in given)
    return [
        Refusal(each.id, (FieldError(where="id", message=_TWICE),))
        if isinstance(each, NewDocument) and times[each.id] > 1
        else each
        for each in given
    ]


def _encode(source: str, given: NewDocument | Refusal, deadline: Deadline) -> _Taken:
    if isinstance(given, Refusal):
        return given
    try:
        return pushes.encode(from_document(source, given, deadline))
    except ExtractionError as error:
        return Refusal(given.id, (FieldError(where="text", message=f"{error}"),))


def _to_result(index: int, taken: _Taken, same: frozenset[str]) -> DocumentResult:
    if isinstance(taken, Refusal):
        return DocumentResult(
            index=index, id=taken.id, outcome="refused", document_id=None, errors=taken.errors
        )
    return DocumentResult(
        index=index,
        id=taken.id.partition(":")[2],
        outcome="unchanged" if taken.id in same else "accepted",
        document_id=taken.id,
        errors=(),
    )


def _explain_wait(database: Database, source: str) -> str | None:
    if sources.find(database, source).paused_at is not None:
        return f"{source} is paused: they wait until it is resumed."
    return wakeup_messages.explain_no_worker(workers.list_live(database))


def _no_document(document_id: str) -> NotFoundError:
    return NotFoundError(f"There is no document {document_id!r}.")
