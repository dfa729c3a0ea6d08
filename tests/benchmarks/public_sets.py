"""Each leg, their hybrid and the whole search on the public sets: nDCG@10 and the share of right first hits.

    .venv/bin/python -m tests.benchmarks.public_sets SET … [--data ../shared/data]

As `quarry eval run`, and also for parts of two sets that are searched by themselves: `mtrag-clapnq`, `-cloud`, `-fiqa`, `-govt`
(domains), `xquad-en`, `-de`, … (languages). Of a domain about 3,000 passages are indexed: all judged ones, and of the others
those that a hash of their ids draws. In sets that the default model does not understand (Chinese, Japanese) nothing is
embedded, and no vector leg is measured. Indexes are kept for the next run.

*Syntax* is the search of what a person types, where quotes require and a minus excludes. *Spelling* is the same with unknown words
searched as their nearest ones. *Filters* adds words that are read as filters, where every document has a date, from 2000 on, that the hash of its id draws, so that a
date in the query prefers documents for no reason; only the queries with such words are counted, before and with them.
"""

import argparse
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import numpy as np

from backend.evaluation.corpus import index_corpus, index_name, passage_id
from backend.evaluation.dataset import Dataset, read_dataset
from backend.evaluation.legs import HITS, SECONDS, build_legs
from backend.evaluation.measures import scores
from backend.search.inferred_filters import FilterInference
from backend.search.llm_protocol import Complete
from backend.search.models import (
    EVERY_KIND,
    Budgets,
    DocumentNumbers,
    FilterKind,
    SearchRequest,
    Spelling,
)
from backend.search.query_syntax import parse_query
from backend.search.search_service import SearchService
from backend.search.search_tool import SearchTool
from backend.search.visible_names import VisibleNamesCache
from connectors.access import Readers
from indexing.embedding.embedder import Embedder, EmbedderIdentity, Vectors
from indexing.embedding.language_support import load_language_support
from indexing.embedding.token_counting import estimated_tokens
from indexing.index.protocols import Filters, Index, Replace
from indexing.local import open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.benchmarks import scale
from tests.support.models import MODEL_CACHE, minilm

KEPT = scale.KEPT / "public-sets"
PASSAGES = 3_000
NOT_UNDERSTOOD = ("jsquad", "cmrc2018", "xquad-zh")
_OLDEST, _DAYS = datetime(2000, 1, 1, tzinfo=UTC), 9_800

Rankings: TypeAlias = dict[str, list[str]]
"""Query id to passage ids, best first."""


@dataclass(frozen=True)
class Typed:
    """How what a person types is read."""

    spelling: Spelling = Spelling.AS_WRITTEN
    infer: frozenset[FilterKind] = frozenset()


