"""A home with an index of many chunks for the benchmarks of searching, and questions to ask of it.

    .venv/bin/python -m tests.benchmarks.scale [CHUNKS]

builds it, a minute or two for 100,000 chunks, and prints where it is. It is kept in
`.cache/benchmarks` of the checkout; remove that folder when the format of the index changes.

Texts, vectors and readers are those of `index_scale`, except that the most frequent words are the
English words of the sample handbook, in the order of their frequency there. So its sentences are
questions of natural language whose words stand in few, many or most chunks. The vectors are drawn,
but carry the identity of MiniLM: a search embeds with the real model and scans as many vectors of
the same dimension, and which chunks it finds is of no account here.
"""

import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from indexing.local import open_writer
from tests.benchmarks.index_scale import Corpus
from tests.support.models import minilm

CHUNKS = 100_000
READER = "group:all"
"""May read every document."""
HANDBOOK = Path(__file__).parents[2] / "backend" / "sample" / "handbook"
KEPT = Path(__file__).parents[2] / ".cache" / "benchmarks"

_MARKUP = re.compile(r"^(?:[#>|*\-\d. ]+|\w+: .*$)|[*_`|]", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n{2,}")
_FIRST_IDEOGRAPHIC = "\u2e80"
_FEWEST_WORDS, _MOST_WORDS = 6, 12


def home(chunks: int = CHUNKS) -> Path:
    """A folder for QUARRY_HOME; its `index` is made if it is not there, or was not finished."""
    folder = KEPT / f"home-{chunks}"
    if not folder.is_dir():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        writer = open_writer(unfinished / "index", minilm().identity)
        writer.write(Corpus(chunks, words=words_by_frequency()).documents())
        unfinished.rename(folder)
    return folder


def questions(count: int) -> list[str]:
    """Different sentences of the handbook, of six words and more, cut after twelve.

    Raises:
        ValueError: the handbook has fewer.
    """
    found = list(dict.fromkeys(_cut_sentences()))
    if len(found) < count:
        raise ValueError(f"the handbook has {len(found)} sentences, not {count}")
    step = len(found) / count
    return [found[int(place * step)] for place in range(count)]


def _cut_sentences() -> Iterator[str]:
    for sentence in _SENTENCE_END.split(_english()):
        words = sentence.split()
        if len(words) >= _FEWEST_WORDS:
            yield " ".join(words[:_MOST_WORDS])


def words_by_frequency() -> list[str]:
    counted = Counter(re.findall(r"[a-z]+", _english().lower()))
    return [word for word, _ in counted.most_common()]


def _english() -> str:
    """The English Markdown files of the handbook, without the marks of Markdown."""
    texts = (file.read_text(encoding="utf-8") for file in sorted(HANDBOOK.rglob("*.md")))
    return "\n\n".join(_MARKUP.sub("", text) for text in texts if max(text) < _FIRST_IDEOGRAPHIC)


def main() -> None:
    print(home(int(sys.argv[1]) if len(sys.argv) > 1 else CHUNKS))


if __name__ == "__main__":
    main()
