"""How well words alone find passages in twelve languages, against bm25s with Snowball stemmers.

    .venv/bin/python -m tests.benchmarks.languages [--data ../shared/data] [--languages de …] [--sets scifact …]

XQuAD (Artetxe et al., 2020) holds the same 240 paragraphs and questions in twelve languages. Each language
is an index of its own; then all are one, and a tenth of the questions are asked. The rival is bm25s, set up as the README of the data says: the
variant of Lucene, k1 1.2, b 0.75, words stemmed by Snowball where it knows the language, three characters
for Thai and two for Chinese. *Before* is the former analysis, in which every text is English; the judged
sets of `--sets` are English ones, which must not lose by languages. nDCG@10.

Nothing is embedded. *Now* and *before* index a paragraph as one chunk, as the rival does. *Cut* is what comes of
chunks as the default embedder needs them, whose tokens are single letters in scripts that it does not know.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import bm25s  # type: ignore[import-untyped]
import numpy as np
import regex
import Stemmer  # type: ignore[import-not-found]

from backend.evaluation.dataset import Dataset, Judgments, Passage, read_dataset
from backend.evaluation.measures import scores
from connectors.access import EVERYBODY
from connectors.document import Document, Section
from indexing.chunking.chunker import chunk_document
from indexing.embedding.embedder import Vectors
from indexing.index.protocols import Index, Replace
from indexing.local import open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.support.chunks import DIMENSION, IDENTITY, document, query
from tests.support.former_words import make_former_folder
from tests.support.index_engines import PUBLIC
from tests.support.models import minilm

STEMMERS = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "hi": "hindi",
    "ro": "romanian",
    "ru": "russian",
    "tr": "turkish",
}
CHARACTERS = {"th": 3, "zh": 2}
LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}_]+")
_HITS = 40

Rankings: TypeAlias = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Method:
    """How an index is made and filled."""

    make: Callable[[Path], object]
    """Creates it in a folder."""
    to_change: Callable[[Passage], Replace]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--languages", nargs="*", default=LANGUAGES)
    parser.add_argument("--sets", nargs="*", default=["scifact", "cranfield", "cisi", "vaswani"])
    given = parser.parse_args()
    xquad = read_dataset(given.data / "xquad")
    _compare_languages(xquad, given.languages)
    if len(given.languages) == len(LANGUAGES):
        _compare_mixed(xquad)
    _compare_sets([given.data / name for name in given.sets])


def _create(folder: Path) -> None:
    open_writer(folder, IDENTITY)


def _as_one_chunk(passage: Passage) -> Replace:
    text = f"{passage.title}\n{passage.text}".strip()
    return document(passage.id, text, vectors_of=_vectors(1))


def _as_chunks(passage: Passage) -> Replace:
    text = passage.text if passage.text.strip() else passage.title
    whole = Document(
        id=passage.id,
        source="benchmark",
        title=passage.title,
        sections=(Section(text=text),),
        link="",
        media_type="text/plain",
        access=EVERYBODY,
        version="1",
    )
    chunks = tuple(chunk_document(whole, minilm()))
    return replace(
        document(passage.id, vectors_of=_vectors(len(chunks))),
        chunks=chunks,
    )


def _vectors(count: int) -> Vectors:
    """Return vectors that are written and not searched."""
    return np.tile(np.eye(1, DIMENSION, dtype=np.float32), (count, 1))


BEFORE, NOW = Method(make_former_folder, _as_one_chunk), Method(_create, _as_one_chunk)
CUT_BEFORE, CUT = replace(BEFORE, to_change=_as_chunks), replace(NOW, to_change=_as_chunks)


def _compare_languages(xquad: Dataset, languages: Sequence[str]) -> None:
    passages = list(xquad.passages())
    print(
        "| language | questions | bm25s | before | now | now − bm25s | cut |\n" + "|---" * 7 + "|"
    )
    for language in languages:
        asked = _of_language(xquad, language)
        found = [each for each in passages if each.id.startswith(language)]
        rival = _score(asked, _rank_by_bm25s(found, asked, language))
        before, now, cut = (_score(asked, _rank(found, asked, m)) for m in (BEFORE, NOW, CUT))
        print(_row(language, len(asked.queries), rival, before, now, now - rival, cut), flush=True)


def _compare_mixed(xquad: Dataset) -> None:
    passages = list(xquad.passages())
    some = replace(xquad, queries=xquad.queries[::10])
    rankings = [_by_paragraph(_rank(passages, some, method)) for method in (BEFORE, NOW)]
    print("\nAll in one index, a paragraph in any language right:\n")
    print("| language | questions | before | now |\n" + "|---" * 4 + "|")
    for language in LANGUAGES:
        asked = _in_any_language(_of_language(some, language))
        print(_row(language, len(asked.queries), *(_score(asked, each) for each in rankings)))


def _compare_sets(folders: Sequence[Path]) -> None:
    print("\n| set | questions | before | now | now − before |\n" + "|---" * 5 + "|")
    for folder in folders:
        asked = read_dataset(folder)
        found = list(asked.passages())
        before, now = (_score(asked, _rank(found, asked, m)) for m in (CUT_BEFORE, CUT))
        print(_row(asked.name, len(asked.queries), before, now, now - before), flush=True)


def _row(*cells: object) -> str:
    shown = (f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in cells)
    return f"| {' | '.join(shown)} |"


def _of_language(dataset: Dataset, language: str) -> Dataset:
    queries = tuple(query for query in dataset.queries if query.id.startswith(language))
    judgments = {query.id: dataset.judgments[query.id] for query in queries}
    return replace(dataset, queries=queries, judgments=judgments)


def _score(dataset: Dataset, rankings: Rankings) -> float:
    return scores(dataset.judgments, rankings)["nDCG@10"]


def _rank_by_bm25s(
    passages: Sequence[Passage], dataset: Dataset, language: str
) -> dict[str, list[str]]:
    retriever = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    tokenize = _tokenizer(language)
    texts = [f"{passage.title}\n{passage.text}".strip() for passage in passages]
    retriever.index([tokenize(text) for text in texts], show_progress=False)
    ids = [passage.id for passage in passages]
    found, _ = retriever.retrieve(
        [tokenize(query.text) for query in dataset.queries],
        corpus=ids,
        k=min(_HITS, len(ids)),
        show_progress=False,
    )
    return {query.id: list(row) for query, row in zip(dataset.queries, found, strict=True)}


def _tokenizer(language: str) -> Callable[[str], list[str]]:
    if language in CHARACTERS:
        return lambda text: list(_characters(text.lower(), CHARACTERS[language]))
    stemmer = Stemmer.Stemmer(STEMMERS[language]) if language in STEMMERS else None

    def tokenize(text: str) -> list[str]:
        words: list[str] = _WORD.findall(text.lower())
        return stemmer.stemWords(words) if stemmer else words

    return tokenize


def _characters(text: str, length: int) -> Iterator[str]:
    for run in _WORD.findall(text):
        for start in range(max(1, len(run) - length + 1)):
            yield run[start : start + length]


def _rank(passages: Sequence[Passage], dataset: Dataset, method: Method) -> dict[str, list[str]]:
    """Rank by the words of the local index; a document is where its best chunk is."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        method.make(folder)
        open_writer(folder, IDENTITY).write(map(method.to_change, passages))
        with closing(open_index(folder, IDENTITY)) as index:
            return {asked.id: _find(index, asked.text) for asked in dataset.queries}


def _find(index: Index, text: str) -> list[str]:
    (hits,) = index.find([query(text, size=_HITS)], PUBLIC, Deadline.after(60)).rankings
    return list(dict.fromkeys(hit.chunk.document_id for hit in hits))


def _in_any_language(dataset: Dataset) -> Dataset:
    judgments: Judgments = {
        query: {_paragraph(document): grade for document, grade in judged.items()}
        for query, judged in dataset.judgments.items()
    }
    return replace(dataset, judgments=judgments)


def _by_paragraph(rankings: Rankings) -> Rankings:
    return {
        query: list(dict.fromkeys(map(_paragraph, ranking))) for query, ranking in rankings.items()
    }


def _paragraph(passage_id: str) -> str:
    return passage_id.partition("-")[2]


if __name__ == "__main__":
    main()
