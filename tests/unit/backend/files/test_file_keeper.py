"""The thread that reads uploaded files."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import Connection, delete, select

from backend.files import file_keeper
from backend.files.file_keeper import FileIndex, FileKeeper
from backend.store.database import Database, open_database
from backend.store.documents import index_claims
from backend.store.documents.ledger import StoredLedger
from backend.store.files import file_labels, user_files, waiting_uploads
from backend.store.files.user_files import NewFile, UserFile
from backend.store.files.waiting_uploads import WaitingUpload
from backend.store.schema.user_file_tables import index_claims as index_claims_table
from backend.store.schema.user_file_tables import user_files as user_files_table
from backend.store.schema.user_file_tables import waiting_uploads as waiting_uploads_table
from backend.sync.lease_renewal import LeaseRenewal
from backend.sync.maintenance_lock import hold_all_sources
from backend.sync.run_lease import is_dead, this_process
from connectors.document import Document
from connectors.errors import TemporarilyUnavailableError
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.index.protocols import IndexChange, Written
from tests.support.conversations import ELSEWHERE, OWNER
from tests.support.memory_index_writer import MemoryIndexWriter
from tests.support.server_processes import wait_for

EMBEDDER = HashingEmbedder()


class _Writer(MemoryIndexWriter):
    """Fails so many times; calls something before it writes."""

    def __init__(self) -> None:
        super().__init__(EMBEDDER.identity.dimension)
        self.failures = 0
        self.before: Callable[[], object] = lambda: None

    def write(self, changes: Iterable[IndexChange]) -> Written:
        if self.failures:
            self.failures -= 1
            raise TemporarilyUnavailableError("The index does not answer.", timedelta())
        self.before()
        return super().write(changes)


@pytest.fixture
def writer() -> _Writer:
    return _Writer()


@pytest.fixture
def index(database_url: str, writer: _Writer) -> Iterator[FileIndex]:
    with closing(open_database(database_url)) as database:
        yield FileIndex(
            database=database, embedder=EMBEDDER, writer=writer, ledger=StoredLedger(database)
        )


@pytest.fixture
def keeper(index: FileIndex) -> Iterator[FileKeeper]:
    """Its thread ends before the database is closed: it would open a connection that nobody closes."""
    keeper = FileKeeper(lambda: index)
    yield keeper
    keeper.stop(30)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_keeper, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(file_keeper, "LONGEST_PAUSE", 0.01)


def _upload(database: Database, name: str = "plan.md") -> UserFile:
    """A file that no thread reads yet."""
    data = f"# {name}\n\nThe office moves to Nantmoor.\n".encode()
    new = NewFile(
        id=name,
        name=name,
        media_type="text/markdown",
        size=len(data),
        sha256=name,
        document_id=f"Your files:{name}",
        data=data,
    )
    return user_files.add(database, OWNER, new, 9)


def _status(database: Database, file: UserFile) -> str:
    return user_files.find(database, OWNER, file.id).status


def _list_tries(database: Database) -> list[int]:
    """How often each upload that waits was tried."""
    with database.reading() as connection:
        return list(connection.scalars(select(waiting_uploads_table.c.tries)))


def _waits(database: Database) -> bool:
    return _list_tries(database) != []


def test_what_a_process_took_and_did_not_read_another_one_reads(
    index: FileIndex, keeper: FileKeeper, writer: _Writer
) -> None:
    files = [_upload(index.database, f"{number}.md") for number in range(3)]
    keeper.wake()
    wait_for(lambda: {_status(index.database, one) for one in files} == {"ready"})
    assert sorted(writer.held) == [one.document_id for one in files]
    assert not _waits(index.database)


def test_what_a_dead_process_was_reading_is_read_again_and_no_live_one_is_robbed(
    index: FileIndex,
) -> None:
    file = _upload(index.database)
    process = this_process()
    assert waiting_uploads.claim(index.database, process, lambda _: False) is not None
    assert waiting_uploads.claim(index.database, process, lambda _: False) is None
    taken = waiting_uploads.claim(index.database, process, lambda one: one == process)
    assert taken is not None
    assert (taken.file_id, taken.tries, taken.data[:1]) == (file.id, 2, b"#")


def test_what_a_process_of_another_machine_was_reading_is_free_after_its_lease(
    index: FileIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it has died cannot be seen from here: it renews its claim, or loses it."""
    assert timedelta(seconds=60) >= waiting_uploads.LEASE
    file = _upload(index.database)
    taken = waiting_uploads.claim(index.database, ELSEWHERE, is_dead)
    assert taken is not None
    assert waiting_uploads.claim(index.database, this_process(), is_dead) is None
    with monkeypatch.context() as over:
        over.setattr(waiting_uploads, "LEASE", timedelta(seconds=-1))
        waiting_uploads.renew(index.database, taken)
    again = waiting_uploads.claim(index.database, this_process(), is_dead)
    assert again is not None
    assert (again.file_id, again.tries) == (file.id, 2)
    # The late one takes nothing back, neither while the other reads nor after it gave up.
    waiting_uploads.postpone(index.database, taken)
    assert not user_files.fail(index.database, file.id, taken.tries, "It is late.")
    assert waiting_uploads.claim(index.database, ELSEWHERE, is_dead) is None
    waiting_uploads.postpone(index.database, again)
    for late in (taken, again):
        waiting_uploads.renew(index.database, late)
    assert waiting_uploads.claim(index.database, ELSEWHERE, is_dead) is not None


