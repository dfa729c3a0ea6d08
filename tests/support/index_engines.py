"""Engines of the contract suite: each opens the same index any number of times, also in other processes."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Protocol

import opensearchpy

from connectors.access import EVERYBODY, NOBODY, Access, Readers
from indexing.chunking.chunk import ChunkRange
from indexing.index.protocols import Amend, Delete, Index, IndexChange, IndexWriter, Replace
from indexing.local import open_index, open_writer
from indexing.opensearch import open_index as opening
from indexing.opensearch.client import OpenSearchSettings, connect
from indexing.opensearch.mapping import IndexLayout, VectorSettings
from indexing.opensearch.naming import index_name
from indexing.runtime.deadline import Deadline
from tests.support.chunks import IDENTITY, document, query, vector
from tests.support.former_words import make_former_folder, make_former_index
from tests.support.rights import may_read

PUBLIC = Readers.of()
_SPARSE = IndexLayout(vectors=VectorSettings(m=8, ef_construction=32))


class Engine(Protocol):
    """Opens the same index any number of times, in this process or another."""

    def index(self) -> Index: ...

    def writer(self) -> IndexWriter: ...


@dataclass(frozen=True)
class LocalEngine:
    folder: Path

    def index(self) -> Index:
        return open_index(self.folder, IDENTITY)

    def writer(self) -> IndexWriter:
        return open_writer(self.folder, IDENTITY)


@dataclass(frozen=True)
class OpenSearchEngine:
    url: str
    prefix: str
    """The prefix of this test's indexes."""
    layout: IndexLayout = field(default_factory=IndexLayout)

    def index(self) -> Index:
        return opening.open_index(_client(self.url), self.prefix, IDENTITY, self.layout)

    def writer(self) -> IndexWriter:
        return opening.open_writer(_client(self.url), self.prefix, IDENTITY, self.layout)

    def remove(self) -> None:
        _client(self.url).indices.delete(index=f"{self.prefix}-*")


@cache
def _client(url: str) -> opensearchpy.OpenSearch:
    """Return the client of this process, which its threads share."""
    return connect(OpenSearchSettings(urls=(url,)))


def with_sparse_graph(engine: Engine) -> Engine:
    """Return the engine with a sparser vector graph, which is most of the work; before it is first opened."""
    match engine:
        case OpenSearchEngine():
            return replace(engine, layout=_SPARSE)
        case _:
            return engine


def make_former(engine: Engine) -> None:
    """Create the index of the engine with words as they were before they were made by language."""
    match engine:
        case LocalEngine(folder):
            make_former_folder(folder)
        case OpenSearchEngine(url, prefix):
            make_former_index(_client(url), index_name(prefix, IDENTITY))
        case _:
            raise ValueError(f"no former index is known of {engine}")


def holding(tokens: Iterable[str], conjunctions: Iterable[Access]) -> Readers:
    """Return an asker who holds these tokens and the derived ones of the conjunctions that they meet."""
    asker = Readers.of(*tokens)
    met = (access.readers for access in conjunctions if may_read(asker, access))
    return Readers(asker.tokens.union(*met))


def soon() -> Deadline:
    return Deadline.after(30)


def version(document_id: str, generation: int) -> Replace:
    """Build a document of 2 to 6 chunks, each of which contains its generation."""
    count = 2 + generation % 5
    texts = [f"version of {document_id} generation{generation} part{n}" for n in range(count)]
    return document(document_id, *texts, generation=generation)


def generations_seen(index: Index, document_id: str) -> list[list[int]]:
    """Return the generations of a `version` that a keyword search, a vector search and `chunks` show."""
    asked = [
        query("version", size=50),
        query("", size=50, vector=vector("any"), alpha=1.0),
    ]
    rankings = index.find(asked, PUBLIC, soon()).rankings
    found = [[hit.chunk for hit in ranking] for ranking in rankings]
    found += index.chunks([ChunkRange(document_id, 0, 50)], PUBLIC, soon())
    return [
        [_generation(chunk.text) for chunk in chunks if chunk.document_id == document_id]
        for chunks in found
    ]


def _generation(text: str) -> int:
    return int(text.partition("generation")[2].partition(" ")[0])


def is_whole(generations: list[int]) -> bool:
    """Whether these are the generations of all chunks of one version."""
    return len(set(generations)) == 1 and len(generations) == 2 + generations[0] % 5


def replace_again_and_again(engine: Engine, document_id: str, times: int) -> None:
    writer = engine.writer()
    for generation in range(2, times + 2):
        writer.write([version(document_id, generation)])


DOCUMENTS = 5


def step(number: int) -> tuple[str, IndexChange]:
    """Return the `number`-th change of `write_until_killed` and its document."""
    name = f"document {number % DOCUMENTS}"
    match number // DOCUMENTS % 6:
        case 2:
            return name, Amend(document_id=name, access=NOBODY)
        case 3:
            return name, Amend(document_id=name, access=EVERYBODY)
        case 5:
            return name, Delete(name)
        case _:
            return name, version(name, number)


def write_until_killed(engine: Engine, log: Path, start: int) -> None:
    """Write changes, and log the number of each when it begins and when it has returned."""
    writer = engine.writer()
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    number = start
    while True:
        os.write(descriptor, f"begun {number}\n".encode())
        writer.write([step(number)[1]])
        os.write(descriptor, f"done {number}\n".encode())
        number += 1
        time.sleep(0.001)
