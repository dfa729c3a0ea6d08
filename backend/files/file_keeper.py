"""Reads and indexes uploaded files, one after the other in a thread of each process; removes those that are marked for removal.

What waits lies in the database: what a dead process left is found by whichever process looks next.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from backend.access.readers import make_file_access
from backend.files.file_types import MOST_CHARACTERS, is_picture
from backend.store.database import Database
from backend.store.documents import index_claims
from backend.store.files import file_labels, file_source, user_files, waiting_uploads
from backend.store.files.file_labels import DueFile
from backend.store.files.waiting_uploads import WaitingUpload
from backend.sync.document_set_updates import is_held
from backend.sync.lease_renewal import LeaseRenewal
from backend.sync.run_lease import is_dead, this_process
from connectors.connector import Deletion
from connectors.document import Document, Section
from connectors.errors import ActionRequiredError, NotFoundError, TemporarilyUnavailableError
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
SWEEP_PAUSE = 20.0
"""Seconds between two looks that requests bring about by themselves: so a file that a dead process was reading is read by
another one some seconds after its lease has ended."""
FIRST_PAUSE = 2.0
"""Seconds after which what failed is tried again; each further time twice as many, up to the following."""
LONGEST_PAUSE = 60.0
MOST_TRIES = 10
"""Of one file, over some six minutes: longer than an index is held to be switched."""
_LATER = "It could not be indexed now. Remove it, then add it again in a moment."
DEADLY = "{name} cannot be read: the server ended each time that it tried."
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
        """Index a document. Raises ExtractionError, TemporarilyUnavailableError, ActionRequiredError."""
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
        with _writing(self.database):
            Executor(self.embedder, self.writer, self.ledger).run(plan, RunCounters())


@contextmanager
def _writing(database: Database) -> Iterator[None]:
    """Write files to the index during the block, by a claim that is renewed meanwhile.

    Raises:
        TemporarilyUnavailableError: the index is held, or was lost during the block, which is to be tried again.
    """
    with index_claims.write(database, this_process(), is_dead) as renew, LeaseRenewal(renew):
        yield


class FileKeeper:
    """
    Args:
        open_index: called each time.
    """

    def __init__(self, open_index: Callable[[], FileIndex]) -> None:
        self._open_index = open_index
        self._changed = threading.Lock()
        self._is_due = False
        self._swept_at = -SWEEP_PAUSE
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def wake(self) -> None:
        """Read soon what waits, and remove what is marked for removal."""
        with self._changed:
            self._is_due = True
            self._start()

    def stop(self, seconds: float) -> None:
        """Begin nothing more, and wait so long for what is being read; what waits stays for another process."""
        self._stopping.set()
        with self._changed:
            thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def wake_sometimes(self) -> None:
        if time.monotonic() - self._swept_at >= SWEEP_PAUSE:
            self.wake()

    def _start(self) -> None:
        if self._thread is None and not self._stopping.is_set():
            self._thread = threading.Thread(target=self._work, name="files", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        pause = FIRST_PAUSE
        try:
            while self._take_due():
                if self._take_step():
                    pause = FIRST_PAUSE
                else:
                    self._wait(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            # Also after an error in the program: another thread goes on with what waits.
            with self._changed:
                self._thread = None
                if self._is_due:
                    self._start()

    def _take_due(self) -> bool:
        with self._changed:
            due, self._is_due = self._is_due, False
            return due and not self._stopping.is_set()

    def _wait(self, seconds: float) -> None:
        """Wait before the next try, whatever is added meanwhile: it would fail as well."""
        self._stopping.wait(seconds)
        with self._changed:
            self._is_due = True

    def _take_step(self) -> bool:
        """Sweep, and read all that waits; return False if something is to be tried again later."""
        try:
            index = self._open_index()
            self._swept_at = time.monotonic()
            sweep(index)
            while not self._stopping.is_set():
                upload = waiting_uploads.claim(index.database, this_process(), is_dead)
                if upload is None:
                    break
                with LeaseRenewal(partial(waiting_uploads.renew, index.database, upload)):
                    read_upload(index, upload)
                index = self._open_index()
        except (TemporarilyUnavailableError, ActionRequiredError) as error:
            # What is marked stays so, and what waits: the next step finds it.
            LOG.warning("Files: %s", error)
            return False
        return True


def read_upload(index: FileIndex, upload: WaitingUpload) -> None:
    """Read a file and index it for its owner.

    Raises:
        TemporarilyUnavailableError, ActionRequiredError: it is to be tried again.
    """
    if upload.tries > MOST_TRIES:
        deadly = DEADLY.format(name=upload.name)
        user_files.fail(index.database, upload.file_id, upload.tries, deadly)
        return
    problem: str | None = _ANY_ERROR
    try:
        document = make_document(upload)
        index.store(document)
        problem = None
    except ExtractionError as error:
        problem = f"{upload.name} cannot be read: {error}."
    except (TemporarilyUnavailableError, ActionRequiredError) as error:
        LOG.warning("%s: %s", upload.document_id, error)
        problem = _LATER
        if upload.tries < MOST_TRIES:
            problem = None
            waiting_uploads.postpone(index.database, upload)
            raise
    finally:
        if problem is not None:
            user_files.fail(index.database, upload.file_id, upload.tries, problem)
    if problem is None:
        _finish(index, upload, document)


def _finish(index: FileIndex, upload: WaitingUpload, document: Document) -> None:
    length = sum(len(section.text) for section in document.sections)
    picture = upload.data if is_picture(upload.media_type) else None
    if user_files.finish(index.database, upload.file_id, length, picture):
        return
    try:
        user_files.find(index.database, upload.owner, upload.file_id)
    except NotFoundError:
        # It was marked for removal while it was read: a sweep may have passed it before it was indexed.
        index.remove(upload.document_id)
        return
    # It may be in a project already.
    label_due(index)


def make_document(upload: WaitingUpload) -> Document:
    """Make a document of an upload, of its text if it is no picture. Raises ExtractionError."""
    sections: tuple[Section, ...]
    if is_picture(upload.media_type):
        sections = (Section(text=f"Picture: {upload.name}", kind="image"),)
    else:
        sections = extract_isolated(upload.data, upload.media_type, EXTRACTION_SECONDS).sections
    if sum(len(section.text) for section in sections) > MOST_CHARACTERS:
        raise ExtractionError(f"its text has more than {MOST_CHARACTERS:,} characters")
    return Document(
        id=upload.document_id,
        source=file_source.FILES_SOURCE,
        title=upload.name,
        sections=sections,
        link="",
        media_type=upload.media_type,
        access=make_file_access(upload.owner, upload.file_id),
        version="1",
        created_at=upload.created_at,
        updated_at=upload.created_at,
    )


def label_due(index: FileIndex) -> None:
    """Write to the index what holds files, where that was changed; while the index is rebuilt or moved, that waits."""
    while not is_held(index.database) and file_labels.list_due(index.database, 1):
        # What is read as due is written before the index may be another one, or not at all.
        with _writing(index.database):
            for file in file_labels.list_due(index.database, _PAGE):
                _label(index, file)


def _label(index: FileIndex, file: DueFile) -> None:
    document = index.ledger.document(file.document_id)
    if document is not None:
        access = make_file_access(file.owner, file.id)
        labels = file.labels
        index.amend(replace(document, access=access), labels.projects, labels.assistants)
    file_labels.finish(index.database, file)


def sweep(index: FileIndex) -> None:
    """Remove what is marked for removal from the index, then for good; write to the index what holds files."""
    if marked := user_files.list_marked(index.database):
        for document_id in marked.values():
            index.remove(document_id)
        user_files.remove(index.database, list(marked))
    label_due(index)
