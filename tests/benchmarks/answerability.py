"""The models of `backend.chat.extractive.relevance`, fitted anew, and how well they know what answers.

    .venv/bin/python -m tests.benchmarks.answerability [--data ../shared/data] [--questions N]

Each question is asked of a collection as it is, and again of all but the passages that answer it. What
the best sentence then says is right only where such a passage was there, the sentence stands in it,
and, in XQuAD, it holds the answer. So each collection gives right and wrong sentences, many of the
wrong ones about the very matter.

- XQuAD (Artetxe et al., 2020): its English questions fit `BY_MEANING`; English and Chinese ones, with
  an embedder that has no vote, fit `BY_WORDS`.
- MTRAG (Katsis et al., 2025), whose questions were not written with a passage in view, has no part in
  a fit: what comes of it is an estimate for other documents.

For each model is printed its line as the module is to have it, from all questions (`least` is a choice
and is not fitted), and then what comes of questions that had no part in the fit: of XQuAD the other
half, for each half. Told: the share of the right sentences. Declined: the share of the questions whose
passages were taken away. Right: of all that is told, how much is right. The indexes are kept in
`.cache/benchmarks`; the first run takes some minutes to make them.
"""

import argparse
import gzip
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.chat.extractive.answer import ScoredCandidates, score_candidates
from backend.chat.extractive.candidate_sentences import find_candidates
from backend.chat.extractive.relevance import (
    BY_MEANING,
    BY_WORDS,
    AnswerabilityModel,
    AnswerEvidence,
    margin,
)
from backend.evaluation.dataset import read_dataset
from backend.search.events import SearchDone
from backend.search.models import Budgets, DocumentNumbers, InferenceSection, SearchRequest
from backend.search.search_tool import SearchTool
from connectors.access import EVERYBODY, Readers
from connectors.document import Document, Section
from indexing.chunking.chunk import Chunk, ChunkRange
from indexing.chunking.chunker import chunk_document, compute_content_hash
from indexing.embedding.language_support import Understanding, understanding_of
from indexing.embedding.token_counting import rough_tokens
from indexing.index.protocols import Facets, Filters, Found, IndexQuery, Replace
from indexing.index.spelling import Corrections, SpellingQuery
from indexing.local import LocalIndex, open_index, open_writer
from indexing.runtime.deadline import Deadline
from tests.support.models import MODEL_CACHE, minilm

QUESTIONS = 130
CHINESE_SHARE = 0.46
"""Chinese questions of `BY_WORDS` for each English one."""
EVERY = 7
"""Of the passages of MTRAG that answer nothing, every so-manieth is there."""
RIDGE = 1.0
"""On coefficients of standardised figures."""
WINDOW = 32_000
NO_VOTE = Understanding({})
KEPT = Path(__file__).parents[2] / ".cache" / "benchmarks"

Figures = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    passages: frozenset[str]
    """That answer it."""
    answers: tuple[str, ...]
    """A right sentence holds one of them; where there are none, any of such a passage is right."""


