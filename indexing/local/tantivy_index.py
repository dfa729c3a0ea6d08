"""The keyword leg and phrases, by tantivy. Nothing is kept here that SQLite does not hold.

One field is searched: `words`, the tokens of `analysis.words`, as they are. `plain` holds every word with
its position, for exact phrases. Filters and readers are conditions inside the query, never a sieve behind it.
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import tantivy
from numpy.typing import NDArray

Condition: TypeAlias = tantivy.Query

HEAP = 50_000_000
"""Bytes a writer may gather before it must write a segment."""
PHRASE = 10_000.0
"""Above any sum of BM25, so that what holds more of the phrases comes first."""


class Damaged(Exception):
    """A file of the full-text index is missing or cannot be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    row: int
    document: int
    """The ordinal."""
    version: int
    words: str
    """Tokens with a space between them."""
    plain: str
    labels: Sequence[int]
    """Source, media type, sets, tags, people and, unless the document is hidden, readers."""
    created: int | None
    updated: int | None


@dataclass(frozen=True, slots=True)
class Matches:
    rows: NDArray[np.int64]
    documents: NDArray[np.int64]
    scores: NDArray[np.float64]
    """Best first, equals by row."""


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("plain", tokenizer_name="whitespace", index_option="position")
    builder.add_unsigned_field("row", fast=True)
    builder.add_unsigned_field("document", indexed=True, fast=True)
    builder.add_unsigned_field("version", indexed=True)
    builder.add_unsigned_field("labels", indexed=True)
    builder.add_integer_field("created", fast=True)
    builder.add_integer_field("updated", fast=True)
    return builder.build()


SCHEMA = _schema()


def path(folder: Path, epoch: int) -> Path:
    return folder / f"fts-{epoch}"


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:
        raise Damaged(str(error)) from error


class Fulltext:
    """One epoch of the full-text index, open."""

    def __init__(self, folder: Path, epoch: int) -> None:
        """Raises Damaged."""
        self.epoch = epoch
        with _named():
            self._index = tantivy.Index.open(str(path(folder, epoch)))
            self._index.config_reader("manual")

    def searcher(self) -> tantivy.Searcher:
        """Of the newest commit. Not to be called by two threads at once. Raises Damaged."""
        with _named():
            self._index.reload()
            return self._index.searcher()

    def write(self, outdated: Sequence[int], entries: Iterable[Entry]) -> None:
        """Take out the versions `outdated`, put in `entries`, in one commit that is on disk on return."""
        with _named():
            writer = self._index.writer(HEAP, 1)
        try:
            if outdated:
                # Deleting by term takes the number for a signed one, and finds nothing.
                writer.delete_documents_by_query(
                    tantivy.Query.term_set_query(SCHEMA, "version", list(outdated))
                )
            for entry in entries:
                writer.add_document(_document(entry))
            with _named():
                writer.commit()
        finally:
            # Merges would be given up without this, and segments pile up; it also frees the lock.
            writer.wait_merging_threads()

    def collect_garbage(self) -> None:
        """Remove files of commits that never came to be; the next commit may need their names."""
        with _named():
            writer = self._index.writer(HEAP, 1)
            writer.garbage_collect_files()
            writer.wait_merging_threads()


def _document(entry: Entry) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text("words", entry.words)
    document.add_text("plain", entry.plain)
    document.add_unsigned("row", entry.row)
    document.add_unsigned("document", entry.document)
    document.add_unsigned("version", entry.version)
    for label in entry.labels:
        document.add_unsigned("labels", label)
    if entry.created is not None:
        document.add_integer("created", entry.created)
    if entry.updated is not None:
        document.add_integer("updated", entry.updated)
    return document


def create(folder: Path, epoch: int, entries: Iterable[Entry]) -> None:
    """Build a whole epoch in its own folder."""
    remove(folder, epoch)
    path(folder, epoch).mkdir()
    tantivy.Index(SCHEMA, path=str(path(folder, epoch)))
    Fulltext(folder, epoch).write([], entries)


def remove(folder: Path, epoch: int) -> None:
    shutil.rmtree(path(folder, epoch), ignore_errors=True)


def any_label(labels: Sequence[int]) -> Condition:
    return _free(tantivy.Query.term_set_query(SCHEMA, "labels", list(labels)))


def any_document(ordinals: Sequence[int]) -> Condition:
    return _free(tantivy.Query.term_set_query(SCHEMA, "document", list(ordinals)))


def between(field: str, since: int | None, until: int | None) -> Condition:
    """`[since, until)` of `created` or `updated`."""
    query = tantivy.Query.range_query(
        SCHEMA,
        field,
        tantivy.FieldType.Integer,
        lower_bound=since,
        upper_bound=until,
        include_upper=until is None,  # tantivy's word for a side that is open
    )
    return _free(query)


def _free(query: tantivy.Query) -> tantivy.Query:
    """A condition that adds nothing to the score."""
    return tantivy.Query.const_score_query(query, 0.0)


def any_word(words: Sequence[str]) -> tantivy.Query:
    """BM25; a word that is asked for twice counts twice."""
    terms = [
        tantivy.Query.boost_query(_word(word), float(times)) if times > 1 else _word(word)
        for word, times in Counter(words).items()
    ]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])


def _word(word: str) -> tantivy.Query:
    return tantivy.Query.term_query(SCHEMA, "words", word, index_option="freq")


def phrase(words: Sequence[str]) -> tantivy.Query:
    """Plain words that stand one after the other."""
    if len(words) == 1:
        return tantivy.Query.term_query(SCHEMA, "plain", words[0])
    return tantivy.Query.phrase_query(SCHEMA, "plain", list(words))


def any_phrase(phrases: Sequence[Sequence[str]], words: Sequence[str]) -> tantivy.Query:
    """What holds more of the phrases comes first, then what has more of the words."""
    held = [
        (tantivy.Occur.Should, tantivy.Query.const_score_query(phrase(words), PHRASE))
        for words in phrases
    ]
    wanted = (tantivy.Occur.Must, tantivy.Query.boolean_query(held))
    if not words:
        return tantivy.Query.boolean_query([wanted])
    return tantivy.Query.boolean_query([wanted, (tantivy.Occur.Should, any_word(words))])


def holders(searcher: tantivy.Searcher, words: Sequence[str]) -> int:
    """Chunks in which these plain words stand one after the other."""
    found = searcher.search(phrase(words), 1, count=True)
    return int(found.count)  # type: ignore[attr-defined]  # missing in tantivy's stub


def rarest(searcher: tantivy.Searcher, words: Sequence[str], plain: Sequence[str]) -> int:
    """Chunks that hold the rarest of these words: what consists of them all is held by no more."""
    held = [searcher.doc_freq("words", word) for word in words]
    return min(held + [searcher.doc_freq("plain", word) for word in plain])


def search(
    searcher: tantivy.Searcher, query: tantivy.Query, conditions: Sequence[Condition], limit: int
) -> Matches:
    must = [(tantivy.Occur.Must, part) for part in (query, *conditions)]
    with _named():
        hits = searcher.search(tantivy.Query.boolean_query(must), limit, count=False).hits
        addresses = [address for _, address in hits]
        rows = np.array(searcher.fast_field_values("row", addresses), np.int64)
        documents = np.array(searcher.fast_field_values("document", addresses), np.int64)
    scores = np.array([score for score, _ in hits], np.float64)
    order = np.lexsort((rows, -scores))
    return Matches(rows[order], documents[order], scores[order])
