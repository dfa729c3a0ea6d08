"""What the check of spelling adds to a find, at 20,000 chunks.

    .venv/bin/python -m tests.benchmarks.spelling_cost [--chunks N] [--opensearch URL]

Over different questions of natural language (`scale`), in turns: the `find` that a search makes of the question, the
check of its words, which the index all holds, and the check of the same question where letters of its longest
word have changed places, or one is left out. The ratio is that of (find + check) to find, of the medians: of processor
time on the embedded index, which other work on the machine changes less, and of the time waited for OpenSearch. Bars:
1.05 and 1.3 on the embedded index, 1.1 and 1.6 on OpenSearch. The command exits with 1 if one is missed.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median

from backend.container import Container
from backend.settings import Settings
from indexing.index.protocols import Index
from indexing.index.spelling import spelling_query
from indexing.runtime.deadline import Deadline
from tests.benchmarks import scale
from tests.benchmarks.http_overhead import build_home
from tests.benchmarks.index_scale import Corpus
from tests.benchmarks.search_overhead import READERS, Overheard, request, search_tool

CHUNKS, QUESTIONS, WARM_UP = 20_000, 200, 20
SHORTEST = 8
"""Letters of a word that is misspelled."""
EMBEDDED_BARS, OPENSEARCH_BARS = (1.05, 1.3), (1.1, 1.6)


@dataclass(frozen=True)
class Questions:
    known: str
    misspelled: str


def questions(count: int) -> Iterator[Questions]:
    """Those with a long word, with and without a mistake in it: two letters change places, or one is left out."""
    for number, known in enumerate(scale.questions(count)):
        words = [word for word in spelling_query(known).words if len(word) >= SHORTEST]
        word = max(words, key=len, default="")
        if word and word in known:
            swapped = word[:3] + word[4] + word[3] + word[5:]
            yield Questions(
                known, known.replace(word, swapped if number % 2 else word[:4] + word[5:])
            )


@contextmanager
def open_index(chunks: int, url: str | None) -> Iterator[Index]:
    if url is None:
        yield build_home(scale.KEPT / f"http-{chunks}", chunks).engine.index
        return
    prefix = f"spelling-cost-{chunks}"
    home = scale.KEPT / prefix
    container = Container(Settings(home=home, opensearch_url=url, opensearch_prefix=prefix))
    if next(container.engine.writer.scan(), None) is None:
        container.engine.writer.write(Corpus(chunks, words=scale.words_by_frequency()).documents())
    yield container.engine.index


def measure(
    index: Index, asked: Sequence[Questions], clock: Callable[[], float]
) -> list[list[float]]:
    """Milliseconds of a find, and of the check of what is known and of what is not, of each question."""
    overheard = Overheard(index)
    tool = search_tool(overheard)
    times: list[list[float]] = [[], [], []]
    for number, question in enumerate(asked):
        tool.rank(request(question.known))
        calls: list[Callable[[], object]] = [
            partial(index.find, overheard.queries, READERS, Deadline.after(60)),
            partial(check, index, question.known),
            partial(check, index, question.misspelled),
        ]
        for turn in range(len(calls)):
            place = (number + turn) % len(calls)
            began = clock()
            calls[place]()
            times[place].append(1000 * (clock() - began))
    return [each[WARM_UP:] for each in times]


def check(index: Index, message: str) -> object:
    return index.suggest_corrections(spelling_query(message), READERS, Deadline.after(60))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--opensearch", metavar="URL")
    arguments = parser.parse_args()
    asked = list(questions(QUESTIONS))
    with open_index(arguments.chunks, arguments.opensearch) as index:
        corrected = sum(bool(check(index, question.misspelled)) for question in asked)
        print(f"{len(asked)} questions, {corrected} of the misspelled ones corrected")
        clock = time.perf_counter if arguments.opensearch else time.process_time
        find, known, unknown = map(median, measure(index, asked, clock))
    bars = OPENSEARCH_BARS if arguments.opensearch else EMBEDDED_BARS
    ratios = [(find + spent) / find for spent in (known, unknown)]
    print(f"find {find:.2f} ms; words known +{known:.2f}, one unknown +{unknown:.2f}")
    for name, ratio, bar in zip(("known", "one unknown"), ratios, bars, strict=True):
        print(f"{name}: {ratio:.3f}, bar {bar}")
    sys.exit(0 if all(ratio <= bar for ratio, bar in zip(ratios, bars, strict=True)) else 1)


if __name__ == "__main__":
    main()
