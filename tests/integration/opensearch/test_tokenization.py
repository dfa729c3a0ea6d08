"""The words in the index are those of `indexing/text/analysis.py`, whatever the script.

Measured beside it: how many of the same strings a chain of the cluster's own filters would cut otherwise,
which is why words are made on our side.
"""

import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

from indexing.opensearch.mapping import IndexLayout, index_body
from indexing.opensearch.naming import index_name
from indexing.text import tokenizer
from indexing.text.analysis import BY_LANGUAGE
from indexing.text.stop_words import ENGLISH
from tests.support.chunks import IDENTITY
from tests.support.languages import PASSAGES

HANDBOOK = Path("backend/sample")
STRINGS = 1_000
SEPARATOR = " "

SCRIPTS = {
    "Latin": (0x41, 0x24F),
    "Greek": (0x370, 0x3FF),
    "Cyrillic": (0x400, 0x4FF),
    "Hebrew": (0x5D0, 0x5EA),
    "Arabic": (0x621, 0x652),
    "Devanagari": (0x904, 0x963),
    "Thai": (0xE01, 0xE4E),
    "Lao": (0xE81, 0xECD),
    "Myanmar": (0x1000, 0x1059),
    "Khmer": (0x1780, 0x17D3),
    "Hangul": (0xAC00, 0xD7A3),
    "kana": (0x3041, 0x30FE),
    "Han": (0x4E00, 0x9FEF),
    "wide forms": (0xFF01, 0xFFDC),
    "punctuation": (0x2000, 0x206F),
    "emoji": (0x1F300, 0x1F6FF),
    "Deseret": (0x10400, 0x1044F),
    "Gothic": (0x10330, 0x1034A),
    "mathematical": (0x1D400, 0x1D7FF),
    "Han beyond the first plane": (0x20000, 0x20100),
    "any": (0x1, 0xFFFF),
}
CODES = (
    "PX-4410/B", "ERR-1042", "deploy_all.sh", "ops@example.com", "std::vector", "10.0.0.1:8080", "C++", "v2.1.0",
    "https://example.com/a?b=c#d", "0x80070005", "AB-1234-", "_x_", "e.g.", "don't", "it’s", "naïve", "x" * 300, "a-" * 90,
    "ab:" * 60, "１２３", "ﬁnance", "Straße", "İstanbul", "日本語" * 50, "👩‍👩‍👧", "a\u00adb", "\ud83d", "z̶a̶l̶g̶o̶",
)  # fmt: skip


def _handbook() -> list[str]:
    paths = sorted(path for path in HANDBOOK.rglob("*") if path.suffix in {".md", ".txt", ".csv"})
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line.strip()]


def _mixed(rng: random.Random) -> str:
    """Strings of one or several scripts, with codes among them."""

    def run() -> str:
        start, end = rng.choice(list(SCRIPTS.values()))
        return "".join(chr(rng.randint(start, end)) for _ in range(rng.randrange(1, 12)))

    def code() -> str:
        return rng.choice(CODES)

    makers: Sequence[Callable[[], str]] = (run, run, run, code)
    gap = rng.choice(["", " ", "-", ".", "\u3000", "\n"])
    return gap.join(rng.choice(makers)() for _ in range(rng.randrange(1, 9)))


@pytest.fixture(scope="module")
def strings() -> list[str]:
    rng = random.Random(11)
    lines = _handbook()
    taken = rng.sample(lines, min(len(lines), STRINGS // 3))
    chosen = [*CODES, *PASSAGES.values(), *taken]
    return [*chosen, *(_mixed(rng) for _ in range(STRINGS - len(chosen)))]


@pytest.fixture
def laid(client: OpenSearch, prefix: str) -> str:
    """The name of an index with our mapping."""
    name = index_name(prefix, IDENTITY)
    client.indices.create(index=name, body=index_body(name, IDENTITY, IndexLayout()))
    return name


def _document_words(text: str) -> list[str]:
    return BY_LANGUAGE.analyze([text]).words[0].split()


def _analysed(
    client: OpenSearch, index: str, analyser: dict[str, str], texts: Sequence[str]
) -> Iterator[list[str]]:
    """Return the cluster's tokens of each text."""
    for text in texts:
        analysis = client.indices.analyze(index=index, body={**analyser, "text": text})
        yield [token["token"] for token in analysis["tokens"]]


@pytest.mark.parametrize(
    ("field", "made"), [("words", _document_words), ("plain", tokenizer.plain_words)]
)
def test_the_words_in_the_index_are_ours(
    client: OpenSearch,
    laid: str,
    strings: list[str],
    field: str,
    made: Callable[[str], list[str]],
) -> None:
    assert len(strings) == STRINGS
    expected = [made(text) for text in strings]
    sent = [SEPARATOR.join(words) for words in expected]
    found = list(_analysed(client, laid, {"field": field}, sent))
    assert found == expected
    assert max(len(word) for words in expected for word in words) > 60
    assert sum(map(len, expected)) > 5_000


STOCK = {
    "settings": {
        "analysis": {
            "tokenizer": {"runs": {"type": "pattern", "pattern": r"[^\p{L}\p{M}\p{N}]+"}},
            "filter": {
                "ours": {"type": "stop", "stopwords": sorted(ENGLISH)},
                "stems": {"type": "snowball", "language": "English"},
                "pairs": {"type": "cjk_bigram", "output_unigrams": True},
            },
            "analyzer": {
                "nearest": {
                    "tokenizer": "runs",
                    "filter": ["cjk_width", "lowercase", "asciifolding", "ours", "stems", "pairs"],
                },
                "standard": {
                    "tokenizer": "standard",
                    "filter": ["cjk_width", "lowercase", "asciifolding", "ours", "stems", "pairs"],
                },
            },
        }
    }
}


@pytest.mark.parametrize("chain", ["nearest", "standard"])
def test_a_chain_of_stock_filters_would_cut_otherwise(
    client: OpenSearch,
    prefix: str,
    strings: list[str],
    chain: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Print the share of strings with different tokens; asserts nothing about it."""
    name = f"{prefix}-stock-{secrets.token_hex(3)}"
    client.indices.create(index=name, body=STOCK)
    lines = set(_handbook())
    sendable = [text for text in strings if text.isprintable()]
    found = list(_analysed(client, name, {"analyzer": chain}, sendable))
    differs = {
        text: sorted(words) != sorted(_document_words(text))
        for text, words in zip(sendable, found, strict=True)
    }
    prose = [different for text, different in differs.items() if text in lines]
    shares = sum(differs.values()) / len(differs), sum(prose) / len(prose)
    record_property("differs", shares)
    print(f"{chain}: of all {shares[0]:.1%}, of the handbook's lines {shares[1]:.1%}")
