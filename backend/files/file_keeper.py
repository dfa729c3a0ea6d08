"""Reads and indexes uploaded files, one after the other in a thread of the process; removes those that are marked for removal.

What a dead process left is found by `sweep`, in whichever process looks next.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from backend.access.readers import make_file_access
from backend.files.file_types import MOST_CHARACTERS, is_picture
from backend.store import file_labels, file_source, user_files
from backend.store.conversations import ConversationOwner
from backend.store.database import Database
from backend.store.file_labels import DueFile
from backend.store.user_files import UserFile
from backend.sync.run_lease import is_dead
from backend.sync.set_work import is_held
from connectors.connector import Deletion
from connectors.document import Document, Section
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from connectors.extraction.isolated import extract_isolated
from connectors.extraction.result import ExtractionError
from indexing.embedding.embedder import Embedder
from indexing.index.protocols import Amend, IndexWriter
from indexing.ingestion.executor import Executor, Plan
from indexing.ingestion.ledger import Ledger
from indexing.ingestion.planner import EmbedStep, plan_change
from indexing.ingestion.progress import RunCounters

LOG = logging.getLogger("quarry.files")
EXTRACTION_SECONDS = 120.0
MOST_WAITING_BYTES = 200_000_000
"""Of files that wait in this process to be read."""
SWEEP_PAUSE = 60.0
"""Seconds between two sweeps that requests bring about by themselves."""
ENDED = "The server ended while it read this file. Remove it, then add it again."
_LATER = "It could not be indexed now. Remove it, then add it again in a moment."
_BUSY = "Too many files are being read. Add it again in a moment."
_PAGE = 200
_ANY_ERROR = "It could not be read: an internal error; the log says more."


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIndex:
    """Where files are indexed."""

    database: Database
    embedder: Embedder
    writer: IndexWriter
    ledger: Ledger

    def store(self, document: Document) -> None:
        """Raises ExtractionError, TemporarilyUnavailableError, ActionRequiredError."""
        file_source.ensure(self.database)
        step = plan_change(document, None, document.source, self.embedder, 1)
        if not isinstance(step, EmbedStep):
            raise ExtractionError("its text cannot be indexed")
        self._run(Plan((step,)))

    def remove(self, document_id: str) -> None:
        self._run(
            Plan(
                (
                    plan_change(
                        Deletion(document_id), None, file_source.FILES_SOURCE, self.embedder, 1
                    ),
                )
            )
        )

    def amend(self, document: Document, projects: frozenset[str], personas: frozenset[str]) -> None:
        """Write who may read a document that is indexed, and the labels of what holds it. Raises as `store`."""
        entry = self.ledger.entries([document.id]).get(document.id)
        if entry is not None and entry.access != document.access:
            self._run(Plan((plan_change(document, entry, document.source, self.embedder, 1),)))
        self.writer.write([Amend(document_id=document.id, projects=projects, personas=personas)])

    def _run(self, plan: Plan) -> None:
        Executor(self.embedder, self.writer, self.ledger).run(plan, RunCounters())


@dataclass(frozen=True, slots=True)
class _Waiting:
    owner: ConversationOwner
    file: UserFile
    data: bytes


class FileKeeper:
    """
    Args:
        open_index: called each time.
    """

    def __init__(self, open_index: Callable[[], FileIndex]) -> None:
        self._open_index = open_index
        self._changed = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._sweep_due = False
        self._swept_at = -SWEEP_PAUSE
        self._thread: threading.Thread | None = None

    def check_room(self, size: int) -> None:
        """Raises TemporarilyUnavailableError: too much waits already."""
        with self._changed:
            if self._bytes + size > MOST_WAITING_BYTES:
                raise TemporarilyUnavailableError(_BUSY, timedelta(seconds=5))

    def schedule_read(self, owner: ConversationOwner, file: UserFile, data: bytes) -> None:
        """Read a file soon, and index it."""
        with self._changed:
            self._waiting.append(_Waiting(owner, file, data))
            self._bytes += len(data)
            self._start()

    def sweep_now(self) -> None:
        """Remove soon what is marked for removal."""
        with self._changed:
            self._sweep_due = True
            self._start()

    def sweep_sometimes(self) -> None:
        if time.monotonic() - self._swept_at >= SWEEP_PAUSE:
            self.sweep_now()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="files", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        try:
            while self._take_next():
                pass
        finally:
            # Also after an error in the program: another thread goes on with what waits.
            with self._changed:
                self._thread = None
                if self._waiting or self._sweep_due:
                    self._start()

    def _take_next(self) -> bool:
        """Sweep if that is due, and read the file that has waited longest; whether there was anything to do."""
        with self._changed:
            if not self._waiting and not self._sweep_due:
                return False
            sweeps, self._sweep_due = self._sweep_due, False
            waiting = self._waiting[0] if self._waiting else None
        self._take_step(waiting, sweeps=sweeps)
        return True

    def _take_step(self, waiting: _Waiting | None, *, sweeps: bool) -> None:
        try:
            index = self._open_index()
            if sweeps:
                self._swept_at = time.monotonic()
                sweep(index)
            if waiting is not None:
                user_files.renew(index.database, [one.file.id for one in list(self._waiting)])
                read_file(index, waiting.owner, waiting.file, waiting.data)
        except (TemporarilyUnavailableError, ActionRequiredError) as error:
            # What is marked stays so: the next sweep finds it.
            LOG.warning("Files: %s", error)
        finally:
            if waiting is not None:
                with self._changed:
                    self._waiting.popleft()
                    self._bytes -= len(waiting.data)


def read_file(index: FileIndex, owner: ConversationOwner, file: UserFile, data: bytes) -> None:
    """Read a file and index it for its owner."""
    problem = _ANY_ERROR
    try:
        document = make_document(owner, file, data)
        index.store(document)
        problem = ""
    except ExtractionError as error:
        problem = f"{file.name} cannot be read: {error}."
    except (TemporarilyUnavailableError, ActionRequiredError) as error:
        LOG.warning("%s: %s", file.document_id, error)
        problem = _LATER
    finally:
        if problem:
            user_files.fail(index.database, file.id, problem)
    if problem:
        return
    length = sum(len(section.text) for section in document.sections)
    picture = data if is_picture(file.media_type) else None
    if not user_files.finish(index.database, file.id, length, picture):
        # It was marked for removal while it was read: a sweep may have passed it before it was indexed.
        index.remove(file.document_id)
        return
    # It may be in a project already.
    label_due(index)


def make_document(owner: ConversationOwner, file: UserFile, data: bytes) -> Document:
    """Raises ExtractionError."""
    sections: tuple[Section, ...]
    if is_picture(file.media_type):
        sections = (Section(text=f"Picture: {file.name}", kind="image"),)
    else:
        sections = extract_isolated(data, file.media_type, EXTRACTION_SECONDS).sections
    if sum(len(section.text) for section in sections) > MOST_CHARACTERS:
        raise ExtractionError(f"its text has more than {MOST_CHARACTERS:,} characters")
    return Document(
        id=file.document_id,
        source=file_source.FILES_SOURCE,
        title=file.name,
        sections=sections,
        link="",
        media_type=file.media_type,
        access=make_file_access(owner, file.id),
        version="1",
        created_at=file.created_at,
        updated_at=file.created_at,
    )


def label_due(index: FileIndex) -> None:
    """Write to the index what holds files, where that was changed; while the index is rebuilt or moved, that waits."""
    while not is_held(index.database) and (due := file_labels.list_due(index.database, _PAGE)):
        for file in due:
            _label(index, file)


def _label(index: FileIndex, file: DueFile) -> None:
    document = index.ledger.document(file.document_id)
    if document is not None:
        access = make_file_access(file.owner, file.id)
        labels = file.labels
        index.amend(replace(document, access=access), labels.projects, labels.assistants)
    file_labels.finish(index.database, file)


def sweep(index: FileIndex) -> None:
    """Remove what is marked for removal from the index, then for good; say of what a dead process read that it cannot be used."""
    marked = user_files.list_marked(index.database)
    for document_id in marked.values():
        index.remove(document_id)
    user_files.remove(index.database, list(marked))
    label_due(index)
    for file in user_files.list_open(index.database):
        is_left = file.lease_until < datetime.now(UTC) or is_dead(file.process)
        if is_left and user_files.fail(index.database, file.id, ENDED):
            # It may have been indexed a moment before.
            index.remove(file.document_id)