@dataclass(frozen=True)
class WordsAlone:
    """Counts tokens as the model does, and embeds every passage alike."""

    model: Embedder

    @property
    def identity(self) -> EmbedderIdentity:
        return replace(self.model.identity, model="words alone")

    @property
    def max_tokens(self) -> int:
        return self.model.max_tokens

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.model.count_tokens(texts)

    def token_ends(self, text: str) -> Sequence[int]:
        return self.model.token_ends(text)

    def embed_queries(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        return self.model.embed_queries(texts, deadline)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.tile(np.eye(1, self.identity.dimension, dtype=np.float32), (len(texts), 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    given = parser.parse_args()
    print(
        "| set | documents | queries | keyword | vector | hybrid | search | syntax | spelling | filters |"
    )
    print("|---" * 10 + "|")
    for name in given.sets:
        dataset = read_dataset(_find_folder(given.data, name))
        embedder: Embedder = WordsAlone(minilm()) if name in NOT_UNDERSTOOD else minilm()
        measured = _measure(dataset, embedder)
        row = [name, f"{dataset.documents:,}", f"{len(dataset.queries):,}", *measured]
        print("| " + " | ".join(row) + " |", flush=True)


def _find_folder(data: Path, name: str) -> Path:
    """Return the folder of a set; that of a part is written first."""
    whole, _, part = name.partition("-")
    if (data / name).is_dir():
        return data / name
    folder = KEPT / name
    if not folder.is_dir():
        write_part(data / whole, folder, "domain" if whole == "mtrag" else "lang", part)
    return folder


def write_part(whole: Path, folder: Path, field: str, part: str) -> None:
    """Write the passages of which `field` of the metadata is `part`, and the queries that are judged on them."""
    passages = [
        row
        for row in _read_rows(whole / "corpus.jsonl.gz")
        if row["metadata"].get(field, part) == part
    ]
    ids = {row["_id"] for row in passages}
    lines = (whole / "qrels" / "test.tsv").read_text("utf-8").splitlines()
    judged = [line for line in lines[1:] if line.split("\t")[1] in ids]
    kept = {line.split("\t")[1] for line in judged}
    share = PASSAGES / len(passages)
    drawn = [row for row in passages if row["_id"] in kept or _draw(row["_id"]) < share]
    asked = {line.split("\t")[0] for line in judged}
    (folder / "qrels").mkdir(parents=True)
    _write_rows(folder / "corpus.jsonl", drawn)
    _write_rows(
        folder / "queries.jsonl",
        [row for row in _read_rows(whole / "queries.jsonl") if row["_id"] in asked],
    )
    (folder / "qrels" / "test.tsv").write_text("\n".join([lines[0], *judged]) + "\n", "utf-8")


def _draw(text: str) -> float:
    """Return a number from 0 to 1 that a text always has."""
    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    return int.from_bytes(digest) / 2**32


def _read_rows(file: Path) -> list[dict[str, Any]]:
    raw = file.read_bytes()
    text = (gzip.decompress(raw) if file.suffix == ".gz" else raw).decode()
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _write_rows(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def _measure(dataset: Dataset, embedder: Embedder) -> list[str]:
    folder = KEPT / index_name(dataset, embedder)
    index_corpus(dataset, open_writer(folder, embedder.identity), embedder, lambda _: None)
    understanding = load_language_support(minilm(), MODEL_CACHE)
    cells = []
    with closing(open_index(folder, embedder.identity)) as index:
        legs = build_legs(index, embedder, understanding)
        found: dict[str, Rankings] = {leg: {} for leg in legs}
        for query in dataset.queries:
            [vector] = embedder.embed_queries([query.text], Deadline.after(SECONDS))
            for leg, rank in legs.items():
                ids = [passage_id(dataset, each) for each in rank(query.text, vector)]
                found[leg][query.id] = ids
        if dataset.name in NOT_UNDERSTOOD:
            found["vector"] = {}
        cells = [_score(dataset, rankings) for rankings in found.values()]
        cells += [
            _score(dataset, _search_as_typed(dataset, index, embedder, Typed(spelling)))
            for spelling in (Spelling.AS_WRITTEN, Spelling.CORRECT_UNKNOWN)
        ]
    return [*cells, _measure_filters(dataset, embedder, folder)]


def _score(dataset: Dataset, rankings: Rankings) -> str:
    """Return nDCG@10 and the share of right first hits over the queries that were ranked."""
    if not rankings:
        return ""
    judgments = {query: dataset.judgments[query] for query in rankings}
    first = fmean(
        judgments[query].get(ids[0], 0) > 0 if ids else 0.0 for query, ids in rankings.items()
    )
    return f"{scores(judgments, rankings)['nDCG@10']:.4f}, {first:.3f}"


def _search_as_typed(
    dataset: Dataset,
    index: Index,
    embedder: Embedder,
    typed: Typed,
    wanted: Callable[[SearchRequest], bool] = lambda _: True,
) -> Rankings:
    """Search the queries as a person's, those whose request is wanted."""
    service = _make_service(index, embedder)
    rankings: Rankings = {}
    for query in dataset.queries:
        request = service.request(
            parse_query(query.text),
            Readers.of(),
            Filters(),
            service.deadline(),
            typed.spelling,
            typed.infer,
        )
        if wanted(request):
            hits = service.tool(None, DocumentNumbers()).rank(request, HITS).hits
            ids = (passage_id(dataset, hit.chunk.document_id) for hit in hits)
            rankings[query.id] = list(dict.fromkeys(ids))
    return rankings


def _make_service(index: Index, embedder: Embedder) -> SearchService:
    def make_tool(complete: Complete | None, numbers: DocumentNumbers) -> SearchTool:
        return SearchTool(
            index=index,
            embedder=embedder,
            understanding=load_language_support(minilm(), MODEL_CACHE),
            count_tokens=estimated_tokens,
            complete=complete,
            numbers=numbers,
        )

    return SearchService(
        index=index,
        tool=make_tool,
        budgets=Budgets.for_window(8_192),
        seconds=SECONDS,
        inference=FilterInference(names=VisibleNamesCache(index), source_kinds=dict),
    )


def _measure_filters(dataset: Dataset, embedder: Embedder, folder: Path) -> str:
    """Return the number of queries with words for a filter, and their scores without and with it."""
    with closing(open_index(folder, embedder.identity)) as index:
        read = _search_as_typed(dataset, index, embedder, Typed(infer=EVERY_KIND), _has_filters)
    if not read:
        return "0"
    dated = KEPT / f"{folder.name}-dated"
    if not dated.is_dir():
        open_writer(dated, embedder.identity).write(
            _date_documents(open_writer(folder, embedder.identity).export())
        )
    asked = replace(dataset, queries=tuple(one for one in dataset.queries if one.id in read))
    with closing(open_index(dated, embedder.identity)) as index:
        before, now = (
            _score(asked, _search_as_typed(asked, index, embedder, typed))
            for typed in (Typed(), Typed(infer=EVERY_KIND))
        )
    return f"{len(read)}: {before}; {now}"


def _has_filters(request: SearchRequest) -> bool:
    return bool(request.inference.inferred)


def _date_documents(documents: Iterator[Replace]) -> Iterator[Replace]:
    for one in documents:
        updated = _OLDEST + timedelta(days=int(_draw(one.document_id) * _DAYS))
        chunks = tuple(replace(chunk, updated_at=updated) for chunk in one.chunks)
        yield replace(one, chunks=chunks)


if __name__ == "__main__":
    main()