def test_the_claim_of_a_file_that_takes_long_is_renewed(
    index: FileIndex, keeper: FileKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_keeper, "LeaseRenewal", partial(LeaseRenewal, seconds=0.01))
    go_on, make = threading.Event(), file_keeper.make_document
    renew, renewed = waiting_uploads.renew, list[str]()

    def make_slowly(upload: WaitingUpload) -> Document:
        assert go_on.wait(30)
        return make(upload)

    def count(database: Database, upload: WaitingUpload) -> None:
        renew(database, upload)
        renewed.append(upload.file_id)

    monkeypatch.setattr(file_keeper, "make_document", make_slowly)
    monkeypatch.setattr(waiting_uploads, "renew", count)
    file = _upload(index.database)
    # The claim is over at once; renewed, it lasts as long as any.
    with monkeypatch.context() as over:
        over.setattr(waiting_uploads, "LEASE", timedelta(seconds=-1))
        keeper.wake()
        wait_for(lambda: _list_tries(index.database) == [1])
    seen = len(renewed)
    wait_for(lambda: len(renewed) > seen + 1)
    assert waiting_uploads.claim(index.database, ELSEWHERE, is_dead) is None
    go_on.set()
    wait_for(lambda: _status(index.database, file) == "ready")
    assert set(renewed) == {file.id}


