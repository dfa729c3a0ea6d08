"""How well the references that are built afterwards name the source of a claim, and their thresholds, fitted anew.

    .venv/bin/python -m tests.benchmarks.built_references [--data ../shared/data] [--count N] [--pool N]

Claims are planted: each is a sentence of a document, or one in other words, and is given the references of a pool of
documents, once with its own document among them and once without. Documents that share a title or a passage with its own
are in no pool; paragraphs of the same article are in it.

- English, by meaning: sentences of XQuAD (Artetxe et al., 2020) and of MTRAG's passages (Katsis et al., 2025); in other
  words, these by rules (`claims/rewordings`), MTRAG's answers and SciFact's claims (Wadden et al., 2020), which people wrote.
- English again, by words, as where the embedder fails.
- Chinese, by words, for the embedder does not understand it: sentences of XQuAD's Chinese paragraphs, and the same in other
  words by rules (`claims/chinese_rewordings`).

*First* is the share of claims whose one reference is to their own document, *none* that of those which get none without it.
The curve shows both for each threshold, of half of the documents; the threshold that is fitted on one half, the highest at
which as many as possible of both are right, is judged on the other. The last lines are the product's own, as it is.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np

from backend.research.references.chunk_likeness import LEAST_COSINE, LEAST_JACCARD
from backend.research.references.chunk_matching import Match, match_vectors, match_words
from backend.research.references.citable_source import CitableSource
from backend.research.references.citable_text import split_answer
from backend.research.references.reference_builder import build_references
from backend.research.references.reference_markers import MarkerStyle
from backend.research.references.text_chunks import clean_chunk, split_source
from indexing.chunking.chunk import Chunk
from indexing.embedding.embedder import Vectors
from indexing.embedding.language_support import (
    EmbedderWithLanguages,
    LanguageSupport,
    load_language_support,
)
from indexing.runtime.deadline import Deadline
from indexing.text.tokenizer import words
from tests.benchmarks.citation_verdicts import PATIENCE, Remembering, read_kept
from tests.benchmarks.claims import chinese_rewordings, rewordings, statements
from tests.benchmarks.claims.statements import Source, Statement, draw
from tests.support.models import MODEL_CACHE, minilm

COUNT = 300
POOL = 20
CURVE = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85)
VERBATIM = "verbatim"


@dataclass(frozen=True)
class Planted:
    """A claim and its document."""

    text: str
    kind: str
    language: str
    statement: Statement

    @property
    def document(self) -> str:
        return self.statement.document

    @property
    def half(self) -> int:
        return draw("half", self.document) % 2


def plant_claims(source: Source, count: int) -> list[Planted]:
    """Return `count` verbatim claims and as many in other words, of each language."""
    gold = statements.gold_passages(source)
    xquad = list(statements.read_xquad(source, "en"))
    passages = _shuffled(islice(statements.read_mtrag_passages(source, gold), 3000))
    english = [*_shuffled(xquad)[:count], *passages[:count]]
    by_rules = _reword(english, rewordings.reword)
    answers = _verbatim(statements.read_mtrag_answers(source, gold))
    scifact = _verbatim(statements.read_scifact(source, "SUPPORT"))
    chinese = list(statements.read_xquad(source, "zh"))
    by_chinese_rules = _reword(chinese, chinese_rewordings.reword)
    kinds: tuple[tuple[str, str, Iterable[tuple[str, Statement]], int], ...] = (
        ("en", VERBATIM, _verbatim(english), count),
        ("en", "by rules", by_rules, count * 2 // 3),
        ("en", "MTRAG's answers", answers, count // 4),
        ("en", "SciFact's claims", scifact, count // 4),
        ("zh", VERBATIM, _verbatim(chinese), count),
        ("zh", "by rules", by_chinese_rules, count),
    )
    return [one for each in kinds for one in _take(*each)]


def _shuffled(found: Iterable[Statement]) -> list[Statement]:
    return sorted(found, key=lambda one: draw(one.document, one.text))


def _verbatim(found: Iterable[Statement]) -> list[tuple[str, Statement]]:
    return [(one.text, one) for one in found]


def _reword(
    found: Iterable[Statement], reword: Callable[[str, Random], str | None]
) -> Iterator[tuple[str, Statement]]:
    for one in found:
        if text := reword(one.text, Random(draw("reworded", one.text))):
            yield text, one


def _take(
    language: str, kind: str, found: Iterable[tuple[str, Statement]], count: int
) -> Iterator[Planted]:
    """The first that are one chunk each."""
    chosen = sorted(found, key=lambda one: draw(kind, one[1].document, one[0]))
    claims = (Planted(text, kind, language, one) for text, one in chosen)
    return islice((one for one in claims if len(split_answer(one.text)) == 1), count)


@dataclass(frozen=True)
class Pools:
    """Draws the documents that are compared with a claim."""

    documents: dict[str, dict[str, Statement]]
    """Of each language and origin, by their ids."""
    size: int

    @classmethod
    def of(cls, claims: Sequence[Planted], size: int) -> "Pools":
        documents: dict[str, dict[str, Statement]] = defaultdict(dict)
        for one in claims:
            documents[_origin(one)][one.document] = one.statement
        return cls(dict(documents), size)

    def draw(self, claim: Planted) -> list[str]:
        """Return the others: those that stand nearest to its document in the data, and some by chance."""
        names = sorted(self.documents[_origin(claim)])
        at = names.index(claim.document)
        near = names[max(0, at - 4) : at + 5]
        chance = sorted(names, key=lambda name: draw(claim.text, name))
        own = self.documents[_origin(claim)][claim.document]
        others = dict.fromkeys(name for name in (*near, *chance) if self._differs(own, name, claim))
        return list(others)[: self.size - 1]

    def _differs(self, own: Statement, name: str, claim: Planted) -> bool:
        other = self.documents[_origin(claim)][name]
        title = own.chunks[0].title
        shares = {one.text for one in own.chunks} & {one.text for one in other.chunks}
        return name != own.document and not shares and (not title or title != other.chunks[0].title)


def _origin(claim: Planted) -> str:
    kind = claim.kind if claim.kind.startswith("MTRAG") else ""
    return f"{claim.statement.origin} {kind}"


@dataclass(frozen=True)
class Comparer:
    """Compares a claim with the chunks of documents, each embedded once."""

    embedder: Remembering
    by_words: bool
    texts: dict[tuple[Chunk, ...], list[str]] = field(default_factory=dict)

    def chunks(self, statement: Statement) -> list[str]:
        if statement.chunks not in self.texts:
            text = join_chunks(statement)
            self.texts[statement.chunks] = [
                clean_chunk(span.of(text)) for span in split_source(text)
            ]
        return self.texts[statement.chunks]

    def best(self, claim: Planted, statement: Statement) -> float:
        """Return the score of the chunk of a document that is most like the claim."""
        chunks = self.chunks(statement)
        text = clean_chunk(claim.text)
        if self.by_words:
            found = match_words(
                [_to_words(text)],
                [_to_words(one) for one in chunks],
                -1.0,
                Deadline.after(PATIENCE),
            )
        else:
            found = match_vectors(
                self._embed([text]), self._embed(chunks), -1.0, Deadline.after(PATIENCE)
            )
        return max(found, key=lambda one: one.score, default=Match(0, 0, -1.0)).score

    def _embed(self, texts: Sequence[str]) -> Vectors:
        return self.embedder.embed_queries(texts, Deadline.after(PATIENCE))


def join_chunks(statement: Statement) -> str:
    return "\n\n".join(one.text for one in statement.chunks)


@cache
def _to_words(text: str) -> frozenset[str]:
    return frozenset(words(text))


@dataclass(frozen=True)
class Scored:
    claim: Planted
    own: float
    other: float
    """The best of any other document."""

    def is_first(self, least: float) -> bool:
        return self.own >= least and self.own > self.other

    def is_none(self, least: float) -> bool:
        return self.other < least


def score(claims: Sequence[Planted], pools: Pools, comparer: Comparer) -> list[Scored]:
    scored = []
    for claim in claims:
        documents = pools.documents[_origin(claim)]
        own = comparer.best(claim, claim.statement)
        others = [comparer.best(claim, documents[name]) for name in pools.draw(claim)]
        scored.append(Scored(claim, own, max(others)))
    comparer.embedder.keep()
    return scored


def share(flags: Iterable[bool]) -> float:
    found = list(flags)
    return float(np.mean(found)) if found else float("nan")


def print_curve(scored: Sequence[Scored]) -> None:
    kinds = list(dict.fromkeys(one.claim.kind for one in scored))
    print(f"| least | {' | '.join(f'first, {kind}' for kind in kinds)} | none |")
    print("|---" * (len(kinds) + 2) + "|")
    for least in CURVE:
        firsts = (
            share(one.is_first(least) for one in scored if one.claim.kind == kind) for kind in kinds
        )
        none = share(one.is_none(least) for one in scored)
        print(f"| {least} | {' | '.join(f'{each:.1%}' for each in firsts)} | {none:.1%} |")


def fit(scored: Sequence[Scored]) -> float:
    """Return the threshold at which most of the claims in other words are right, with and without their document."""
    reworded = [one for one in scored if one.claim.kind != VERBATIM]

    def count(least: float) -> float:
        return share(one.is_first(least) for one in reworded) + share(
            one.is_none(least) for one in scored
        )

    return max(np.arange(0.1, 0.95, 0.01), key=lambda least: (round(count(least), 4), least))


def print_halves(scored: Sequence[Scored]) -> None:
    for half in (0, 1):
        least = fit([one for one in scored if one.claim.half == half])
        judged = [one for one in scored if one.claim.half != half]
        print(f"fitted on half {half}: {least:.2f}; of half {1 - half}: {describe(judged, least)}")


def describe(scored: Sequence[Scored], least: float) -> str:
    verbatim = [one for one in scored if one.claim.kind == VERBATIM]
    reworded = [one for one in scored if one.claim.kind != VERBATIM]
    return (
        f"first {share(one.is_first(least) for one in verbatim):.1%} of {len(verbatim)} verbatim and"
        f" {share(one.is_first(least) for one in reworded):.1%} of {len(reworded)} in other words;"
        f" none {share(one.is_none(least) for one in scored):.1%} of {len(scored)}"
    )


def print_product(claims: Sequence[Planted], pools: Pools, model: EmbedderWithLanguages) -> None:
    """Ask the builder itself."""
    firsts: dict[str, list[bool]] = defaultdict(list)
    nones: list[bool] = []
    for claim in claims:
        documents = pools.documents[_origin(claim)]
        others = [_to_source(documents[name]) for name in pools.draw(claim)]
        own = _to_source(claim.statement)
        firsts[claim.kind].append(_cite(claim, [*others, own], model) == [claim.document])
        nones.append(not _cite(claim, others, model))
    for kind, found in firsts.items():
        print(f"{kind}: first {share(found):.1%} of {len(found)}")
    print(f"without their document: none {share(nones):.1%} of {len(nones)}")


def _to_source(one: Statement) -> CitableSource:
    return CitableSource(title="", url="", document_id=one.document, texts=(join_chunks(one),))


def _cite(
    claim: Planted, sources: Sequence[CitableSource], model: EmbedderWithLanguages
) -> list[str | None]:
    deadline = Deadline.after(PATIENCE)
    built = build_references(claim.text, sources, model, MarkerStyle.BRACKETS, deadline)
    return [one.reference.document_id for one in built.references]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--pool", type=int, default=POOL)
    options = parser.parse_args()
    claims = plant_claims(Source(options.data, minilm()), options.count)
    pools = Pools.of(claims, options.pool)
    embedder = Remembering(held=read_kept())
    understood = load_language_support(minilm(), MODEL_CACHE)
    for language, own, understanding in (
        ("en", LEAST_COSINE, understood),
        ("zh", LEAST_JACCARD, understood),
        ("en", LEAST_JACCARD, LanguageSupport({})),
    ):
        by_words = own == LEAST_JACCARD
        chosen = [one for one in claims if one.language == language]
        print(
            f"\n## {language}, {'words' if by_words else 'meaning'}: {len(chosen)} claims, {own}\n"
        )
        scored = score(chosen, pools, Comparer(embedder, by_words))
        print_curve(scored)
        print_halves(scored)
        print(f"at {own}: {describe(scored, own)}")
        print_product(chosen, pools, EmbedderWithLanguages(embedder, understanding))


if __name__ == "__main__":
    main()
