"""What a token of an answer costs the citation processor, at 1k, 8k and 64k tokens.

    .venv/bin/python -m tests.benchmarks.citations

The last column is the cost of a token at 64k tokens as a multiple of that at 1k: flat is 1. At the end,
what the fast path saves: the cost of the same processor without it, where every token is decided
upon with the whole grammar, as a multiple of the cost with it. Wanted: at least 1.5.
"""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from backend.chat.citations import citation_processor, marker_parser
from backend.chat.citations.citation_processor import (
    CitationMode,
    CitedDocument,
    DynamicCitationProcessor,
)
from backend.chat.citations.citation_utils import collapse_citations
from backend.chat.citations.marker_parser import MarkerScanner, Piece

SIZES = (1_000, 8_000, 64_000)
REPEATS = 3
MAPPING = {n: CitedDocument(f"kb:{n}", f"Document {n}", f"https://x/{n}") for n in range(1, 10)}
ANSWERS = {
    "prose": [
        "Annual",
        " leave",
        " is",
        " 25",
        " days",
        " [1",
        "]",
        ".",
        " Sick",
        " pay",
        " [2]",
        ".\n",
    ],
    "code": ["```py\n", "x", "[1]", " = ", "`", "a", "`", "\n", "```\n", "and", " [2]", "\n"],
    "open brackets": ["["],
    "open links": ["[a]", "(b", " "],
    "stray backticks": ["`", " a", " ``", " b", "\n\n"],
    "one open backtick": ["`", *["word "] * 63],
    "long numbers": ["[", *["1"] * 63],
    "Chinese": ["年假", "为25天", "【1】", "。", "病假", "［2", "］", "。"],
}


ANSWER = """\
Employees are entitled to 25 days of paid annual leave per calendar year [1]. Unused days may be carried over
until the end of March of the following year, after which they expire [2][3].

- Part-time staff receive a proportional share [1].
- During parental leave, which lasts 26 weeks, leave continues to accrue [4].
"""
"""Cut as models cut it: a word with its blank, an opening bracket with its number."""


class GrammarScanner(MarkerScanner):
    """Decides at every token what it can, always with the whole grammar."""

    def feed(self, text: str) -> list[Piece]:
        self._text += text
        return self._decided()


@contextmanager
def without_fast_path() -> Iterator[None]:
    never = re.compile(r"(?!)")
    with (
        patch.object(citation_processor, "MarkerScanner", GrammarScanner),
        patch.multiple(
            marker_parser, _PLAIN_LINE=never, _PLAIN_MARKER=never, _PLAIN_MARKER_BEGINNING=never
        ),
    ):
        yield


def tokens(pattern: Sequence[str], count: int) -> list[str]:
    return (list(pattern) * (count // len(pattern) + 1))[:count]


def seconds(answer: Sequence[str], mode: CitationMode) -> float:
    processor = DynamicCitationProcessor(mode)
    processor.update_citation_mapping(MAPPING)
    start = time.thread_time()
    for token in answer:
        processor.process_token(token)
    processor.process_token(None)
    return time.thread_time() - start


def collapsing_seconds(answer: Sequence[str]) -> float:
    text = "".join(answer)
    start = time.thread_time()
    collapse_citations(text, MAPPING)
    return time.thread_time() - start


def fast_path_ratio(answer: Sequence[str], repeats: int) -> float:
    """Take turns, so that both are measured on the machine as it is now."""
    fast, whole = [], []
    for _ in range(repeats):
        fast.append(seconds(answer, CitationMode.HYPERLINK))
        with without_fast_path():
            whole.append(seconds(answer, CitationMode.HYPERLINK))
    return min(whole) / min(fast)


def row(name: str, best: Sequence[float]) -> str:
    each = [1e6 * spent / size for spent, size in zip(best, SIZES, strict=True)]
    cells = "".join(f"{cost:10.2f}" for cost in each)
    return f"{name:32}{cells}{each[-1] / each[0]:10.2f}"


def main() -> None:
    print(f"{'microseconds a token':32}" + "".join(f"{n:10,}" for n in SIZES) + "    64k/1k")
    for name, pattern in ANSWERS.items():
        answers = [tokens(pattern, size) for size in SIZES]
        for mode in CitationMode:
            best = [min(seconds(a, mode) for _ in range(REPEATS)) for a in answers]
            print(row(f"{name}, {mode.name.lower()}", best))
        best = [min(collapsing_seconds(a) for _ in range(REPEATS)) for a in answers]
        print(row(f"{name}, collapse_citations", best))
    answer = tokens(re.findall(r"\s?\w+|\s?\[\d+|\]\.?|\W", ANSWER), SIZES[1])
    print(f"\nwithout the fast path / with it: {fast_path_ratio(answer, 9):.2f}")


if __name__ == "__main__":
    main()
