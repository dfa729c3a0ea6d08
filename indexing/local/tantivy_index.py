"""The full-text index, by tantivy, for the keyword leg and for phrases; it can be rebuilt from SQLite.

The field `words` contains the words of `indexing.text.analysis`; `plain` every word with its position, for
exact phrases. Filters and readers are conditions of the query: a filter on its results could be left with
nothing although better matches exist.
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
import tantivy
from numpy.typing import NDArray

from indexing.local import sql
from indexing.local.database import Connection, Row, unpack_labels
from indexing.text import tokenizer
from indexing.text.analysis import QueryWord

Condition: TypeAlias = tantivy.Query

HEAP = 50_000_000
"""Bytes that a writer buffers before it writes a segment."""
PHRASE = 10_000.0
"""Above any sum of BM25, so that chunks with more of the phrases come first."""


class FulltextDamagedError(Exception):
    """A file of the full-text index is missing or cannot be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk in the full-text index."""

    row: int
    document: int
    """The ordinal."""
    version: int
    words: str
    """Tokens, joined by spaces."""
    plain: str
    labels: Sequence[int]
    """Source, media type, sets, projects, personas, tags, people and, unless the document is hidden, readers."""
    created: int | None
    updated: int | None


@dataclass(frozen=True, slots=True)
class Matches:
    rows: NDArray[np.int64]
    documents: NDArray[np.int64]
    scores: NDArray[np.float64]
    """Best first, ties by row."""


@dataclass(frozen=True, slots=True)
class WordMatches:
    words: Sequence[str]
    """The word that each of these chunks contains."""
    rows: NDArray[np.int64]
    documents: NDArray[np.int64]


def read_entries(connection: Connection, version: int) -> Iterator[Entry]:
    """Read from the tables what the full-text index must hold of a version."""
    return map(_entry, connection.execute(sql.ENTRIES_OF_VERSION, (version,)))


def read_all_entries(connection: Connection) -> Iterator[Entry]:
    return map(_entry, connection.execute(sql.ALL_ENTRIES))


def _entry(row: Row) -> Entry:
    number, ordinal, version, hidden, source, media_type, created, updated = row[:8]
    words, text, label_set, people_set, reader_set = row[8:]
    # A hidden document has no readers here, so no search of anybody finds it.
    readers = [] if hidden else unpack_labels(reader_set)
    return Entry(
        row=number,
        document=ordinal,
        version=version,
        words=words,
        plain=" ".join(tokenizer.plain_words(text)),
        labels=[
            source,
            media_type,
            *unpack_labels(label_set),
            *unpack_labels(people_set),
            *readers,
        ],
        created=created,
        updated=updated,
    )


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
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:
        raise FulltextDamagedError(str(error)) from error


class FulltextIndex:
    """One epoch of the full-text index, open."""

    def __init__(self, folder: Path, epoch: int) -> None:
        """Open the index of an epoch. Raises FulltextDamagedError."""
        self.epoch = epoch
        with _translate_errors():
            self._index = tantivy.Index.open(str(path(folder, epoch)))
            self._index.config_reader("manual")

    def searcher(self) -> tantivy.Searcher:
        """Return a searcher of the newest commit. Not thread-safe. Raises FulltextDamagedError."""
        with _translate_errors():
            self._index.reload()
            return self._index.searcher()

    def write(self, outdated: Sequence[int], entries: Iterable[Entry]) -> None:
        """Remove the versions `outdated` and add `entries`, in one commit, which is on disk on return."""
        with _translate_errors():
            writer = self._index.writer(HEAP, 1)
        try:
            if outdated:
                # Deleting by term would read the number as a signed one and find nothing.
                writer.delete_documents_by_query(
                    tantivy.Query.term_set_query(SCHEMA, "version", list(outdated))
                )
            for entry in entries:
                writer.add_document(_to_tantivy(entry))
            with _translate_errors():
                writer.commit()
        finally:
            # Otherwise merges would be aborted and segments pile up; it also releases the lock.
            writer.wait_merging_threads()

    def collect_garbage(self) -> None:
        """Remove files of commits that were never completed; the next commit may need their names."""
        with _translate_errors():
            writer = self._index.writer(HEAP, 1)
            writer.garbage_collect_files()
            writer.wait_merging_threads()


def _to_tantivy(entry: Entry) -> tantivy.Document:
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
    FulltextIndex(folder, epoch).write([], entries)


def remove(folder: Path, epoch: int) -> None:
    shutil.rmtree(path(folder, epoch), ignore_errors=True)


def match_labels(labels: Sequence[int]) -> Condition:
    return _without_score(tantivy.Query.term_set_query(SCHEMA, "labels", list(labels)))


def match_documents(ordinals: Sequence[int]) -> Condition:
    return _without_score(tantivy.Query.term_set_query(SCHEMA, "document", list(ordinals)))


def match_date_range(field: str, since: int | None, until: int | None) -> Condition:
    """Match `[since, until)` of `created` or `updated`."""
    query = tantivy.Query.range_query(
        SCHEMA,
        field,
        tantivy.FieldType.Integer,
        lower_bound=since,
        upper_bound=until,
        include_upper=until is None,  # how tantivy marks an open side
    )
    return _without_score(query)


def _without_score(query: tantivy.Query) -> tantivy.Query:
    """Make a condition that adds nothing to the score."""
    return tantivy.Query.const_score_query(query, 0.0)


def match_words(words: Sequence[QueryWord]) -> tantivy.Query:
    """Match any of the words in any form, scored by BM25; a repeated word counts repeatedly."""
    terms = [
        tantivy.Query.boost_query(match_word(word), float(times)) if times > 1 else match_word(word)
        for word, times in Counter(chain.from_iterable(words)).items()
    ]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms])


def match_word(word: str) -> tantivy.Query:
    return tantivy.Query.term_query(SCHEMA, "words", word, index_option="freq")


def match_inflections(word: str, stems: Sequence[str]) -> Condition:
    """Accept chunks with a word as it is written, or with one of its stems."""
    plain = (tantivy.Occur.Should, match_phrase([word]))
    stemmed = [(tantivy.Occur.Should, match_word(stem)) for stem in stems]
    return _without_score(tantivy.Query.boolean_query([plain, *stemmed]))


def match_everything() -> Condition:
    return _without_score(tantivy.Query.all_query())


def match_all(conditions: Sequence[Condition]) -> Condition:
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, each) for each in conditions])


def match_any(conditions: Sequence[Condition]) -> Condition:
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, each) for each in conditions])


def match_near_word(word: str, distance: int) -> Condition:
    """Accept chunks with a plain word that differs in at most `distance` places; a transposition is one."""
    return _without_score(tantivy.Query.fuzzy_term_query(SCHEMA, "plain", word, distance=distance))


def match_prefix(prefix: str) -> Condition:
    """Accept chunks with a plain word that begins so."""
    return _without_score(
        tantivy.Query.fuzzy_term_query(SCHEMA, "plain", prefix, distance=0, prefix=True)
    )


def match_phrase(words: Sequence[str]) -> tantivy.Query:
    """Match plain words one directly after the other."""
    if len(words) == 1:
        # Neither its frequency nor its positions are needed, and reading them takes a fifth of the time.
        return tantivy.Query.term_query(SCHEMA, "plain", words[0], index_option="basic")
    return tantivy.Query.phrase_query(SCHEMA, "plain", list(words))


def require_phrases(phrases: Sequence[Sequence[str]]) -> Condition:
    """Accept chunks with all of the phrases."""
    required = [(tantivy.Occur.Must, match_phrase(words)) for words in phrases]
    return _without_score(tantivy.Query.boolean_query(required))


def match_any_phrase(phrases: Sequence[Sequence[str]]) -> Condition:
    """Accept chunks with any of the phrases."""
    accepted = [(tantivy.Occur.Should, match_phrase(words)) for words in phrases]
    return _without_score(tantivy.Query.boolean_query(accepted))


def exclude_phrases(phrases: Sequence[Sequence[str]]) -> Condition:
    """Accept chunks with none of the phrases."""
    excluded = [(tantivy.Occur.MustNot, match_phrase(words)) for words in phrases]
    everything = (tantivy.Occur.Must, tantivy.Query.all_query())
    return _without_score(tantivy.Query.boolean_query([everything, *excluded]))


def match_phrases(phrases: Sequence[Sequence[str]], words: Sequence[QueryWord]) -> tantivy.Query:
    """Match any of the phrases: more phrases first, then by BM25 of the words."""
    held = [
        (tantivy.Occur.Should, tantivy.Query.const_score_query(match_phrase(words), PHRASE))
        for words in phrases
    ]
    wanted = (tantivy.Occur.Must, tantivy.Query.boolean_query(held))
    if not words:
        return tantivy.Query.boolean_query([wanted])
    return tantivy.Query.boolean_query([wanted, (tantivy.Occur.Should, match_words(words))])


def count_phrase(searcher: tantivy.Searcher, words: Sequence[str]) -> int:
    """Count the chunks with these plain words one directly after the other."""
    found = searcher.search(match_phrase(words), 1, count=True)
    return int(found.count)  # type: ignore[attr-defined]  # missing in tantivy's stub


def is_held(searcher: tantivy.Searcher, word: str, stems: Sequence[str]) -> bool:
    """Return whether any chunk contains a word or one of its stems."""
    held = (searcher.doc_freq("words", stem) for stem in stems)
    return searcher.doc_freq("plain", word) > 0 or any(held)


def count_rarest(
    searcher: tantivy.Searcher, words: Sequence[QueryWord], plain: Sequence[str]
) -> int:
    """Count the chunks with the rarest of these words; no more chunks can contain them all."""
    held = [sum(searcher.doc_freq("words", form) for form in word) for word in words]
    return min(held + [searcher.doc_freq("plain", word) for word in plain])


def find_first(
    searcher: tantivy.Searcher, terms: Mapping[str, Sequence[Condition]], limit: int
) -> WordMatches:
    """Return some chunks with each word: of each of its terms at most `limit`, whoever may see them.

    The best by BM25 of one term are found without reading all chunks with it, unlike those by any other condition.
    """
    words: list[str] = []
    addresses: list[tantivy.DocAddress] = []
    with _translate_errors():
        for word, of_word in terms.items():
            for term in of_word:
                hits = searcher.search(term, limit, count=False).hits
                words += [word] * len(hits)
                addresses += [address for _, address in hits]
        rows = np.array(searcher.fast_field_values("row", addresses), np.int64)
        documents = np.array(searcher.fast_field_values("document", addresses), np.int64)
    return WordMatches(words, rows, documents)


def search(
    searcher: tantivy.Searcher, query: tantivy.Query, conditions: Sequence[Condition], limit: int
) -> Matches:
    must = [(tantivy.Occur.Must, part) for part in (query, *conditions)]
    with _translate_errors():
        hits = searcher.search(tantivy.Query.boolean_query(must), limit, count=False).hits
        addresses = [address for _, address in hits]
        rows = np.array(searcher.fast_field_values("row", addresses), np.int64)
        documents = np.array(searcher.fast_field_values("document", addresses), np.int64)
    scores = np.array([score for score, _ in hits], np.float64)
    order = np.lexsort((rows, -scores))
    return Matches(rows[order], documents[order], scores[order])
