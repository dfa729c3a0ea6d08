"""First hits among cut snippets that contradict each other: each leg, their hybrid and the whole search.

    .venv/bin/python -m tests.benchmarks.contradicting_snippets [--data ../shared/data] [--questions N]

Passages of XQuAD (English) and MTRAG are cut into snippets of 160 characters wherever they end. Right for a question
is the snippet of its passage that holds most words of its answer. Of every other question that snippet, where a
number or a name stands in it, has eight copies in which one of them, drawn anew each time, is exchanged for
another one of the snippets. Where the question names what is exchanged, words tell the copies apart; mostly it does
not, and words score copies and original alike. No leg knows then which is right: the original is indexed first,
and a search that does not reorder at random leaves it there, as the keyword leg does.

For each set of questions the numbers of those asked, of snippets and of copies are printed, then the share of right first hits.
"""

import argparse
import json
import random
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.evaluation.corpus import index_corpus, passage_id
from backend.evaluation.dataset import Dataset, read_dataset
from backend.evaluation.legs import build_legs
from indexing.embedding.language_support import load_language_support
from indexing.local import open_index, open_writer
from indexing.runtime.deadline import Deadline
from indexing.text.tokenizer import plain_words
from tests.benchmarks import scale
from tests.support.models import MODEL_CACHE, minilm

DATA = Path(__file__).parents[3] / "shared" / "data"
QUESTIONS, COPIES, CHARACTERS, SHORTEST, SEED = 200, 8, 160, 60, 20261123
_EXCHANGEABLE = re.compile(r"\b\d[\d,.]*\d\b|(?<=[a-z,] )[A-Z][a-z]{3,}\b")
"""A number, or a name within a sentence."""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    passage: str
    """Its text."""
    answer: str

    def find_right(self) -> str:
        """Return the snippet that holds most words of the answer, the first of several."""
        wanted = frozenset(plain_words(self.answer))
        return max(
            cut(self.passage), key=lambda snippet: len(wanted.intersection(plain_words(snippet)))
        )


def cut(passage: str) -> list[str]:
    """Cut a passage into snippets; a very short rest is left out."""
    starts = range(0, len(passage), CHARACTERS)
    snippets = [passage[start : start + CHARACTERS] for start in starts]
    return [each for each in snippets if len(each) >= SHORTEST] or snippets


def read_questions(data: Path) -> tuple[list[Question], list[Question]]:
    """Return those of XQuAD in English and those of MTRAG that have an answer."""
    xquad, mtrag = data / "xquad", data / "mtrag"
    asked = _read_rows(xquad / "queries.jsonl")
    short = {row["_id"]: row["metadata"]["answers"][0] for row in asked if row["_id"][:3] == "en-"}
    tasks = _read_rows(mtrag / "tasks.jsonl")
    long = {row["task_id"]: row["reference_answer"] for row in tasks if row["gold_passages"]}
    return list(_join(xquad, short)), list(_join(mtrag, long))


def _join(folder: Path, answers: Mapping[str, str]) -> Iterator[Question]:
    dataset = read_dataset(folder)
    texts = {passage.id: passage.text for passage in dataset.passages()}
    for query in dataset.queries:
        if query.id in answers:
            judged = dataset.judgments[query.id]
            passage = texts[max(judged, key=judged.__getitem__)]
            yield Question(query.text, passage, answers[query.id])


def contradict(snippet: str, others: Sequence[str], chance: random.Random) -> Iterator[str]:
    """Yield copies in which a number or a name is another one; none where there is neither."""
    own = _EXCHANGEABLE.findall(snippet)
    for _ in range(COPIES if own else 0):
        one = chance.choice(own)
        alike = [each for each in others if each[0].isdigit() == one[0].isdigit() and each != one]
        yield snippet.replace(one, chance.choice(alike))


def write_dataset(data: Path, folder: Path, count: int) -> None:
    """Write snippets, then their copies, in the layout of the judged sets."""
    chance = random.Random(SEED)
    chosen = [
        each
        for some in read_questions(data)
        for each in chance.sample(some, min(count // 2, len(some)))
    ]
    snippets = dict.fromkeys(each for one in chosen for each in cut(one.passage))
    documents = {f"snippet-{number}": text for number, text in enumerate(snippets)}
    ids = {text: key for key, text in documents.items()}
    others = sorted({each for text in snippets for each in _EXCHANGEABLE.findall(text)})
    rights = [one.find_right() for one in chosen]
    copies = dict.fromkeys(
        each for right in rights[::2] for each in contradict(right, others, chance)
    )
    documents |= {f"copy-{number}": text for number, text in enumerate(copies)}
    (folder / "qrels").mkdir(parents=True)
    _write_texts(folder / "corpus.jsonl", documents)
    _write_texts(folder / "queries.jsonl", {str(n): one.text for n, one in enumerate(chosen)})
    judgments = "".join(f"{number}\t{ids[right]}\t1\n" for number, right in enumerate(rights))
    (folder / "qrels" / "test.tsv").write_text(f"query\tdocument\tgrade\n{judgments}")
    print(f"{len(chosen)} questions, {len(snippets)} snippets, {len(copies)} copies")


def _read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _write_texts(file: Path, texts: Mapping[str, str]) -> None:
    rows = (json.dumps({"_id": key, "title": "", "text": text}) for key, text in texts.items())
    file.write_text("\n".join(rows), encoding="utf-8")


def find_first_hits(dataset: Dataset, index_folder: Path) -> dict[str, list[bool]]:
    """Return for each method and question whether the first hit is the right one."""
    embedder = minilm()
    index_corpus(dataset, open_writer(index_folder, embedder.identity), embedder, lambda _: None)
    with closing(open_index(index_folder, embedder.identity)) as index:
        legs = build_legs(index, embedder, load_language_support(embedder, MODEL_CACHE))
        right: dict[str, list[bool]] = {name: [] for name in legs}
        for query in dataset.queries:
            [vector] = embedder.embed_queries([query.text], Deadline.after(60))
            for name, leg in legs.items():
                first = [passage_id(dataset, each) for each in leg(query.text, vector)[:1]]
                right[name].append(first == [*dataset.judgments[query.id]])
    return right


def _share(right: Sequence[bool]) -> float:
    return sum(right) / len(right)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    arguments = parser.parse_args()
    folder = scale.KEPT / "contradicting-snippets"
    shutil.rmtree(folder, ignore_errors=True)
    write_dataset(arguments.data, folder / "snippets", arguments.questions)
    dataset = read_dataset(folder / "snippets")
    print("right first hits: all questions, those with copies, the others")
    for name, right in find_first_hits(dataset, folder / "index").items():
        print(f"{name:8} {_share(right):.3f} {_share(right[::2]):.3f} {_share(right[1::2]):.3f}")


if __name__ == "__main__":
    main()