def test_the_index_that_a_dead_machine_held_is_written_after_its_lease(
    index: FileIndex, keeper: FileKeeper, writer: _Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timedelta(seconds=60) >= index_claims.LEASE
    with index_claims.hold(index.database, ELSEWHERE, is_dead) as renew:
        renew()
        with (
            pytest.raises(TemporarilyUnavailableError),
            index_claims.write(index.database, this_process(), is_dead),
        ):
            pass
        with monkeypatch.context() as over:
            over.setattr(index_claims, "LEASE", timedelta(seconds=-1))
            renew()
        file = _upload(index.database)
        keeper.wake()
        wait_for(lambda: _status(index.database, file) == "ready")
        with pytest.raises(TemporarilyUnavailableError, match="no longer held"):
            renew()
    assert writer.held


def test_what_was_written_after_its_claim_was_lost_is_written_again(
    index: FileIndex, keeper: FileKeeper, writer: _Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that slept for longer than its lease: the index that it writes to may be in use no more."""
    writes, file = list[str](), _upload(index.database)

    def sleep_through_a_switch() -> None:
        writes.append(_status(index.database, file))
        if len(writes) == 1:
            with monkeypatch.context() as over:
                over.setattr(index_claims, "_list_live", _list_none)
                with index_claims.hold(index.database, ELSEWHERE, is_dead):
                    pass

    def _list_none(connection: Connection, *_: object) -> list[str]:
        """All leases have ended."""
        connection.execute(delete(index_claims_table))
        return []

    writer.before = sleep_through_a_switch
    keeper.wake()
    wait_for(lambda: _status(index.database, file) == "ready")
    assert writes == ["reading", "reading"]
    assert writer.held.keys() == {file.document_id}


def test_what_cannot_be_indexed_now_is_tried_again(
    index: FileIndex, keeper: FileKeeper, writer: _Writer
) -> None:
    writer.failures = 2
    file = _upload(index.database)
    keeper.wake()
    wait_for(lambda: _status(index.database, file) == "ready")


def test_what_cannot_be_indexed_for_long_fails_with_advice(
    index: FileIndex, keeper: FileKeeper, writer: _Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_keeper, "MOST_TRIES", 2)
    writer.failures = 2
    file = _upload(index.database)
    keeper.wake()
    wait_for(lambda: _status(index.database, file) == "failed")
    problem = user_files.find(index.database, OWNER, file.id).problem
    assert problem is not None
    assert "add it again" in problem
    assert not _waits(index.database)


def test_a_file_that_ends_its_process_each_time_is_given_up(
    index: FileIndex, keeper: FileKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_keeper, "MOST_TRIES", 2)
    file = _upload(index.database)
    for _ in range(2):
        assert waiting_uploads.claim(index.database, this_process(), lambda _: True) is not None
    monkeypatch.setattr(file_keeper, "is_dead", lambda _: True)
    keeper.wake()
    wait_for(lambda: _status(index.database, file) == "failed")
    problem = user_files.find(index.database, OWNER, file.id).problem
    assert problem == "plan.md cannot be read: the server ended each time that it tried."
    assert not _waits(index.database)


def test_a_file_that_waits_is_gone_with_its_bytes_when_it_is_deleted(index: FileIndex) -> None:
    file = _upload(index.database)
    user_files.mark_for_removal(index.database, OWNER, file.id)
    assert not _waits(index.database)
    assert waiting_uploads.claim(index.database, this_process(), lambda _: True) is None


def test_nothing_is_indexed_while_the_index_is_held(
    index: FileIndex, keeper: FileKeeper, writer: _Writer
) -> None:
    file = _upload(index.database)
    with hold_all_sources(index.database, "reindex"):
        keeper.wake()
        wait_for(lambda: sum(_list_tries(index.database)) > 2)
        assert (_status(index.database, file), writer.held) == ("reading", {})
    wait_for(lambda: _status(index.database, file) == "ready")


def _try_to_hold(index: FileIndex, refused: list[str]) -> None:
    try:
        with hold_all_sources(index.database, "reindex"):
            refused.append("")
    except TemporarilyUnavailableError as error:
        refused.append(str(error))


def test_the_index_is_not_held_while_labels_are_written(
    index: FileIndex, keeper: FileKeeper, writer: _Writer
) -> None:
    """What is written as due would be written to the old index, and no longer be due for the new one."""
    file = _upload(index.database)
    keeper.wake()
    wait_for(lambda: _status(index.database, file) == "ready")
    keeper.stop(30)
    with index.database.writing() as connection:
        file_labels.mark_due(connection, select(user_files_table.c.id))
    refused: list[str] = []
    writer.before = lambda: _try_to_hold(index, refused)
    file_keeper.label_due(index)
    assert refused == ["People's files are being indexed."]
    assert file_labels.list_due(index.database, 9) == []


def test_the_index_is_not_held_while_a_file_is_indexed(
    index: FileIndex, keeper: FileKeeper, writer: _Writer
) -> None:
    refused: list[str] = []
    writer.before = lambda: _try_to_hold(index, refused)
    file = _upload(index.database)
    keeper.wake()
    wait_for(lambda: _status(index.database, file) == "ready")
    assert refused == ["People's files are being indexed."]
    with hold_all_sources(index.database, "reindex") as go_on:
        go_on()


def test_no_more_waits_than_there_is_room_for(
    index: FileIndex, keeper: FileKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_uploads, "MOST_WAITING_BYTES", 100)
    _upload(index.database, "1.md")
    _upload(index.database, "2.md")
    with pytest.raises(TemporarilyUnavailableError, match="Too many files wait") as refused:
        _upload(index.database, "3.md")
    assert refused.value.retry_after == timedelta(seconds=5)
    assert len(user_files.list_files(index.database, OWNER, 9)) == 2
    keeper.wake()
    wait_for(lambda: not _waits(index.database))
    _upload(index.database, "3.md")


def test_an_error_of_the_program_ends_no_later_work(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    raised: list[type[BaseException]] = []

    def open_index() -> FileIndex:
        opened.append(threading.current_thread().name)
        raise RuntimeError("a mistake")

    monkeypatch.setattr(threading, "excepthook", lambda args: raised.append(args.exc_type))
    keeper = FileKeeper(open_index)
    keeper.wake()
    wait_for(lambda: raised)
    keeper.wake()
    wait_for(lambda: len(raised) == 2)
    assert opened == ["files", "files"]
    assert raised == [RuntimeError, RuntimeError]


def test_stopped_it_ends_the_file_in_hand_and_leaves_the_others_waiting(
    index: FileIndex, keeper: FileKeeper, writer: _Writer
) -> None:
    files = [_upload(index.database, name) for name in ("a.md", "b.md")]
    begun, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert may_end.wait(30)

    writer.before = hold
    keeper.wake()
    assert begun.wait(30)
    stopping = threading.Thread(target=keeper.stop, args=(30.0,))
    stopping.start()
    wait_for(keeper._stopping.is_set)
    may_end.set()
    stopping.join(30)
    assert not stopping.is_alive()
    assert sorted(_status(index.database, file) for file in files) == ["reading", "ready"]
    keeper.wake()
    assert keeper._thread is None