@dataclass(frozen=True, slots=True)
class Collection:
    name: str
    passages: tuple[Document, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """What came of one question, asked once."""

    number: int
    """Of the question."""
    answerable: bool
    right: bool
    scores: Figures
    missing: float

    def evidence(self, model: AnswerabilityModel) -> AnswerEvidence:
        return AnswerEvidence(margin(self.scores, model), self.missing)


@dataclass(frozen=True, slots=True)
class Without:
    """An index that does not tell of some documents."""

    index: LocalIndex
    hidden: frozenset[str]

    def find(self, queries: Sequence[IndexQuery], readers: Readers, deadline: Deadline) -> Found:
        more = [replace(query, size=query.size + 10) for query in queries]
        found = self.index.find(more, readers, deadline)
        return Found(
            tuple(
                tuple(hit for hit in ranking if hit.chunk.document_id not in self.hidden)[
                    : query.size
                ]
                for query, ranking in zip(queries, found.rankings, strict=True)
            )
        )

    def chunks(
        self, ranges: Sequence[ChunkRange], readers: Readers, deadline: Deadline
    ) -> list[list[Chunk]]:
        return self.index.chunks(ranges, readers, deadline)

    def facets(self, filters: Filters, readers: Readers, deadline: Deadline) -> Facets:
        return self.index.facets(filters, readers, deadline)

    def suggest_corrections(
        self, query: SpellingQuery, readers: Readers, deadline: Deadline
    ) -> Corrections:
        return self.index.suggest_corrections(query, readers, deadline)


def xquad(data: Path, language: str, questions: int) -> Collection:
    """Its paragraphs and questions of one language, the questions drawn by a hash of their ids."""
    folder = data / "xquad"
    passages = [row for row in rows(folder / "corpus.jsonl.gz") if of(row, language)]
    asked = [row for row in rows(folder / "queries.jsonl") if of(row, language)]
    judged = read_dataset(folder).judgments
    return Collection(
        f"xquad-{language}",
        tuple(document(row["_id"], row["title"], row["text"]) for row in passages),
        tuple(
            Question(row["text"], frozenset(judged[row["_id"]]), tuple(row["metadata"]["answers"]))
            for row in sorted(asked, key=lambda row: drawn(row["_id"]))[:questions]
        ),
    )


def mtrag(data: Path, questions: int) -> Collection:
    dataset = read_dataset(data / "mtrag")
    right = {query: frozenset(graded) for query, graded in dataset.judgments.items()}
    kept = frozenset[str]().union(*right.values())
    return Collection(
        "mtrag",
        tuple(
            document(passage.id, passage.title, passage.text)
            for passage in dataset.passages()
            if passage.id in kept or drawn(passage.id) % EVERY == 0
        ),
        tuple(
            Question(query.text, right[query.id], ())
            for query in sorted(dataset.queries, key=lambda query: drawn(query.id))[:questions]
        ),
    )


def rows(path: Path) -> Iterator[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return map(json.loads, text.decode("utf-8").splitlines())


def of(row: dict[str, Any], language: str) -> bool:
    return bool(row["metadata"]["lang"] == language)


def drawn(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


def document(name: str, title: str, text: str) -> Document:
    return Document(
        id=name,
        source="benchmark",
        title=title,
        sections=(Section(text=text or title),),
        link=f"benchmark:{name}",
        media_type="text/plain",
        access=EVERYBODY,
        version="1",
    )


def index_of(collection: Collection) -> LocalIndex:
    """Kept by the name of the collection; made if it is not there, or was not finished."""
    folder = KEPT / f"answerability-{collection.name}-{len(collection.passages)}"
    if not folder.is_dir():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        writer = open_writer(unfinished, minilm().identity)
        writer.write(map(whole, collection.passages))
        unfinished.rename(folder)
    return open_index(folder, minilm().identity)


def whole(passage: Document) -> Replace:
    chunks = chunk_document(passage, minilm())
    return Replace(
        document_id=passage.id,
        generation=1,
        content_hash=compute_content_hash(passage),
        chunks=tuple(chunks),
        vectors=minilm().embed_passages([chunk.embedded_text for chunk in chunks]),
    )


def samples(collection: Collection, understanding: Understanding) -> list[Sample]:
    with closing(index_of(collection)) as index:
        return [
            sample(number, question, Without(index, hidden), understanding)
            for number, question in enumerate(collection.questions)
            for hidden in (frozenset[str](), question.passages)
        ]


def sample(number: int, question: Question, index: Without, understanding: Understanding) -> Sample:
    found = find_candidates(sections(question.text, index, understanding))
    if not found:
        return Sample(number, not index.hidden, right=False, scores=np.zeros(1), missing=1.0)
    judged = score_candidates(question.text, found, minilm(), understanding, Deadline.after(600))
    return Sample(
        number=number,
        answerable=not index.hidden,
        right=is_right(question, judged),
        scores=judged.scores,
        missing=judged.evidence.missing,
    )


def sections(
    question: str, index: Without, understanding: Understanding
) -> tuple[InferenceSection, ...]:
    tool = SearchTool(
        index=index,
        embedder=minilm(),
        understanding=understanding,
        count_tokens=rough_tokens,
        complete=None,
        numbers=DocumentNumbers(),
    )
    request = SearchRequest(
        message=question,
        readers=Readers.of(),
        deadline=Deadline.after(600),
        budgets=Budgets.for_window(WINDOW),
    )
    *_, done = tool.run(request)
    assert isinstance(done, SearchDone), "the last event of a search is its result"
    return done.result.sections


def is_right(question: Question, judged: ScoredCandidates) -> bool:
    best = judged.candidates[int(np.argmax(judged.scores))]
    holds = not question.answers or any(answer in best.text for answer in question.answers)
    return best.chunk.document_id in question.passages and holds


def fitted(model: AnswerabilityModel, found: Sequence[Sample]) -> AnswerabilityModel:
    """The model with the coefficients of these samples, rounded; `least` stays.

    Logistic regression by Newton's method: right and wrong weigh alike, the figures are
    standardised, and a ridge lies on all coefficients but the intercept.
    """
    usual = float(np.median([np.median(each.scores) for each in found]))
    model = replace(model, typical=round(usual, 2))
    figures = table(model, found)
    means, spread = figures.mean(axis=0), figures.std(axis=0)
    right = np.array([each.right for each in found], dtype=np.float64)
    slopes = signed((figures - means) / spread, right)
    raw = slopes[1:] / spread
    return replace(
        model,
        intercept=round(float(slopes[0] - raw @ means), 2),
        margin=round(float(raw[0]), 1),
        missing=round(float(raw[1]), 1),
    )


def signed(figures: Figures, right: Figures) -> Figures:
    """As `regression`, of margin and missing; 0 for what is missing where it came to speak for an answer."""
    slopes = regression(figures, right)
    return slopes if slopes[2] <= 0 else np.append(regression(figures[:, :1], right), 0.0)


def table(model: AnswerabilityModel, found: Iterable[Sample]) -> Figures:
    """Margin and missing of each sample, shape (samples, 2)."""
    evidence = (each.evidence(model) for each in found)
    return np.array([(each.margin, each.missing) for each in evidence])


def regression(figures: Figures, right: Figures) -> Figures:
    """Intercept and slopes, shape (1 + columns,)."""
    design = np.column_stack([np.ones(len(figures)), figures])
    weights = np.where(right == 1, 0.5 / right.mean(), 0.5 / (1 - right.mean()))
    ridge = RIDGE * np.diag([0.0, *np.ones(figures.shape[1])])
    slopes = np.zeros(design.shape[1])
    for _ in range(30):
        told = 1 / (1 + np.exp(-design @ slopes))
        gradient = design.T @ (weights * (told - right)) + ridge @ slopes
        curvature = (design.T * (weights * told * (1 - told))) @ design + ridge
        slopes = slopes - np.linalg.solve(curvature, gradient)
    return slopes


def report(name: str, model: AnswerabilityModel, found: Sequence[Sample]) -> None:
    probability = np.array([model.probability(each.evidence(model)) for each in found])
    right = np.array([each.right for each in found])
    answerable = np.array([each.answerable for each in found])
    told = probability >= model.least
    print(
        f"| {name} | {len(found)} | {right.sum()} | {auc(probability, right):.3f} |"
        f" {told[right].mean():.0%} | {(~told)[~answerable].mean():.0%} |"
        f" {right[told].mean():.0%} |"
    )


def auc(probability: Figures, right: NDArray[np.bool_]) -> float:
    """How often a right sentence is given more than a wrong one."""
    of_right, of_wrong = probability[right][:, None], probability[~right][None]
    return float(((of_right > of_wrong) + 0.5 * (of_right == of_wrong)).mean())


def line(name: str, model: AnswerabilityModel) -> str:
    return (
        f"{name} = AnswerabilityModel(intercept={model.intercept}, margin={model.margin},"
        f" missing={model.missing}, typical={model.typical}, least={model.least})"
    )


def tell(
    name: str, model: AnswerabilityModel, found: dict[str, list[Sample]], foreign: list[Sample]
) -> None:
    """Fit on `found`, of several collections; report on their halves, and on what is foreign."""
    print(f"\n{line(name, fitted(model, [each for some in found.values() for each in some]))}")
    print(f"module: {line(name, model)}\n")
    print("| questions of | asked | right | AUC | told | declined | right of the told |")
    print("|---|---|---|---|---|---|---|")
    for half in (0, 1):
        seen = [each for some in found.values() for each in some if each.number % 2 != half]
        for collection, some in found.items():
            unseen = [each for each in some if each.number % 2 == half]
            report(f"{collection}, half {half + 1}", fitted(model, seen), unseen)
    report("mtrag", model, foreign)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    arguments = parser.parse_args()
    data, count = arguments.data, arguments.questions
    english, foreign = xquad(data, "en", count), mtrag(data, count)
    chinese = xquad(data, "zh", int(CHINESE_SHARE * count))
    understood = understanding_of(minilm(), MODEL_CACHE)
    tell(
        "BY_MEANING",
        BY_MEANING,
        {"xquad-en": samples(english, understood)},
        samples(foreign, understood),
    )
    found = {each.name: samples(each, NO_VOTE) for each in (english, chinese)}
    tell("BY_WORDS", BY_WORDS, found, samples(foreign, NO_VOTE))


if __name__ == "__main__":
    main()
