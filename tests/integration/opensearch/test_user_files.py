"""Files of people on the cluster: found by their owner alone, and gone when they are removed."""

from contextlib import closing
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

from backend.access.readers import add_own_files
from backend.files.file_keeper import FileIndex, read_upload, sweep
from backend.store.database import open_database
from backend.store.documents.ledger import StoredLedger
from backend.store.files import user_files, waiting_uploads
from backend.store.files.file_source import make_document_id
from backend.store.files.user_files import NewFile
from backend.store.owner import ConversationOwner
from connectors.access import Readers
from connectors.errors import NotFoundError
from indexing.chunking.chunk import ChunkRange
from indexing.embedding.hash_embedder import HashingEmbedder
from indexing.opensearch.open_index import open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.support.conversations import ELSEWHERE, OWNER
from tests.support.databases import sqlite_in


def test_a_file_is_its_owners_alone_until_it_is_removed(
    client: OpenSearch, prefix: str, tmp_path: Path
) -> None:
    embedder = HashingEmbedder()
    writer = open_writer(client, prefix, embedder.identity)
    new = NewFile(
        id="1",
        name="plan.md",
        media_type="text/markdown",
        size=1,
        sha256="1",
        document_id=make_document_id("1"),
        data=b"# Plan\n\nThe office moves to Nantmoor.\n",
    )
    with (
        closing(open_database(sqlite_in(tmp_path))) as database,
        open_index(client, prefix, embedder.identity) as index,
    ):
        files = FileIndex(
            database=database, embedder=embedder, writer=writer, ledger=StoredLedger(database)
        )
        file = user_files.add(database, OWNER, new, 9)
        upload = waiting_uploads.claim(database, ELSEWHERE, lambda _: False)
        assert upload is not None
        read_upload(files, upload)
        assert user_files.find(database, OWNER, "1").status == "ready"

        def read(owner: ConversationOwner) -> list[str]:
            readers = add_own_files(Readers.of(), owner)
            place = ChunkRange(file.document_id, 0, 1)
            (found,) = index.chunks([place], readers, Deadline.after(20))
            return [chunk.title for chunk in found]

        assert read(OWNER) == ["plan.md"]
        assert read(ConversationOwner(1)) == []
        user_files.mark_for_removal(database, OWNER, "1")
        sweep(files)
        assert read(OWNER) == []
        with pytest.raises(NotFoundError, match="no such file"):
            user_files.find(database, OWNER, "1")
