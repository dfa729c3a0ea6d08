"""Indexes as they were made before words were made by language."""

from contextlib import closing
from pathlib import Path

from opensearchpy import OpenSearch

from indexing.local import open_writer
from indexing.local.database import connect_writer, transaction, write_meta
from indexing.opensearch.mapping import IndexLayout, index_body
from indexing.text.analysis import ENGLISH
from tests.support.chunks import IDENTITY


def make_former_folder(folder: Path) -> None:
    """Create an empty index in `folder`, or make an empty one there a former one."""
    open_writer(folder, IDENTITY)
    with closing(connect_writer(folder)) as connection, transaction(connection):
        write_meta(connection, "analysis", ENGLISH.fingerprint)


def make_former_index(client: OpenSearch, name: str) -> None:
    """Create an empty index of this name on the cluster."""
    body = index_body(name, IDENTITY, IndexLayout())
    body["mappings"]["_meta"] |= {"analysis": ENGLISH.fingerprint, "called": IDENTITY.model}
    for added in ("languages", "projects", "personas"):
        del body["mappings"]["properties"][added]
    client.indices.create(index=name, body=body)
